package frontier

import (
	"fmt"
	"io"

	"github.com/VictoriaMetrics/metrics"
)

// shardGauges are what is shown of each shard, by the name of the metric.
var shardGauges = []struct {
	name  string
	value func(*ShardStats) int64
}{
	{"seine_frontier_ready_sites", func(s *ShardStats) int64 { return s.Ready }},
	{"seine_frontier_paused_ready_sites", func(s *ShardStats) int64 { return s.PausedReady }},
	{"seine_frontier_leased_sites", func(s *ShardStats) int64 { return s.Leases }},
	{"seine_frontier_walled_sites", func(s *ShardStats) int64 { return s.Walled }},
	{"seine_frontier_queued_urls", func(s *ShardStats) int64 { return s.Queued }},
	{"seine_frontier_recrawl_urls", func(s *ShardStats) int64 { return s.Recrawls }},
	{"seine_frontier_waiting_urls", func(s *ShardStats) int64 { return s.Waiting }},
	{"seine_frontier_open_urls", func(s *ShardStats) int64 { return s.Open }},
	{"seine_frontier_known_urls", func(s *ShardStats) int64 { return s.Known }},
	{"seine_frontier_done_urls", func(s *ShardStats) int64 { return s.Done }},
	{"seine_frontier_dead_urls", func(s *ShardStats) int64 { return s.Dead }},
	{"seine_frontier_lost_urls", func(s *ShardStats) int64 { return s.Lost }},
	{"seine_frontier_retried_urls", func(s *ShardStats) int64 { return s.Retried }},
	{"seine_frontier_blocked_urls", func(s *ShardStats) int64 { return s.Blocked }},
	{"seine_frontier_turned_away_urls", func(s *ShardStats) int64 { return s.TurnedAway }},
	{"seine_frontier_queue_cap_urls", func(s *ShardStats) int64 { return s.Memory.Cutoff }},
	{"seine_frontier_memory_bytes", func(s *ShardStats) int64 { return s.Memory.Used }},
	{"seine_frontier_memory_limit_bytes", func(s *ShardStats) int64 { return s.Memory.Limit }},
	{"seine_frontier_paused", func(s *ShardStats) int64 { return flag(s.Paused) }},
	{"seine_frontier_silent", func(s *ShardStats) int64 { return flag(s.Silent) }},
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// WriteMetrics writes what was counted of each shard in Prometheus text format.
// Of a silent shard the counts are older ones, so that sums do not jump.
func WriteMetrics(out io.Writer, shards []ShardStats) {
	for _, g := range shardGauges {
		for i := range shards {
			s := &shards[i]
			metrics.WriteGaugeUint64(out, fmt.Sprintf(`%s{shard="%d"}`, g.name, s.Shard), uint64(max(g.value(s), 0)))
		}
	}
}
