package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"seine/frontier"
	"seine/shard"
)

// Announce says that m is at work. Call it every AnnounceEvery.
func (f *Frontier) Announce(ctx context.Context, m frontier.Member) error {
	if m.ID == "" {
		return fmt.Errorf("frontier: announce: a member needs an id")
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = f.live(ctx, m.ID, frontier.LiveFor, string(text))
	return err
}

// Leave takes a member off the list.
func (f *Frontier) Leave(ctx context.Context, id string) error {
	_, err := f.live(ctx, id, 0, "")
	return err
}

// Members lists who is at work, by kind and start.
func (f *Frontier) Members(ctx context.Context) ([]frontier.Member, error) {
	list, err := f.live(ctx, "", 0, "")
	if err != nil {
		return nil, err
	}
	now := time.Now()
	members := make([]frontier.Member, 0, len(list)/3)
	for i := 0; i+2 < len(list); i += 3 {
		m := frontier.Member{}
		if err := json.Unmarshal([]byte(shard.Text(list[i+2])), &m); err != nil {
			m.Kind = "unknown" // of another version: it is there all the same
		}
		m.ID = shard.Text(list[i])
		left := time.Duration(shard.Int(list[i+1])) * time.Millisecond
		m.Seen = now.Add(left - frontier.LiveFor)
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b frontier.Member) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return members, nil
}

// live runs the script of the list.
func (f *Frontier) live(ctx context.Context, id string, ttl time.Duration, details string) ([]any, error) {
	keys := []string{shard.LiveKey(f.crawl), shard.LiveInfoKey(f.crawl)}
	reply, err := f.client.Run(ctx, noShard, liveScript, keys, id, ttl.Milliseconds(), details)
	if err != nil && strings.Contains(err.Error(), "WRONGTYPE") {
		err = cmp.Or(errors.Join(f.liveTypes(ctx, keys[0], "zset"), f.liveTypes(ctx, keys[1], "hash")), err)
	}
	if err != nil {
		return nil, err
	}
	list, _ := reply.([]any)
	return list, nil
}

// errForeign: a key that all shards share holds what no program of a crawl wrote.
var errForeign = errors.New("it was written by something else")

// liveTypes tells of a key of the list when it is of another type than want.
func (f *Frontier) liveTypes(ctx context.Context, key, want string) error {
	raw, err := f.client.Do(ctx, noShard, key, "TYPE", key)
	kind := shard.Text(raw)
	if err != nil || kind == want || kind == "none" {
		return err
	}
	return fmt.Errorf("frontier: %s, of the list of live programs, is of type %s and must be %s; rename or delete it, programs enter themselves again: %w",
		key, kind, want, errForeign)
}

// Finished says whether nothing is left to do: on no shard a site in any ready
// class or a lease, the feed empty, and no seeder live. It looks twice, and the
// second look must find the admission counters of the first. Between the looks
// there is then a moment at which no shard had work: what it had at that
// moment but not at the first look was admitted since, which the counter
// shows. Paused sites do not count. Cost: two calls a shard when true, often one.
func (f *Frontier) Finished(ctx context.Context) (bool, error) {
	first, err := f.idle(ctx)
	if err != nil || first == nil {
		return false, err
	}
	second, err := f.idle(ctx)
	return second != nil && slices.Equal(first, second), err
}

// idle returns the admission counters of all shards, or nil at the first thing
// that is left to do.
func (f *Frontier) idle(ctx context.Context) ([]int64, error) {
	admits := make([]int64, len(f.keys))
	for k := range f.keys {
		s, err := f.shardStats(ctx, k)
		if err != nil {
			return nil, err
		}
		if s.Ready > 0 || s.Leases > 0 {
			return nil, nil
		}
		admits[k] = s.Admits
	}
	waits, err := f.FeedLen(ctx)
	if err != nil || waits > 0 {
		return nil, err
	}
	members, err := f.Members(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Kind == frontier.KindSeeder {
			return nil, nil
		}
	}
	return admits, nil
}
