package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"seine/frontier"
	"seine/shard"
)

// reportWait is how long a report waits for a shard, or for the feed or the list
// of programs.
const reportWait = 3 * time.Second

// Report reads the whole state of the crawl, as far as its masters answer: a
// shard that does not is Silent, and not counted. Cost: a few calls a shard.
func (f *Frontier) Report(ctx context.Context) (*frontier.Report, error) {
	root, err := f.root(ctx)
	if err != nil {
		return nil, err
	}
	f.settings.Store(&root.settings)
	r := &frontier.Report{Crawl: f.crawl, State: root.state, Layout: f.layout, Settings: root.settings.Masked(), Rev: root.rev}
	switch root.paused {
	case "":
	case "all":
		r.State = "paused"
	default:
		r.State = fmt.Sprintf("paused in shard %s", root.paused)
	}
	if r.Shards, err = f.statsOf(ctx, reportWait, true); err != nil {
		return nil, err
	}
	answering := make([]int, 0, len(r.Shards))
	for k := range r.Shards {
		if !r.Shards[k].Silent {
			answering = append(answering, k)
		}
	}
	f.tryWrites(ctx, r.Shards, answering)
	r.Total = frontier.Total(r.Shards)
	for k := range r.Shards {
		if text := r.Shards[k].Pressure(&root.settings); text != "" {
			r.Pressure = append(r.Pressure, text)
		}
	}
	if w := withoutWatermarks(r.Shards); w != nil && root.settings.MemoryHigh > 0 {
		r.Pressure = append(r.Pressure, w.String())
	}
	for _, k := range answering {
		set, err := f.FilterSet(ctx, k)
		if err != nil {
			return nil, err
		}
		lost, err := f.LostFilters(ctx, set)
		if err != nil {
			return nil, err
		}
		r.Lost = append(r.Lost, lost...)
	}
	if r.Lost != nil {
		r.State += ", nothing is admitted: filters are missing"
	}
	if r.Over, r.Unread, err = f.overFilters(ctx, answering); err != nil {
		return nil, err
	}
	if r.Paused, r.Blocked, err = f.countStopped(ctx, answering); err != nil {
		return nil, err
	}
	if r.Dead, err = frontier.DeadTotalsOf(ctx, f, answering); err != nil {
		return nil, err
	}
	return r, f.readBeside(ctx, r)
}

// readBeside reads what lies in no shard: the feed and the programs. All are asked at
// once, so that a silent master costs its time once.
func (f *Frontier) readBeside(ctx context.Context, r *frontier.Report) error {
	var refused int64
	var unread [4]string
	var errs [4]error
	var wg sync.WaitGroup
	wg.Go(func() { refused, unread[0], errs[0] = inTime(ctx, "the refused elements of the feed", f.DeadFeed) })
	wg.Go(func() { r.Feed, unread[1], errs[1] = inTime(ctx, "the feed", f.FeedLen) })
	wg.Go(func() { r.Members, unread[2], errs[2] = inTime(ctx, "the list of programs", f.Members) })
	wg.Go(func() { r.Vanished, unread[3], errs[3] = inTime(ctx, "the list of programs", f.vanished) })
	wg.Wait()
	if refused > 0 {
		r.Dead[frontier.CauseFeed] = refused
	}
	if unread[1] != "" {
		r.Feed = -1
	}
	for _, text := range unread {
		if text != "" && !slices.Contains(r.Unread, text) {
			r.Unread = append(r.Unread, text)
		}
	}
	return errors.Join(errs[:]...)
}

// Began is when the crawl was created.
func (f *Frontier) Began(ctx context.Context) (time.Time, error) {
	r, err := f.root(ctx)
	if err != nil {
		return time.Time{}, err
	}
	began, _ := time.Parse(time.RFC3339, r.raw["created"]) // what is no time is not known
	return began, nil
}

// writeWait is how long a shard may take to say that it takes writes.
const writeWait = time.Second

// tryWrites sets Fault of the shards that take no writes, by a command that writes, and
// does nothing to a key that is never there. Who may only read hears of its server's
// disk instead. Cost: one call a shard, all at once.
func (f *Frontier) tryWrites(ctx context.Context, out []frontier.ShardStats, shards []int) {
	short, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	var wg sync.WaitGroup
	for _, k := range shards {
		wg.Go(func() { out[k].Fault = f.unwritable(short, k) })
	}
	wg.Wait()
}

