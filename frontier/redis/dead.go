package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"seine/frontier"
	"seine/shard"
)

// DeadLetters returns count dead letters of a cause in shard k from offset on,
// the oldest first. Each is for Revive and DropDead of the same shard. Cost:
// O(offset + count).
func (f *Frontier) DeadLetters(ctx context.Context, k int, cause string, offset, count int64) ([]frontier.DeadLetter, error) {
	if offset < 0 || count <= 0 {
		return nil, nil
	}
	key := f.keys[k].Dead(cause)
	reply, err := f.client.Do(ctx, k, key, "LRANGE", key, offset, offset+count-1)
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	letters := make([]frontier.DeadLetter, len(list))
	for i, v := range list {
		raw := shard.Text(v)
		if letters[i], err = ParseLetter(raw, cause); err != nil {
			return nil, &shard.Error{Shard: k, Op: "dead letters", Err: fmt.Errorf("frontier: %q: %w", raw, err)}
		}
	}
	return letters, nil
}

// DeadCounts is the number of dead letters in shard k by cause. Cost: one call,
// and one for each cause that ever was.
func (f *Frontier) DeadCounts(ctx context.Context, k int) (map[string]int64, error) {
	counters, err := f.client.Hash(ctx, k, f.keys[k].Stats())
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for name := range counters {
		cause, ok := strings.CutPrefix(name, "dead:")
		if !ok {
			continue
		}
		key := f.keys[k].Dead(cause)
		reply, err := f.client.Do(ctx, k, key, "LLEN", key)
		if err != nil {
			return nil, err
		}
		if n := shard.Int(reply); n > 0 {
			counts[cause] = n
		}
	}
	return counts, nil
}

// WalkDead is frontier.WalkDead on this crawl.
func (f *Frontier) WalkDead(ctx context.Context, filter frontier.DeadFilter, visit func(k int, batch []frontier.DeadLetter) (taken int, err error)) (int64, error) {
	return frontier.WalkDead(ctx, f, filter, visit)
}

// reviveMost is how many dead letters one call takes: each is looked for from
// the oldest on.
const reviveMost = 25

// ParseLetter reads a dead letter as it is stored: site, text and entry, with
// tabs between.
func ParseLetter(raw, cause string) (frontier.DeadLetter, error) {
	site, rest, ok := strings.Cut(raw, "\t")
	text, stored, also := strings.Cut(rest, "\t")
	if !ok || !also {
		return frontier.DeadLetter{}, frontier.ErrEntry
	}
	e, err := frontier.DecodeEntry(stored, site)
	return frontier.DeadLetter{Entry: e, Site: site, Cause: cause, Text: text, Raw: raw}, err
}

// Revive puts dead letters, as DeadLetters returned them, back at the end of
// their queues, as if they had never failed. It returns how many were still
// there; those of blocked sites stay dead. Cost: O(letters older than it) for
// each letter.
func (f *Frontier) Revive(ctx context.Context, k int, dead []frontier.DeadLetter) (int, error) {
	return f.exhume(ctx, k, reviveScript, dead)
}

// DropDead forgets dead letters and returns how many were still there. Its cost
// is that of Revive.
func (f *Frontier) DropDead(ctx context.Context, k int, dead []frontier.DeadLetter) (int, error) {
	return f.exhume(ctx, k, dropScript, dead)
}

// exhume takes letters out of their lists, cause by cause.
func (f *Frontier) exhume(ctx context.Context, k int, s *shard.Script, dead []frontier.DeadLetter) (int, error) {
	byCause := slices.Clone(dead)
	slices.SortStableFunc(byCause, func(a, b frontier.DeadLetter) int { return strings.Compare(a.Cause, b.Cause) })
	n := 0
	for len(byCause) > 0 {
		cause, same := byCause[0].Cause, 1
		for same < min(len(byCause), reviveMost) && byCause[same].Cause == cause {
			same++
		}
		keys, args := []string{f.keys[k].Dead(cause)}, []any{}
		for _, d := range byCause[:same] {
			if s == dropScript {
				args = append(args, d.Raw)
				continue
			}
			letter, err := ParseLetter(d.Raw, cause)
			if err != nil {
				return n, &shard.Error{Shard: k, Op: s.Name, Err: fmt.Errorf("frontier: dead letter %q: %w", d.Raw, err)}
			}
			stored := len(d.Raw) - len(letterHead(letter.Site, letter.Text))
			keys = f.AppendSite(keys, k, letter.Site)
			args = append(args, letter.Site, d.Raw, stored)
		}
		raw, err := f.Call(ctx, k, s, keys, args)
		if err != nil {
			return n, err
		}
		gone, _ := raw.(int64)
		n += int(gone)
		byCause = byCause[same:]
	}
	return n, nil
}
