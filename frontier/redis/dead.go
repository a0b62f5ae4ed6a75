package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"seine/frontier"
	"seine/shard"
)

// DeadLetters returns count dead letters of a cause in shard k from offset on,
// the oldest first. Each is for RetryDead and DropDead of the same shard. Cost:
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
		if letters[i], err = ParseDeadLetter(raw, cause); err != nil {
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

// One call passes so many dead letters, and takes so many of them: it stays under
// a millisecond.
const (
	deadMost  = 100
	retryMost = 25
)

// ParseDeadLetter reads a dead letter as it is stored: site, text and entry, with
// tabs between.
func ParseDeadLetter(raw, cause string) (frontier.DeadLetter, error) {
	site, rest, ok := strings.Cut(raw, "\t")
	text, stored, also := strings.Cut(rest, "\t")
	if !ok || !also {
		return frontier.DeadLetter{}, frontier.ErrEntry
	}
	e, err := frontier.DecodeEntry(stored, site)
	return frontier.DeadLetter{Entry: e, Site: site, Cause: cause, Text: text, Raw: raw}, err
}

// RetryDead puts dead letters, as DeadLetters returned them, back at the end of
// their queues, as if they had never failed. It returns how many were still
// there; those of blocked sites stay dead. Cost: the list of each cause is passed
// once, in steps of at most 100 dead letters: give many dead letters at once. When it
// is broken off, the list is left in another order.
func (f *Frontier) RetryDead(ctx context.Context, k int, dead []frontier.DeadLetter) (int, error) {
	return f.takeDead(ctx, k, "retry", dead)
}

// DropDead forgets dead letters and returns how many were still there. Its cost
// is that of RetryDead.
func (f *Frontier) DropDead(ctx context.Context, k int, dead []frontier.DeadLetter) (int, error) {
	return f.takeDead(ctx, k, "drop", dead)
}

// takeDead takes dead letters out of their lists, cause by cause.
func (f *Frontier) takeDead(ctx context.Context, k int, how string, dead []frontier.DeadLetter) (int, error) {
	byCause := make(map[string]map[string]int) // how often each dead letter is wanted
	for _, d := range dead {
		if _, err := ParseDeadLetter(d.Raw, d.Cause); err != nil && how == "retry" {
			return 0, &shard.Error{Shard: k, Op: "dead letters", Err: fmt.Errorf("frontier: dead letter %q: %w", d.Raw, err)}
		}
		if byCause[d.Cause] == nil {
			byCause[d.Cause] = make(map[string]int)
		}
		byCause[d.Cause][d.Raw]++
	}
	taken := 0
	for _, cause := range slices.Sorted(maps.Keys(byCause)) {
		n, err := f.rotateDead(ctx, k, cause, how, byCause[cause])
		if taken += n; err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// rotateDead passes the list of a cause once, and takes out what is wanted.
func (f *Frontier) rotateDead(ctx context.Context, k int, cause, how string, wanted map[string]int) (taken int, err error) {
	key := f.keys[k].Dead(cause)
	reply, err := f.client.Do(ctx, k, key, "LLEN", key)
	if err != nil {
		return 0, err
	}
	kept := false
	for left, first := shard.Int(reply), true; first || left > 0 && (len(wanted) > 0 || kept); first = false {
		reply, err := f.client.Do(ctx, k, key, "LRANGE", key, 0, max(1, min(left, deadMost))-1)
		if err != nil {
			return taken, err
		}
		keys, args := []string{key}, []any{f.token("")}
		passed, some := int64(0), 0
		for _, v := range shard.Array(reply) {
			raw := shard.Text(v)
			if wanted[raw] == 0 {
				args = append(args, raw, "keep", "", 0)
				kept = true
			} else if some++; some > retryMost {
				break
			} else {
				keys, args = f.takeDeadElement(k, cause, how, raw, keys, args)
				if wanted[raw]--; wanted[raw] == 0 {
					delete(wanted, raw)
				}
			}
			passed++
		}
		answer, err := f.Call(ctx, k, deadLettersScript, keys, args)
		if err != nil {
			return taken, err
		}
		n := shard.Int(answer)
		if n < 0 {
			return taken, &shard.Error{Shard: k, Op: "dead letters", Err: fmt.Errorf("frontier: another program takes dead letters of cause %s; try again", cause)}
		}
		kept = kept || n < int64(min(some, retryMost)) // of blocked sites
		taken += int(n)
		if left -= passed; passed == 0 {
			break // somebody else took the rest
		}
	}
	return taken, nil
}

// takeDeadElement adds one dead letter that is taken to a call.
func (f *Frontier) takeDeadElement(k int, cause, how, raw string, keys []string, args []any) ([]string, []any) {
	letter, _ := ParseDeadLetter(raw, cause) // it was read before, and need not be read to be forgotten
	if how == "retry" {
		keys = f.AppendSite(keys, k, letter.Site)
	} else {
		keys = append(keys, f.keys[k].Site(letter.Site))
	}
	return keys, append(args, raw, how, letter.Site, len(raw)-len(deadHead(letter.Site, letter.Text)))
}
