package frontier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/bloom"
)

// withFilters calls use with the upkeep of the filters and their plan.
func (f *Frontier) withFilters(use func(*bloom.Filters, bloom.Plan) error) error {
	plan, err := f.layout.Plan()
	if err != nil {
		return err
	}
	filters := bloom.New(f.client)
	return errors.Join(use(filters, plan), filters.Close())
}

// FilterState is one filter of a shard.
type FilterState struct {
	Shard  int `json:"shard"`
	Filter int `json:"filter"`
	bloom.Info
	Fill  float64      `json:"fill"`            // above 1 it grew past its plan
	Probe *bloom.Probe `json:"probe,omitempty"` // of random fingerprints, when asked for
	Rate  float64      `json:"rate"`            // false positives a probe that the crawl promises
	Over  bool         `json:"over"`            // the probe proves more
}

// Filters reads the state of every filter and, with probes above 0, asks each
// for so many random fingerprints. A missing filter is ErrLostFilter. Cost: one
// call a filter, 0.3 us of the server a probe.
func (f *Frontier) Filters(ctx context.Context, probes int) ([]FilterState, error) {
	var list []FilterState
	err := f.withFilters(func(filters *bloom.Filters, plan bloom.Plan) error {
		for k := range f.keys {
			for j := range plan.Filters {
				s := FilterState{Shard: k, Filter: j, Rate: plan.ErrorRate}
				key := f.keys[k].Filter(j)
				var err error
				if s.Info, err = filters.Info(ctx, k, key); err != nil {
					return lost(err)
				}
				s.Fill = s.Info.Fill()
				if probes > 0 {
					p, err := filters.Probe(ctx, k, key, probes)
					if err != nil {
						return lost(err)
					}
					s.Probe, s.Over = &p, p.Exceeds(plan.ErrorRate)
				}
				list = append(list, s)
			}
		}
		return nil
	})
	return list, err
}

// lost marks the error of a missing filter.
func lost(err error) error {
	if errors.Is(err, bloom.ErrMissing) {
		return errors.Join(ErrLostFilter, err)
	}
	return err
}

// lostFilters are the filters of shard k that are missing, by number. Cost: one
// call, and one a filter when some are.
func (f *Frontier) lostFilters(ctx context.Context, k int) (lost []int, err error) {
	all := []any{"EXISTS"}
	for j := range f.layout.Filters {
		all = append(all, f.keys[k].Filter(j))
	}
	reply, err := f.client.Do(ctx, k, f.keys[k].Meta(), all...)
	if err != nil || replyInt(reply) == int64(f.layout.Filters) {
		return nil, err
	}
	for j := range f.layout.Filters {
		key := f.keys[k].Filter(j)
		if reply, err = f.client.Do(ctx, k, key, "EXISTS", key); err != nil {
			return nil, err
		}
		if replyInt(reply) == 0 {
			lost = append(lost, j)
		}
	}
	return lost, nil
}

// DumpFilters writes the filters of shard k to w. For an exact copy the crawl
// must be paused and nothing on loan.
func (f *Frontier) DumpFilters(ctx context.Context, k int, w io.Writer) error {
	return f.withFilters(func(filters *bloom.Filters, plan bloom.Plan) error {
		return lost(filters.Dump(ctx, k, f.keys[k], plan, w))
	})
}

// LoadFilters reads a dump of shard k. Filters that hold URLs are replaced by
// force only.
func (f *Frontier) LoadFilters(ctx context.Context, k int, r io.Reader, force bool) error {
	return f.withFilters(func(filters *bloom.Filters, plan bloom.Plan) error {
		return filters.Load(ctx, k, f.keys[k], plan, r, force)
	})
}

// Place is where a shard is and how full.
type Place struct {
	ShardStats
	Filters     int     `json:"filters"`
	FilterItems int64   `json:"filter_items"`
	FilterRoom  int64   `json:"filter_capacity"`
	FilterBytes int64   `json:"filter_bytes"`
	FilterFill  float64 `json:"filter_fill"` // of the fullest filter
}

// Places reads where the shards are and how full. Cost: a call a shard and a
// filter.
func (f *Frontier) Places(ctx context.Context) ([]Place, error) {
	stats, err := f.Stats(ctx)
	if err != nil {
		return nil, err
	}
	filters, err := f.Filters(ctx, 0)
	if err != nil {
		return nil, err
	}
	list := make([]Place, len(stats))
	for k := range stats {
		list[k].ShardStats = stats[k]
	}
	for _, s := range filters {
		p := &list[s.Shard]
		p.Filters++
		p.FilterItems += s.Items
		p.FilterRoom += s.Capacity
		p.FilterBytes += s.Bytes
		p.FilterFill = max(p.FilterFill, s.Fill)
	}
	return list, nil
}

// filterTime bounds how long a scrape of metrics waits for the filters.
const filterTime = 2 * time.Second

// WriteFilterMetrics writes items, capacity and bytes of every shard's filters
// in Prometheus text format; nothing while Redis does not answer.
func (f *Frontier) WriteFilterMetrics(out io.Writer) {
	ctx, cancel := context.WithTimeout(context.Background(), filterTime)
	defer cancel()
	list, err := f.Filters(ctx, 0)
	if err != nil {
		return
	}
	sums := make([]bloom.Info, len(f.keys))
	for _, s := range list {
		sums[s.Shard].Items += s.Items
		sums[s.Shard].Capacity += s.Capacity
		sums[s.Shard].Bytes += s.Bytes
	}
	for k, s := range sums {
		metrics.WriteGaugeUint64(out, fmt.Sprintf(`seine_bloom_items{shard="%d"}`, k), uint64(s.Items))
		metrics.WriteGaugeUint64(out, fmt.Sprintf(`seine_bloom_capacity_items{shard="%d"}`, k), uint64(s.Capacity))
		metrics.WriteGaugeUint64(out, fmt.Sprintf(`seine_bloom_bytes{shard="%d"}`, k), uint64(s.Bytes))
	}
}
