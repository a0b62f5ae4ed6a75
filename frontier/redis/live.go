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

// Announce says that m is at work and returns who is. Call it every AnnounceEvery.
// Cost: one small call, however many there are.
func (f *Frontier) Announce(ctx context.Context, m frontier.Member) (frontier.Present, error) {
	var none frontier.Present
	if m.ID == "" {
		return none, fmt.Errorf("frontier: announce: a member needs an id")
	}
	m.Tokens = f.process
	text, err := json.Marshal(m)
	if err != nil {
		return none, err
	}
	reply, err := f.live(ctx, liveScript, m.ID, frontier.LiveFor.Milliseconds(), text, runsKept(&m), m.Crowded, m.Room)
	if err != nil {
		return none, err
	}
	n := shard.Array(reply)
	if len(n) != 3 {
		return none, Malformed(noShard, "live", reply)
	}
	return frontier.Present{Programs: int(shard.Int(n[0])), Crowded: int(shard.Int(n[1])), Room: int(shard.Int(n[2]))}, nil
}

// Leave takes a member off the list.
func (f *Frontier) Leave(ctx context.Context, m frontier.Member) error {
	text, err := json.Marshal(m)
	if err == nil {
		_, err = f.live(ctx, liveScript, m.ID, 0, text, runsKept(&m), false, false)
	}
	return err
}

// runsKept is how many runs stay on record with a member's, 0 where its own does not.
func runsKept(m *frontier.Member) int {
	if m.OnRecord() {
		return frontier.RunsKept
	}
	return 0
}

// Runs are the last runs of fetchers, the one heard of last first. Cost: two calls,
// O(RunsKept).
func (f *Frontier) Runs(ctx context.Context) ([]frontier.Member, error) {
	pairs, err := f.scored(ctx, noShard, shard.RunsKey(f.crawl), frontier.RunsKept)
	if err != nil {
		return nil, err
	}
	known, err := f.client.Hash(ctx, noShard, shard.RunsInfoKey(f.crawl))
	if err != nil {
		return nil, err
	}
	runs := make([]frontier.Member, 0, len(pairs))
	for _, p := range pairs {
		m := frontier.Member{}
		if err := json.Unmarshal([]byte(known[p.member]), &m); err != nil {
			m.Kind = "unknown" // of another version: it ran all the same
		}
		m.ID, m.Seen = p.member, time.UnixMilli(p.score).UTC()
		runs = append(runs, m)
	}
	return runs, nil
}

// membersMost is how many programs one call shows: it keeps a call under a
// millisecond.
const membersMost = 500

// Members lists who is at work, by kind and start. Cost: a call for each 500.
func (f *Frontier) Members(ctx context.Context) ([]frontier.Member, error) {
	members, err := f.members(ctx, "all")
	if err != nil {
		return nil, err
	}
	slices.SortFunc(members, func(a, b frontier.Member) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return members, nil
}

// vanished lists who was heard of last within an hour, and did not leave, the last
// first. Cost: two calls, and one for each 500.
func (f *Frontier) vanished(ctx context.Context) ([]frontier.Member, error) {
	over, err := f.members(ctx, "over")
	if err != nil {
		return nil, err
	}
	list, err := f.members(ctx, "gone")
	list = slices.DeleteFunc(append(list, over...), func(m frontier.Member) bool { return time.Since(m.Seen) > frontier.VanishedFor+frontier.LiveFor })
	slices.SortFunc(list, func(a, b frontier.Member) int { return b.Seen.Compare(a.Seen) })
	return list, err
}

// members reads the list page by page: all who are there, those that seed, or those that
// vanished. Who comes or
// goes meanwhile moves the pages: a program may then be met twice, or missed
// until it announces itself again.
func (f *Frontier) members(ctx context.Context, which string) ([]frontier.Member, error) {
	now := time.Now()
	seen := make(map[string]bool)
	members := []frontier.Member{} // nil is an unreadable list
	for first := int64(0); ; {
		reply, err := f.live(ctx, membersScript, first, membersMost, which)
		if err != nil {
			return nil, err
		}
		list := shard.Array(reply)
		if len(list)%3 != 1 {
			return nil, Malformed(noShard, "members", reply)
		}
		for at := 1; at < len(list); at += 3 {
			m := frontier.Member{}
			if err := json.Unmarshal([]byte(shard.Text(list[at+2])), &m); err != nil {
				m.Kind = "unknown" // of another version: it is there all the same
			}
			m.ID = shard.Text(list[at])
			left := time.Duration(shard.Int(list[at+1])) * time.Millisecond
			m.Seen = now.Add(left - frontier.LiveFor)
			if !seen[m.ID] {
				seen[m.ID] = true
				members = append(members, m)
			}
		}
		looked := shard.Int(list[0])
		if first += looked; looked < membersMost {
			return members, nil
		}
	}
}

// live runs a script of the list.
func (f *Frontier) live(ctx context.Context, s *shard.Script, args ...any) (any, error) {
	keys := []string{shard.LiveKey(f.crawl), shard.LiveInfoKey(f.crawl), shard.LiveGoneKey(f.crawl)}
	if s == liveScript {
		keys = append(keys, shard.RunsKey(f.crawl), shard.RunsInfoKey(f.crawl), shard.LiveCrowdedKey(f.crawl), shard.LiveRoomKey(f.crawl))
	}
	reply, err := f.client.Run(ctx, noShard, s, keys, args...)
	if err != nil && strings.Contains(err.Error(), "WRONGTYPE") {
		err = cmp.Or(errors.Join(f.liveTypes(ctx, keys[0], "zset"), f.liveTypes(ctx, keys[1], "hash"), f.liveTypes(ctx, keys[2], "zset")), err)
	}
	return reply, err
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

// Finished reports whether nothing is left to do: on no shard a site in any ready
// class or a lease, the feed empty, and nobody seeding. It looks twice, and the
// second look must find the admission counters of the first. Between the looks
// there is then a moment at which no shard had work: what it had at that
// moment but not at the first look was admitted since, which the counter
// shows. Paused sites do not count. While a shard is silent it is not finished.
// Cost: that of RecentStats while something is left; then two calls a shard, side
// by side.
func (f *Frontier) Finished(ctx context.Context) (bool, error) {
	recent, err := f.RecentStats(ctx)
	if err != nil {
		return false, err
	}
	for i := range recent {
		if recent[i].Ready > 0 || recent[i].Leases > 0 || recent[i].Silent {
			return false, nil
		}
	}
	first, err := f.idle(ctx)
	if err != nil || first == nil {
		return false, err
	}
	second, err := f.idle(ctx)
	return second != nil && slices.Equal(first, second), err
}

// idle returns the admission counters of all shards, or nil when something is
// left to do.
func (f *Frontier) idle(ctx context.Context) ([]int64, error) {
	stats, err := f.Stats(ctx)
	admits := make([]int64, len(stats))
	for k := range stats {
		if stats[k].Ready > 0 || stats[k].Leases > 0 {
			return nil, nil // whatever the others say
		}
		admits[k] = stats[k].Admits
	}
	if err != nil {
		return nil, err
	}
	waits, err := f.FeedLen(ctx)
	if err != nil || waits > 0 {
		return nil, err
	}
	seeders, err := f.members(ctx, "seeding")
	if err != nil || len(seeders) > 0 {
		return nil, err
	}
	return admits, nil
}
