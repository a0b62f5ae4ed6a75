package redis

import (
	"context"
	"math"
	"slices"

	"seine/frontier"
	"seine/shard"
)

// watermarks are those of shard k as lua/watermarks.lua reads them.
func (f *Frontier) watermarks(k int, s *frontier.Settings) (low, high int, longest uint32) {
	return s.LowWatermark(), s.MemoryHigh, f.longest[k].Load()
}

// noteLongest keeps, for the shards of each master, the longest queue of any of
// them: they share its memory, so none may turn links away while another's
// queues are far longer. A shard that did not answer keeps what is known of it.
func (f *Frontier) noteLongest(stats []frontier.ShardStats) {
	longest := make(map[string]int64)
	for i := range stats {
		s := &stats[i]
		longest[s.Master] = max(longest[s.Master], s.Memory.Longest)
	}
	for k := range stats {
		if master := stats[k].Master; master != "" {
			f.longest[k].Store(uint32(min(longest[master], math.MaxUint32)))
		}
	}
}

// WithoutWatermarks says where the crawl's memory watermarks do nothing, nil when they hold
// everywhere or there are none; of masters that do not answer it says nothing. Cost: as
// Stats.
func (f *Frontier) WithoutWatermarks(ctx context.Context) (*shard.Warning, error) {
	if f.Settings().MemoryHigh == 0 {
		return nil, nil
	}
	stats, err := f.statsInTime(ctx, recentWait)
	if err != nil {
		return nil, err
	}
	return withoutWatermarks(stats), nil
}

func withoutWatermarks(stats []frontier.ShardStats) *shard.Warning {
	w := &shard.Warning{
		What: "the crawl has memory watermarks, but this server has no maxmemory or does not say it (INFO): they do nothing here",
		Do:   "set maxmemory",
	}
	for i := range stats {
		if s := &stats[i]; s.Memory.Limit == 0 && !s.Silent && !slices.Contains(w.Servers, s.Master) {
			w.Servers = append(w.Servers, s.Master)
		}
	}
	if w.Servers == nil {
		return nil
	}
	slices.Sort(w.Servers)
	return w
}
