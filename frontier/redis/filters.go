package redis

import (
	"context"
	"errors"
	"io"
	"strconv"

	"fmt"

	"seine/bloom"
	"seine/frontier"
	"seine/shard"
)

// withFilters calls use with the upkeep of the filters.
func (f *Frontier) withFilters(use func(*bloom.Filters) error) error {
	filters := bloom.New(f.client)
	return errors.Join(use(filters), filters.Close())
}

// FilterState is one filter of a shard.
type FilterState struct {
	Shard  int `json:"shard"`
	Filter int `json:"filter"` // -1: that of contents, whose items are two a page
	bloom.Info
	Fill       float64       `json:"fill"`             // above 1 it grew past its plan
	BitsPerURL float64       `json:"bits_per_url"`     // 0 when empty
	IdealBits  float64       `json:"ideal_bits"`       // log2(1/rate) of the rate that the crawl promises
	Promised   float64       `json:"promised"`         // false positives a probe
	Probe      *bloom.Probe  `json:"probe,omitempty"`  // of random fingerprints, made now, when asked for
	Live       bloom.Quality `json:"live"`             // what fetchers found and share
	Over       bool          `json:"over"`             // Probe, or else Live, proves more than is promised
	Unread     string        `json:"unread,omitempty"` // why Live is empty: what fetchers found cannot be read
	Missing    bool          `json:"missing"`          // a key of the filter is not there: nothing of the shard is admitted
	Stuck      bool          `json:"stuck"`            // a key of it is too large to move to another master
}

// Filters reads the state of every filter of some shards, none are all, and, with probes above 0, asks each
// for so many random fingerprints. The state of a missing filter says so.
// Shards that do not answer are passed over, as of EachShard. Cost: one call a filter and
// one a shard, 0.3 us of the server a probe.
func (f *Frontier) Filters(ctx context.Context, probes int, shards ...int) ([]FilterState, error) {
	var list []FilterState
	err := f.withFilters(func(filters *bloom.Filters) error {
		return frontier.EachShard(ctx, f, shards, func(k int) error {
			set, err := f.FilterSet(ctx, k)
			if err != nil {
				return err
			}
			stored, records, err := f.records(ctx, k)
			unread, err := unreadable(err)
			if err != nil {
				return err
			}
			for j, r := range records {
				s, err := f.filterState(ctx, filters, set, j, probes, bloom.QualityOf(f.plan.ErrorRate, r))
				if err != nil {
					return err
				}
				if s.Filter = j; r.Version == 0 && (stored == nil || stored[strconv.Itoa(j)] != "") {
					s.Unread = unread
				}
				list = append(list, s)
			}
			if set, err = f.ContentSet(ctx, k); err != nil || set.Each == 0 {
				return err
			}
			s, err := f.filterState(ctx, filters, set, 0, probes, bloom.Quality{})
			if s.Filter = ContentsFilter; err == nil && !s.Missing { // else it is made when a fetcher asks
				list = append(list, s)
			}
			return err
		})
	})
	return list, err
}

// filterState is the state of filter j of a set; live is what fetchers found.
func (f *Frontier) filterState(ctx context.Context, filters *bloom.Filters, set bloom.Set, j, probes int, live bloom.Quality) (s FilterState, err error) {
	s = FilterState{Shard: set.Shard, Promised: set.Plan.ErrorRate, IdealBits: set.Plan.IdealBits(), Live: live, Over: live.Over}
	if probes > 0 {
		s.Probe = new(bloom.Probe)
		s.Info, *s.Probe, err = filters.Measure(ctx, set.Shard, probes, set.Filter(j)...)
		s.Over = s.Probe.Exceeds(s.Promised)
	} else {
		s.Info, err = filters.Info(ctx, set.Shard, set.Filter(j)...)
	}
	s.Stuck = s.Largest > f.stuckBytes()
	if errors.Is(err, bloom.ErrMissing) {
		s.Info, s.Probe, s.Over, s.Missing, err = bloom.Info{}, nil, false, true, nil
	}
	s.Fill, s.BitsPerURL = s.Info.Fill(), s.Info.BitsPerURL()
	return s, err
}

// ContentsFilter is the number that a filter of contents has among FilterStates.
const ContentsFilter = -1

// overFilters are those of some shards with a filter that errs more often than the crawl
// allows, as probing found, and what of that cannot be read. Cost: one call a
// shard.
func (f *Frontier) overFilters(ctx context.Context, shards []int) (over []int, unread []string, err error) {
	for _, k := range shards {
		_, records, err := f.records(ctx, k)
		text, err := unreadable(err)
		if err != nil {
			return nil, nil, err
		}
		if text != "" {
			unread = append(unread, text)
		}
		if bloom.QualityOf(f.layout.ErrorRate, records...).Over {
			over = append(over, k)
		}
	}
	return over, unread, nil
}

// lost marks the error of a missing filter.
func lost(err error) error {
	if errors.Is(err, bloom.ErrMissing) {
		return errors.Join(frontier.ErrLostFilter, err)
	}
	return err
}

// stuckBytes is the size of a key above which it cannot move. By default it is 512
// MB: the longest value that Redis takes unless proto-max-bulk-len is raised.
func (f *Frontier) stuckBytes() int64 { return 2 * f.cfg.MaxFilter }

