package frontier

import (
	"context"
	"errors"
	"fmt"
)

// Report is a crawl as people want to see it.
type Report struct {
	Crawl    string           `json:"crawl"`
	State    string           `json:"state"` // ready, paused, partly paused; or that filters are missing
	Layout   Layout           `json:"layout"`
	Settings *Settings        `json:"settings"` // secrets masked
	Rev      int64            `json:"rev"`
	Lost     []string         `json:"lost_filters,omitempty"` // filters that are missing, by key
	Over     []int            `json:"filters_over,omitempty"` // shards with a filter that errs more often than the crawl allows
	Unread   []string         `json:"unread,omitempty"`       // why what probing found, the feed or the list of programs cannot be read
	Pressure []string         `json:"pressure,omitempty"`     // shards that are full, what the memory marks do; and where they do nothing
	Total    ShardStats       `json:"total"`
	Shards   []ShardStats     `json:"shards"`
	Dead     map[string]int64 `json:"dead"` // letters kept, by cause
	Paused   int64            `json:"sites_paused"`
	Blocked  int64            `json:"sites_blocked"`
	Feed     int64            `json:"feed"`    // elements that wait, -1 = unread
	Members  []Member         `json:"members"` // nil = unread
}

// Report reads the whole state of the crawl. Cost: a few calls a shard.
func (f *Frontier) Report(ctx context.Context) (*Report, error) {
	root, err := f.root(ctx)
	if err != nil {
		return nil, err
	}
	f.settings.Store(&root.settings)
	r := &Report{Crawl: f.crawl, State: root.state, Layout: f.layout, Settings: root.settings.Masked(), Rev: root.rev}
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
	r.Total = Total(r.Shards)
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
