package redis

import (
	"context"
	"errors"
	"fmt"

	"seine/frontier"
)

// Report reads the whole state of the crawl. Cost: a few calls a shard.
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
	if r.Shards, err = f.Stats(ctx); err != nil {
		return nil, err
	}
	r.Total = frontier.Total(r.Shards)
	for k := range r.Shards {
		if text := r.Shards[k].Pressure(&root.settings); text != "" {
			r.Pressure = append(r.Pressure, text)
		}
	}
	if w := unmarked(r.Shards); w != nil && root.settings.MemoryHigh > 0 {
		r.Pressure = append(r.Pressure, w.String())
	}
	for k := range f.keys {
		lost, err := f.lostFilters(ctx, k)
		if err != nil {
			return nil, err
		}
		for _, j := range lost {
			r.Lost = append(r.Lost, f.keys[k].Filter(j))
		}
	}
	if r.Lost != nil {
		r.State += ", nothing is admitted: filters are missing"
	}
	if r.Over, r.Unread, err = f.overFilters(ctx); err != nil {
		return nil, err
	}
	if r.Paused, r.Blocked, err = f.countStopped(ctx); err != nil {
		return nil, err
	}
	if r.Dead, err = f.DeadTotals(ctx); err != nil {
		return nil, err
	}
	if r.Feed, err = f.FeedLen(ctx); errors.Is(err, errForeign) {
		r.Feed, r.Unread = -1, append(r.Unread, err.Error())
	} else if err != nil {
		return nil, err
	}
	if r.Members, err = f.Members(ctx); errors.Is(err, errForeign) {
		r.Unread, err = append(r.Unread, err.Error()), nil
	}
	return r, err
}

// DeadTotals is the number of dead letters by cause, over all shards.
func (f *Frontier) DeadTotals(ctx context.Context) (map[string]int64, error) {
	totals := map[string]int64{}
	for k := range f.keys {
		counts, err := f.DeadCounts(ctx, k)
		if err != nil {
			return nil, err
		}
		for cause, n := range counts {
			totals[cause] += n
		}
	}
	return totals, nil
}
