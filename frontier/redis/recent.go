package redis

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
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
	stats, mine, err := f.sharedReading(ctx)
	switch last := f.recent.Load(); {
	case isLate(ctx, err): // the master that keeps the readings is silent: each reads for itself
		return f.statsInTime(ctx, recentWait)
	case err != nil:
		return nil, err
	case stats != nil:
		f.keepRecent(stats)
		return stats, nil
	case !mine && last != nil:
		return *last, nil // somebody is at it
	}
	if stats, err = f.statsInTime(ctx, recentWait); err != nil {
		return nil, err
	}
	return stats, f.shareReading(ctx, stats)
}

// sharedReading is the last one that serves every program, nil if there is none;
// then mine reports whether it is this program's part to make the next.
func (f *Frontier) sharedReading(ctx context.Context) (stats []frontier.ShardStats, mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, recentWait)
	defer cancel()
	key, claim := shard.RecentKey(f.crawl), shard.RecentClaimKey(f.crawl)
	raw, err := f.client.Do(ctx, noShard, key, "GET", key)
	if err != nil {
		return nil, false, err
	}
	if stats = f.readRecent(raw); stats != nil {
		return stats, false, nil
	}
	if f.readsOnly.Load() {
		return nil, true, nil
	}
	won, err := f.client.Do(ctx, noShard, claim, "SET", claim, 1, "NX", "PX", recentWait.Milliseconds())
	if errors.Is(err, shard.ErrForbidden) { // who may only read counts for itself
		f.readsOnly.Store(true)
		return nil, true, nil
	}
	if isFull(err) {
		err = nil
	}
	return nil, won != nil, err
}

// shareReading lets a reading serve every program. Where the master that keeps it
// is full or silent, or this program may only read, each reads for itself.
func (f *Frontier) shareReading(ctx context.Context, stats []frontier.ShardStats) error {
	if f.readsOnly.Load() {
		return nil
	}
	text, err := json.Marshal(recentStats{f.epoch, stats})
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, recentWait)
	defer cancel()
	key := shard.RecentKey(f.crawl)
	_, err = f.client.Do(short, noShard, key, "SET", key, text, "PX", recentFor.Milliseconds())
	if isFull(err) || isLate(ctx, err) {
		return nil
	}
	return err
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
	return f.statsOf(ctx, wait, false)
}

// statsOf is statsInTime that, where some shards can be read, may go on beside others
// that refuse: they are Silent, and Fault says why.
func (f *Frontier) statsOf(ctx context.Context, wait time.Duration, beside bool) ([]frontier.ShardStats, error) {
	short, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	out, errs := f.eachStats(short)
	last := f.recent.Load()
	beside = beside && slices.Contains(errs, nil)
	for k, err := range errs {
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case short.Err() == nil && !beside && !errors.Is(err, frontier.ErrLostShard), errors.Is(err, frontier.ErrStale), errors.Is(err, shard.ErrLogin):
			return nil, err
		}
		if last != nil {
			out[k] = (*last)[k]
		}
		out[k].Shard, out[k].Silent = k, true
		var lost loss
		if errors.As(err, &lost) {
			out[k].Fault = string(lost)
		} else if !errors.Is(err, context.DeadlineExceeded) {
			out[k].Fault = err.Error()
		}
	}
	f.keepRecent(out)
	return out, nil
}