// unwritable says why a shard takes no writes, "" = it does, as far as is known.
func (f *Frontier) unwritable(ctx context.Context, k int) string {
	key := f.keys[k].Never("write")
	if !f.readsOnly.Load() {
		_, err := f.client.Do(ctx, k, key, "LPUSHX", key, 1)
		if err == nil {
			return ""
		}
		if !errors.Is(err, shard.ErrForbidden) {
			return refusalText(err)
		}
		f.readsOnly.Store(true) // refusals fill the server's log of them
	}
	raw, err := f.client.Do(ctx, k, key, "INFO", "persistence")
	if err != nil {
		return "" // that it may not be asked is no fault
	}
	info := shard.InfoFields(shard.Text(raw))
	switch {
	case info["aof_enabled"] == "1" && info["aof_last_write_status"] == "err":
		return "its server cannot write its append-only file"
	case info["rdb_last_bgsave_status"] == "err":
		return "its server cannot write its snapshots, after which it takes no writes unless it is configured to"
	}
	return ""
}

// refusalText is what a server answered to a call that was repeated until its time ran
// out, or what became of the call.
func refusalText(err error) string {
	text := err.Error()
	if _, last, ok := strings.Cut(text, "last try: "); ok {
		return last
	}
	return text
}

// isLate reports whether err is that of a call whose own time ran out, while that of
// ctx, which it was made of, did not: who was asked is silent.
func isLate(ctx context.Context, err error) bool {
	return ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded)
}

// inTime reads what one key holds. unread says why it cannot be read where the
// report goes on without: it is of another type, or its master is silent.
func inTime[T any](ctx context.Context, what string, read func(context.Context) (T, error)) (v T, unread string, err error) {
	short, cancel := context.WithTimeout(ctx, reportWait)
	defer cancel()
	v, err = read(short)
	switch {
	case errors.Is(err, errForeign):
		return v, err.Error(), nil
	case isLate(ctx, err):
		return v, what + " cannot be read: its master does not answer", nil
	}
	return v, "", err
}

// Stats counts every shard, all at once. Cost: one call a shard.
func (f *Frontier) Stats(ctx context.Context) ([]frontier.ShardStats, error) {
	out, errs := f.eachStats(ctx)
	f.noteLongest(out)
	return out, errors.Join(errs...)
}

// eachStats counts every shard, all at once.
func (f *Frontier) eachStats(ctx context.Context) (out []frontier.ShardStats, errs []error) {
	out, errs = make([]frontier.ShardStats, len(f.keys)), make([]error, len(f.keys))
	var wg sync.WaitGroup
	for k := range f.keys {
		wg.Go(func() { out[k], errs[k] = f.ShardStats(ctx, k) })
	}
	wg.Wait()
	return out, errs
}

// ShardStats counts shard k, at one moment. Cost: one call.
func (f *Frontier) ShardStats(ctx context.Context, k int) (frontier.ShardStats, error) {
	keys := f.keys[k]
	s := frontier.ShardStats{Shard: k, Slot: shard.Slot(f.shards.Tag(k))}
	low, high, longest := f.watermarks(k, f.settings.Load())
	var reply any
	err := f.attempt(ctx, k, "stats", func(ctx context.Context) (err error) {
		reply, err = f.client.Run(ctx, k, statsScript, []string{
			keys.Meta(), keys.Stats(), keys.Leases(), keys.Ready(0), keys.Ready(1), keys.Ready(2), keys.Ready(3), keys.PausedReady(), keys.Walled(),
		}, f.epoch, low, high, longest)
		return err
	})
	if err != nil {
		return s, f.refusal(k, "stats", err)
	}
	list := shard.Array(reply)
	if len(list) != 7 {
		return s, Malformed(k, "stats", reply)
	}
	s.Ready, s.PausedReady, s.Leases = shard.Int(list[0]), shard.Int(list[1]), shard.Int(list[2])
	s.Paused, s.Walled = shard.Int(list[3]) == 1, shard.Int(list[4])
	counters, _ := list[5].([]any)
	for i := 0; i+1 < len(counters); i += 2 {
		if to := s.Counter(shard.Text(counters[i])); to != nil {
			*to = shard.Int(counters[i+1])
		}
	}
	if m, _ := list[6].([]any); len(m) == 5 {
		s.Memory = frontier.Memory{Used: shard.Int(m[0]), Limit: shard.Int(m[1]), OverWatermark: shard.Int(m[2]) == 1, Cutoff: shard.Int(m[3]), Longest: shard.Int(m[4])}
	}
	s.Master, err = f.client.Owner(ctx, keys.Meta())
	if err != nil {
		return s, &shard.Error{Shard: k, Op: "stats", Err: err}
	}
	return s, nil
}