// Stuck names the keys of filters of shard k that are too large to move to another
// master, and their bytes: they grew in a program that had no bound. Cost: one call
// a key.
func (f *Frontier) Stuck(ctx context.Context, set bloom.Set) (keys map[string]int64, err error) {
	keys = make(map[string]int64)
	err = f.withFilters(func(filters *bloom.Filters) error {
		for _, key := range set.All() {
			info, err := filters.Info(ctx, set.Shard, key)
			if err != nil && !errors.Is(err, bloom.ErrMissing) {
				return err
			}
			if info.Bytes > f.stuckBytes() {
				keys[key] = info.Bytes
			}
		}
		return nil
	})
	return keys, err
}

// LostFilters names the keys of a shard's filters that are missing. Cost: one call,
// and one a key when some are.
func (f *Frontier) LostFilters(ctx context.Context, set bloom.Set) (lost []string, err error) {
	k, keys := set.Shard, set.All()
	all := []any{"EXISTS"}
	for _, key := range keys {
		all = append(all, key)
	}
	reply, err := f.client.Do(ctx, k, f.keys[k].Meta(), all...)
	if err != nil || shard.Int(reply) == int64(len(keys)) {
		return nil, err
	}
	for _, key := range keys {
		if reply, err = f.client.Do(ctx, k, key, "EXISTS", key); err != nil {
			return nil, err
		}
		if shard.Int(reply) == 0 {
			lost = append(lost, key)
		}
	}
	return lost, nil
}

// DumpFilters writes the filters of shard k to w. For an exact copy the crawl
// must be paused and nothing leased.
func (f *Frontier) DumpFilters(ctx context.Context, k int, w io.Writer) error {
	set, err := f.FilterSet(ctx, k)
	if err != nil {
		return err
	}
	return f.withFilters(func(filters *bloom.Filters) error {
		return lost(filters.Dump(ctx, set, w))
	})
}

// LoadFilters reads a dump of shard k. Filters that hold URLs are replaced by
// force only.
func (f *Frontier) LoadFilters(ctx context.Context, k int, r io.Reader, force bool) error {
	return f.load(ctx, &f.urls, k, r, force)
}

// DumpContents writes the filter of contents of shard k to w, and reports whether there
// is one.
func (f *Frontier) DumpContents(ctx context.Context, k int, w io.Writer) (there bool, err error) {
	set, err := f.ContentSet(ctx, k)
	if err != nil || set.Each == 0 {
		return false, err
	}
	return true, f.withFilters(func(filters *bloom.Filters) error {
		return filters.Dump(ctx, set, w)
	})
}

// LoadContents reads a dump of the filter of contents of shard k. One that holds
// contents is replaced by force only.
func (f *Frontier) LoadContents(ctx context.Context, k int, r io.Reader, force bool) error {
	return f.load(ctx, &f.contents, k, r, force)
}

// load reads a dump of a family's filters of shard k.
func (f *Frontier) load(ctx context.Context, fam *family, k int, r io.Reader, force bool) error {
	set, err := f.setNow(ctx, fam, k)
	if err != nil {
		return err
	}
	return f.withFilters(func(filters *bloom.Filters) error {
		return filters.Load(ctx, set, r, force, func(each int) error { return f.setEach(ctx, fam, k, set.Each, each) })
	})
}

// Place is where a shard is and how full.
type Place struct {
	frontier.ShardStats
	Filters     int     `json:"filters"`
	FilterItems int64   `json:"filter_items"`
	FilterRoom  int64   `json:"filter_capacity"`
	FilterBytes int64   `json:"filter_bytes"`
	FilterFill  float64 `json:"filter_fill"`  // of the fullest filter
	FiltersLost int     `json:"filters_lost"` // of Filters, those that are missing
}

// Places reads where the shards are and how full, and what keeps each from its work.
// Cost: two calls a shard and one a filter.
func (f *Frontier) Places(ctx context.Context) ([]Place, error) {
	stats, err := f.statsOf(ctx, reportWait, true)
	if err != nil {
		return nil, err
	}
	var answering []int
	for k := range stats {
		if !stats[k].Silent {
			answering = append(answering, k)
		}
	}
	f.tryWrites(ctx, stats, answering)
	filters, err := f.Filters(ctx, 0)
	if err != nil && !errors.Is(err, frontier.ErrPartial) {
		return nil, err
	}
	list := make([]Place, len(stats))
	for k := range stats {
		list[k].ShardStats = stats[k]
		if stats[k].Silent {
			if list[k].Master, err = f.client.Owner(ctx, f.keys[k].Meta()); err != nil {
				list[k].Master = "-"
			}
			list[k].Slot = shard.Slot(f.shards.Tag(k))
		}
	}
	for _, s := range filters {
		if s.Filter == ContentsFilter {
			continue
		}
		p := &list[s.Shard]
		p.Filters++
		p.FilterItems += s.Items
		p.FilterRoom += s.Capacity
		p.FilterBytes += s.Bytes
		p.FilterFill = max(p.FilterFill, s.Fill)
		if s.Missing {
			p.FiltersLost++
		}
	}
	return list, nil
}

// Validate joins all faults of a complete layout, those of its filters too.
func Validate(l frontier.Layout) error {
	err := l.Validate()
	if l.Shards < 1 {
		return err
	}
	if _, fault := planOf(l); fault != nil {
		err = errors.Join(err, fmt.Errorf("frontier: layout: %w", fault))
	}
	return err
}

// planOf is how the filters of a crawl are laid out.
func planOf(l frontier.Layout) (bloom.Plan, error) {
	return bloom.NewPlan(l.PlanURLs, l.ErrorRate, l.Shards)
}
