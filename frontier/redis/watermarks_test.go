package redis

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard/shardtest"
)

// marked is a crawl on one server that evicts nothing, with memory watermarks.
func marked(t testing.TB, kind shardtest.Kind, low, high, shards int) *stand {
	t.Helper()
	s := open(t, shardtest.Start(t, shardtest.Config{Kind: kind, Directives: []string{"maxmemory-policy noeviction"}}), shards, 1)
	s.settings.Store(&frontier.Settings{MemoryLow: low, MemoryHigh: high})
	return s
}

// memory is what Stats says of shard 0.
func (s *stand) memory() frontier.Memory {
	s.t.Helper()
	stats, err := s.Stats(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return stats[0].Memory
}

// fill sets maxmemory so that the server is full to so many per cent.
func (s *stand) fill(percent float64) {
	s.t.Helper()
	s.do("CONFIG", "SET", "maxmemory", 0)
	if percent > 0 {
		s.do("CONFIG", "SET", "maxmemory", int64(100*float64(s.memory().Used)/percent))
	}
}

// TestWatermarks is the truth table of the watermarks: high 60, low 40 per cent of
// maxmemory. Site long has 30 URLs queued, site mid 9, site new none.
func TestWatermarks(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		s := marked(t, kind, 0, 0, 1)
		for _, c := range []struct {
			name    string
			percent float64 // full
			meta    string  // over, longest
			far     uint32  // longest queue of other shards of the server
			waits   bool
			long    string // verdicts of three new URLs of each
			mid     string
			fresh   string
			over    bool
		}{
			{name: "no maxmemory", long: "aaa", mid: "aaa", fresh: "aaa"},
			{name: "below the low mark", percent: 30, long: "aaa", mid: "aaa", fresh: "aaa"},
			{name: "between, never above", percent: 50, long: "aaa", mid: "aaa", fresh: "aaa"},
			{name: "between, was above", percent: 50, meta: "over_watermark 1 longest 30", long: "ccc", mid: "aaa", fresh: "aaa", over: true},
			{name: "between, a queue below the longest grows up to it", percent: 50, meta: "over_watermark 1 longest 32", long: "aac", mid: "aaa", fresh: "aaa", over: true},
			{name: "below again", percent: 30, meta: "over_watermark 1 longest 30", long: "aaa", mid: "aaa", fresh: "aaa"},
			{name: "above: the longest", percent: 62, meta: "longest 30", long: "ccc", mid: "aaa", fresh: "aaa", over: true},
			{name: "above, nothing known: no queue is longer than all", percent: 60.5, long: "aaa", mid: "aaa", fresh: "aaa", over: true},
			{name: "further up: shorter ones", percent: 70, meta: "longest 30", long: "ccc", mid: "ccc", fresh: "aaa", over: true},
			{name: "nearly full: a queue grows to the cutoff in one call", percent: 75, meta: "longest 30", long: "ccc", mid: "ccc", fresh: "aac", over: true},
			{name: "half way to full and beyond: all but the first of a site", percent: 85, meta: "longest 30", long: "ccc", mid: "ccc", fresh: "acc", over: true},
			{name: "who asks keeps them", percent: 75, meta: "longest 30", waits: true, long: "fff", mid: "fff", fresh: "aaf", over: true},
			{name: "queues of other shards are far longer", percent: 70, meta: "longest 30", far: 1 << 20, long: "aaa", mid: "aaa", fresh: "aaa", over: true},
		} {
			t.Run(c.name, func(t *testing.T) {
				s.do("CONFIG", "SET", "maxmemory", 0)
				s.reset(t)
				s.do("SETRANGE", "ballast", 32<<20, "x") // beside which a server's own buffers are little
				s.admit(append(candidates("long.example", 0, 30), candidates("mid.example", 0, 9)...)...)
				if c.meta != "" {
					args := []any{"HSET", s.keys[0].Meta(), "since", time.Now().UnixMilli() + 3_600_000}
					for _, word := range strings.Fields(c.meta) {
						args = append(args, word)
					}
					s.do(args...)
				}
				s.settings.Store(&frontier.Settings{MemoryLow: 40, MemoryHigh: 60})
				s.fill(c.percent)
				s.longest[0].Store(c.far)
				batch := append(candidates("long.example", 29, 33), candidates("mid.example", 9, 12)...)
				batch = append(batch, candidates("new.example", 0, 3)...)
				for i := range batch {
					batch[i].Waits = c.waits
				}
				want := "s" + c.long + c.mid + c.fresh
				if got := s.admit(batch...); got != want {
					t.Fatalf("verdicts %s, want %s; memory %+v", got, want, s.memory())
				}
				turned := int64(strings.Count(want, "c") + strings.Count(want, "f"))
				if got := s.stat("turned_away"); got != turned {
					t.Errorf("turned %d, want %d", got, turned)
				}
				if over := s.do("HGET", s.keys[0].Meta(), "over_watermark") != nil; over != c.over {
					t.Errorf("over %v, want %v", over, c.over)
				}
				s.sound(0)
				queued := s.stat("queued")
				if got, repeated := s.admit(batch...), strings.ReplaceAll(want, "a", "s"); got != repeated || s.stat("queued") != queued {
					t.Errorf("repeated: %s, want %s", got, repeated)
				}
				// What was turned away is not known; what was admitted is.
				s.do("CONFIG", "SET", "maxmemory", 0)
				want = strings.Map(func(r rune) rune {
					if r == 'c' || r == 'f' {
						return 'a'
					}
					return 's'
				}, want)
				if got := s.admit(batch...); got != want {
					t.Errorf("afterwards %s, want %s", got, want)
				}
			})
		}
	})
}

