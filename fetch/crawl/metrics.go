package crawl

import (
	"fmt"
	"io"

	"github.com/VictoriaMetrics/metrics"

	"seine/frontier"
)

// shardGauges are what is shown of each shard, by the name of the metric.
var shardGauges = []struct {
	name  string
	value func(*frontier.ShardStats) int64
}{
	{"seine_frontier_ready_sites", func(s *frontier.ShardStats) int64 { return s.Ready }},
	{"seine_frontier_held_sites", func(s *frontier.ShardStats) int64 { return s.Held }},
	{"seine_frontier_leased_sites", func(s *frontier.ShardStats) int64 { return s.Leases }},
	{"seine_frontier_queued_urls", func(s *frontier.ShardStats) int64 { return s.Queued }},
	{"seine_frontier_waiting_urls", func(s *frontier.ShardStats) int64 { return s.Waiting }},
	{"seine_frontier_open_urls", func(s *frontier.ShardStats) int64 { return s.Open }},
	{"seine_frontier_known_urls", func(s *frontier.ShardStats) int64 { return s.Known }},
	{"seine_frontier_done_urls", func(s *frontier.ShardStats) int64 { return s.Done }},
	{"seine_frontier_dead_urls", func(s *frontier.ShardStats) int64 { return s.Dead }},
	{"seine_frontier_lost_urls", func(s *frontier.ShardStats) int64 { return s.Lost }},
	{"seine_frontier_turned_urls", func(s *frontier.ShardStats) int64 { return s.Turned }},
	{"seine_frontier_bar_urls", func(s *frontier.ShardStats) int64 { return s.Memory.Bar }},
	{"seine_frontier_memory_bytes", func(s *frontier.ShardStats) int64 { return s.Memory.Used }},
	{"seine_frontier_memory_limit_bytes", func(s *frontier.ShardStats) int64 { return s.Memory.Limit }},
}

// WriteMetrics writes the worker's metrics and its view of the shards in
// Prometheus text format.
func (w *Worker) WriteMetrics(out io.Writer) {
	w.count.set.WritePrometheus(out)
	gauge := func(name string, v int64) { metrics.WriteGaugeUint64(out, name, uint64(max(v, 0))) }
	gauge("seine_crawl_visits_active", w.loaned.Load())
	gauge("seine_crawl_workers", int64(w.slots.size))
	gauge("seine_crawl_workers_busy", int64(w.slots.busy()))
	gauge("seine_crawl_visits_resting", w.resting.Load())
	gauge("seine_crawl_open_bytes", w.flow.held())
	now := w.limit.get()
	for _, name := range limitNames {
		v := int64(0)
		if name == now {
			v = 1
		}
		gauge(fmt.Sprintf("seine_crawl_limited_by{bound=%q}", name), v)
	}
	if stats := w.stats.Load(); stats != nil {
		for _, g := range shardGauges {
			for i := range *stats {
				s := &(*stats)[i]
				gauge(fmt.Sprintf(`%s{shard="%d"}`, g.name, s.Shard), g.value(s))
			}
		}
	}
}
