package frontier

import (
	"math"
	"math/rand/v2"
	"testing"
)

// BenchmarkMarks offers the URLs of 2,000 sites, whose sizes follow a power law,
// to four shards of one server, five times as many as what fills it to the high
// mark of 85, while a little is fetched. It says how full the server became at
// most and in the end, how far the bars of the shards lay apart, and what part of
// the links to queues of some length was turned away, by the bar of the time.
func BenchmarkMarks(b *testing.B) {
	for b.Loop() {
		benchFlood(b)
	}
}

func benchFlood(b *testing.B) {
	const sites, shards, room = 2000, 4, 3 << 20
	s := marked(b, "", 0, 85, shards)
	for k := range shards {
		s.do("DEL", s.keys[k].Filter(0))
		s.do("BF.RESERVE", s.keys[k].Filter(0), "0.000001", 200_000)
	}
	next, sum := make([]int, sites), make([]float64, sites)
	for i := range sum {
		sum[i] = math.Pow(float64(i+1), -1/0.8)
		if i > 0 {
			sum[i] += sum[i-1]
		}
	}
	pick := func(r *rand.Rand) int {
		x := r.Float64() * sum[sites-1]
		lo, hi := 0, sites-1
		for lo < hi {
			if mid := (lo + hi) / 2; sum[mid] < x {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		return lo
	}
	r := rand.New(rand.NewPCG(1, 2))
	var offered, turned [3]int // below half the bar, below the bar, above
	stats, _ := s.Stats(b.Context())
	limit := stats[0].Memory.Used + room
	s.do("CONFIG", "SET", "maxmemory", limit)
	peak, filled, verdicts := int64(0), 0, make([]Verdict, 500)
	for n := 0; filled == 0 || n < 5*filled; {
		batches := make([][]Candidate, shards)
		var of [shards][]int
		for range 500 {
			site := pick(r)
			c := benchCandidate(siteName(site), next[site])
			k := s.Of(c.Fingerprint)
			batches[k], of[k] = append(batches[k], c), append(of[k], site)
			next[site]++
		}
		n += 500
		for k, batch := range batches {
			lens := make(map[int]int64)
			for _, site := range of[k] {
				if _, ok := lens[site]; !ok {
					lens[site] = s.number("LLEN", s.keys[k].Queue(siteName(site), 2))
				}
			}
			v := verdicts[:len(batch)]
			if err := s.Admit(b.Context(), k, batch, v); err != nil {
				b.Fatal(err)
			}
			bar := stats[k].Memory.Bar
			for i, site := range of[k] {
				if bar == 0 {
					continue
				}
				at := 2
				switch {
				case lens[site] < bar/2:
					at = 0
				case lens[site] < bar:
					at = 1
				}
				offered[at]++
				if v[i] == Capped {
					turned[at]++
				}
				if v[i] == Full {
					b.Fatal("full")
				}
			}
			for _, v := range s.visitOf(b, k, 4) {
				if _, err := s.Settle(b.Context(), k, []Settlement{all(v, Done)}); err != nil {
					b.Fatal(err)
				}
			}
		}
		stats, _ = s.Stats(b.Context())
		peak = max(peak, stats[0].Memory.Used)
		if filled == 0 && stats[0].Memory.Pressed {
			filled = n
		}
	}
	low, high, longest := int64(math.MaxInt64), int64(0), int64(0)
	for _, st := range stats {
		low, high, longest = min(low, st.Memory.Bar), max(high, st.Memory.Bar), max(longest, st.Memory.Longest)
	}
	b.ReportMetric(100*float64(peak)/float64(limit), "peak-%")
	b.ReportMetric(100*float64(stats[0].Memory.Used)/float64(limit), "end-%")
	b.ReportMetric(float64(low), "bar-min")
	b.ReportMetric(float64(high), "bar-max")
	b.ReportMetric(float64(longest), "longest")
	b.ReportMetric(float64(filled), "filled")
	for i, name := range []string{"turned-%-below-half", "turned-%-below", "turned-%-above"} {
		b.ReportMetric(100*float64(turned[i])/float64(max(offered[i], 1)), name)
	}
}

// visitOf borrows from so many sites of shard k.
func (s *stand) visitOf(t testing.TB, k, sites int) []Visit {
	t.Helper()
	r, err := s.Tick(t.Context(), k, TickRequest{Want: sites})
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Visit(t.Context(), k, r.Due, VisitLimits{URLs: 8})
	if err != nil {
		t.Fatal(err)
	}
	return v
}
