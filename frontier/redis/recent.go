package redis

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"seine/frontier"
	"seine/shard"
)

const (
	// recentFor is how long one reading of all shards serves every program.
	recentFor = time.Second
	// recentWait bounds how long a reading waits for a shard, and how long
	// others leave it to whoever began it.
	recentWait = time.Second
)

// recentStats is a reading as it is stored.
type recentStats struct {
	Epoch string                // of the crawl that was counted
	Stats []frontier.ShardStats // of all shards
}

// RecentStats is Stats as some program of the crawl read it within the last
// second or two. A shard that did not answer in time is Silent, with the counts of
// the reading before, if this program knows one. Cost: one small call; to one
// caller a second one more for each shard.
func (f *Frontier) RecentStats(ctx context.Context) ([]frontier.ShardStats, error) {
	key := shard.RecentKey(f.crawl)
	short, cancel := context.WithTimeout(ctx, recentWait)
	defer cancel()
	raw, err := f.client.Do(short, noShard, key, "GET", key)
	if isLate(ctx, err) {
		return f.statsInTime(ctx, recentWait) // the master that keeps the readings is silent: each reads for itself
	}
	if err != nil {
		return nil, err
	}
	if stats := f.readRecent(raw); stats != nil {
		f.keepRecent(stats)
		return stats, nil
	}
	claim := shard.RecentClaimKey(f.crawl)
	mine, err := f.client.Do(short, noShard, claim, "SET", claim, 1, "NX", "PX", recentWait.Milliseconds())
	if err != nil && !isFull(err) {
		return nil, err
	}
	if last := f.recent.Load(); mine == nil && last != nil {
		return *last, nil // somebody is at it
	}
	stats, err := f.statsInTime(ctx, recentWait)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(recentStats{f.epoch, stats})
	if err != nil {
		return nil, err
	}
	if _, err = f.client.Do(ctx, noShard, key, "SET", key, text, "PX", recentFor.Milliseconds()); isFull(err) {
		err = nil // then each reads for itself
	}
	return stats, err
}

// readRecent returns nil where there is no reading, or one of another creation
// of the crawl.
func (f *Frontier) readRecent(raw any) []frontier.ShardStats {
	var r recentStats
	if json.Unmarshal([]byte(shard.Text(raw)), &r) != nil || r.Epoch != f.epoch || len(r.Stats) != len(f.keys) {
		return nil
	}
	return r.Stats
}

func (f *Frontier) keepRecent(stats []frontier.ShardStats) {
	f.noteLongest(stats)
	f.recent.Store(&stats)
}

// statsInTime counts the shards that answer within wait; the others are Silent.
func (f *Frontier) statsInTime(ctx context.Context, wait time.Duration) ([]frontier.ShardStats, error) {
	short, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	out := make([]frontier.ShardStats, len(f.keys))
	errs := make([]error, len(f.keys))
	var wg sync.WaitGroup
	for k := range f.keys {
		wg.Go(func() { out[k], errs[k] = f.shardStats(short, k) })
	}
	wg.Wait()
	last := f.recent.Load()
	for k, err := range errs {
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case short.Err() == nil || errors.Is(err, frontier.ErrStale):
			return nil, err
		}
		if last != nil {
			out[k] = (*last)[k]
		}
		out[k].Shard, out[k].Silent = k, true
	}
	f.keepRecent(out)
	return out, nil
}