// TestWatermarksOnAFullServer: what the watermarks turn away is turned away there too, all
// else waits, and nothing is written.
func TestWatermarksOnAFullServer(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		s := marked(t, kind, 40, 60, 1)
		s.admit(candidates("a.example", 0, 9)...)
		s.do("CONFIG", "SET", "maxmemory", 1)
		before := s.dump(0)
		for range 2 {
			if got := s.admit(append(candidates("a.example", 8, 10), candidate("b.example", 0))...); got != "scf" {
				t.Errorf("verdicts %s, want scf", got)
			}
		}
		if fmt.Sprint(s.dump(0)) != fmt.Sprint(before) {
			t.Error("admission changed a full server")
		}
	})
}

// TestWatermarksForbidden: where INFO is forbidden watermarks do nothing, and that is logged.
func TestWatermarksForbidden(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		s := marked(t, kind, 1, 2, 1)
		s.admit(candidates("a.example", 0, 9)...)
		s.fill(50)
		if w, err := s.WithoutWatermarks(t.Context()); w != nil || err != nil {
			t.Fatal(w, err)
		}
		s.do("ACL", "SETUSER", "default", "-info")
		if got := s.admit(candidates("a.example", 8, 10)...); got != "sa" {
			t.Errorf("verdicts %s, want sa", got)
		}
		w, err := s.WithoutWatermarks(t.Context())
		if err != nil || w == nil || !strings.Contains(w.String(), "maxmemory") {
			t.Error(w, err)
		}
	})
}

// TestWatermarksSurvive: a shard that was above the high watermark is so still after its
// server was started again, and on the replica that takes over.
func TestWatermarksSurvive(t *testing.T) {
	t.Parallel()
	press := func(t *testing.T, s *stand, nodes []*shardtest.Node) {
		s.settings.Store(&frontier.Settings{MemoryLow: 20, MemoryHigh: 60})
		s.do("SETRANGE", "ballast", 32<<20, "x") // beside which what connections take is little
		s.admit(candidates("a.example", 0, 30)...)
		limit := int64(100 * float64(s.memory().Used) / 61)
		for _, n := range nodes {
			n.Do(t, "CONFIG", "SET", "maxmemory", limit)
		}
		s.admit(candidate("b.example", 0))
		for _, n := range nodes {
			n.Do(t, "CONFIG", "SET", "maxmemory", 2*limit)
		}
	}
	holds := func(t *testing.T, s *stand) {
		t.Helper()
		if m := s.memory(); !m.OverWatermark || m.Cutoff == 0 || m.Cutoff > 30 {
			t.Errorf("%+v", m)
		}
		if got := s.admit(candidates("a.example", 30, 32)...); got != "cc" {
			t.Errorf("verdicts %s, want cc", got)
		}
	}
	t.Run("restart", func(t *testing.T) {
		server := shardtest.Start(t, shardtest.Config{AOF: "always"})
		s := open(t, server, 1, 1)
		press(t, s, server.Nodes)
		holds(t, s)
		limit := s.memory().Limit
		server.Nodes[0].Kill(t)
		server.Nodes[0].Restart(t)
		server.Nodes[0].Do(t, "CONFIG", "SET", "maxmemory", limit)
		holds(t, s)
	})
	t.Run("failover", func(t *testing.T) {
		server := shardtest.WithReplicas(t, 1, 1)
		s := open(t, server, 1, 1)
		press(t, s, server.Nodes)
		holds(t, s)
		server.Failover(t, server.Replicas(0)[0])
		holds(t, s)
	})
}

