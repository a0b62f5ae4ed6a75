package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"seine/frontier"
	"seine/shard"
)

// Stats counts every shard, all at once. Cost: one call a shard.
func (f *Frontier) Stats(ctx context.Context) ([]frontier.ShardStats, error) {
	out := make([]frontier.ShardStats, len(f.keys))
	errs := make([]error, len(f.keys))
	var wg sync.WaitGroup
	for k := range f.keys {
		wg.Go(func() { out[k], errs[k] = f.shardStats(ctx, k) })
	}
	wg.Wait()
	f.noteLongest(out)
	return out, errors.Join(errs...)
}

// shardStats counts one shard, at one moment.
func (f *Frontier) shardStats(ctx context.Context, k int) (frontier.ShardStats, error) {
	keys := f.keys[k]
	s := frontier.ShardStats{Shard: k, Slot: shard.Slot(f.shards.Tag(k))}
	low, high, longest := f.marks(k, f.settings.Load())
	reply, err := f.client.Run(ctx, k, statsScript, []string{
		keys.Meta(), keys.Stats(), keys.Leases(), keys.Ready(0), keys.Ready(1), keys.Ready(2), keys.Ready(3), keys.Held(),
	}, f.epoch, low, high, longest)
	if err != nil {
		return s, err
	}
	list, ok := reply.([]any)
	if !ok || len(list) != 6 {
		if reply == "!stale" {
			return s, &shard.Error{Shard: k, Op: "stats", Err: frontier.ErrStale}
		}
		return s, &shard.Error{Shard: k, Op: "stats", Err: fmt.Errorf("frontier: unknown reply %v", reply)}
	}
	s.Ready, s.Held, s.Leases = shard.Int(list[0]), shard.Int(list[1]), shard.Int(list[2])
	s.Paused = shard.Int(list[3]) == 1
	counters, _ := list[4].([]any)
	for i := 0; i+1 < len(counters); i += 2 {
		if to := counterOf(&s, shard.Text(counters[i])); to != nil {
			*to = shard.Int(counters[i+1])
		}
	}
	if m, _ := list[5].([]any); len(m) == 5 {
		s.Memory = frontier.Memory{Used: shard.Int(m[0]), Limit: shard.Int(m[1]), Pressed: shard.Int(m[2]) == 1, Bar: shard.Int(m[3]), Longest: shard.Int(m[4])}
	}
	s.Master, err = f.client.Owner(ctx, keys.Meta())
	if err != nil {
		return s, &shard.Error{Shard: k, Op: "stats", Err: err}
	}
	return s, nil
}

// counterOf finds the field of a counter by its name in the hash stats.
func counterOf(s *frontier.ShardStats, name string) *int64 {
	switch name {
	case "queued":
		return &s.Queued
	case "waiting":
		return &s.Waiting
	case "open":
		return &s.Open
	case "admits":
		return &s.Admits
	case "known":
		return &s.Known
	case "done":
		return &s.Done
	case "retried":
		return &s.Retried
	case "dead":
		return &s.Dead
	case "lost":
		return &s.Lost
	case "revived":
		return &s.Revived
	case "dropped":
		return &s.Dropped
	case "turned":
		return &s.Turned
	case "blocked":
		return &s.Blocked
	case "merged":
		return &s.Merged
	case "missing":
		return &s.Missing
	}
	return nil
}