func TestValidWatermarks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		low, high    int
		fault        string
		LowWatermark int
	}{
		{0, 0, "", 0}, {0, 85, "", 80}, {70, 85, "", 70}, {0, 3, "", 0}, {98, 99, "", 98},
		{85, 85, "below memory-high", 0}, {70, 0, "", 70}, {0, 100, "1 to 99", 0}, {-1, 85, "negative", 0}, {0, -1, "1 to 99", 0},
	} {
		s := frontier.DefaultSettings()
		s.MemoryLow, s.MemoryHigh = c.low, c.high
		err := s.Validate()
		if c.fault == "" && (err != nil || s.LowWatermark() != c.LowWatermark) || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%d:%d: %v, low mark %d", c.low, c.high, err, s.LowWatermark())
		}
	}
}

// TestSeedsWait: seeds that are turned away wait until the watermarks let them in.
func TestSeedsWait(t *testing.T) {
	t.Parallel()
	s := marked(t, shardtest.Redis, 40, 60, 1)
	s.admit(class(candidate("a.example", 0), 0))
	s.fill(90)
	waits := 0
	seeder, err := frontier.NewSeeder(s, frontier.SeedConfig{MinPause: time.Millisecond, OnWait: func(why error, left int) {
		if waits++; !errors.Is(why, frontier.ErrFull) || left != 9 {
			t.Error(why, left)
		}
		if waits == 3 {
			s.fill(30)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		text := candidate("a.example", 1+i).URL
		if i > 4 { // a link that comes back
			text = fmt.Sprintf(`{"url":%q,"depth":2,"seed":false}`, text)
		}
		if err := seeder.AddText(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := seeder.Flush(t.Context()); err != nil || seeder.Counts().Admitted != 9 || seeder.Counts().Capped != 0 || waits != 3 {
		t.Errorf("%v, %+v, waited %d times", err, seeder.Counts(), waits)
	}
}

// A shard without room says so, whether there are marks or not.
func TestPressureFull(t *testing.T) {
	t.Parallel()
	s := frontier.ShardStats{Shard: 2, Master: "m:1", Memory: frontier.Memory{Used: 1005, Limit: 1000}}
	if text := s.Pressure(&frontier.Settings{}); !strings.Contains(text, "shard 2: memory of m:1 at 100.5% of maxmemory, full") {
		t.Errorf("a full shard says %q", text)
	}
	s.Memory.OverWatermark, s.Memory.Cutoff = true, 7
	for _, want := range []string{"maxmemory, full", "; above the high mark of 90%: links to queues of 7 URLs"} {
		if text := s.Pressure(&frontier.Settings{MemoryHigh: 90}); !strings.Contains(text, want) {
			t.Errorf("a full shard above the mark says %q, want %q", text, want)
		}
	}
	s.Memory.OverWatermark, s.Memory.Limit = false, 2000
	if text := s.Pressure(&frontier.Settings{}); text != "" {
		t.Errorf("a shard with room says %q", text)
	}
}

// A shard that does not answer keeps what is known of its master.
func TestNoteLongest(t *testing.T) {
	t.Parallel()
	f := attach(nil, "c", small(3), "e")
	f.noteLongest([]frontier.ShardStats{{Master: "a", Memory: frontier.Memory{Longest: 5}}, {Master: "a", Memory: frontier.Memory{Longest: 7}}, {Master: "b", Memory: frontier.Memory{Longest: 2}}})
	f.noteLongest([]frontier.ShardStats{{Master: "a", Memory: frontier.Memory{Longest: 6}}, {}, {}})
	for k, want := range []uint32{6, 7, 2} {
		if got := f.longest[k].Load(); got != want {
			t.Errorf("shard %d: %d, want %d", k, got, want)
		}
	}
}
