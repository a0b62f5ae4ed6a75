package redis

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"seine/frontier"
)

// BenchmarkMarks offers the URLs of 2,000 sites, whose sizes follow a power law,
// to four shards of one server, five times as many as what fills it to the high
// mark of 85, while a little is fetched. It says how full the server became at
// most and in the end, how far the bars of the shards lay apart, and what part of
// the links to queues of some length was turned away, by the bar of the time.
func BenchmarkMarks(b *testing.B) {
	for b.Loop() {
		newFlood(b).run()
	}
}

const floodSites, floodShards, floodRoom = 2000, 4, 3 << 20

type flood struct {
	*stand
	b               *testing.B
	rand            *rand.Rand
	sizes           []float64 // of the sites, counted
	next            []int     // URLs of each site
	limit, peak     int64
	stats           []frontier.ShardStats
	offered, turned [3]int // to queues below half the bar, below the bar, above
}

func newFlood(b *testing.B) *flood {
	f := &flood{stand: marked(b, "", 0, 85, floodShards), b: b, rand: rand.New(rand.NewPCG(1, 2)), next: make([]int, floodSites)}
	for k := range floodShards {
		f.do("DEL", f.keys[k].Filter(0))
		f.do("BF.RESERVE", f.keys[k].Filter(0), "0.000001", 200_000)
	}
	total := 0.0
	for i := range floodSites {
		total += math.Pow(float64(i+1), -1/0.8)
		f.sizes = append(f.sizes, total)
	}
	f.look()
	f.limit = f.stats[0].Memory.Used + floodRoom
	f.do("CONFIG", "SET", "maxmemory", f.limit)
	return f
}

func (f *flood) look() {
	var err error
	if f.stats, err = f.Stats(f.b.Context()); err != nil {
		f.b.Fatal(err)
	}
	f.peak = max(f.peak, f.stats[0].Memory.Used)
}

func (f *flood) run() {
	filled := 0
	for n := 500; filled == 0 || n <= 5*filled; n += 500 {
		var batches [floodShards][]frontier.Candidate
		for range 500 {
			site, _ := slices.BinarySearch(f.sizes, f.rand.Float64()*f.sizes[floodSites-1])
			c := benchCandidate(siteName(site), f.next[site])
			f.next[site]++
			k := f.Of(c.Fingerprint)
			batches[k] = append(batches[k], c)
		}
		for k, batch := range batches {
			f.offer(k, batch)
			f.fetch(k)
		}
		if f.look(); filled == 0 && f.stats[0].Memory.OverWatermark {
			filled = n
		}
	}
	low, high, longest := int64(math.MaxInt64), int64(0), int64(0)
	for _, st := range f.stats {
		low, high, longest = min(low, st.Memory.Cutoff), max(high, st.Memory.Cutoff), max(longest, st.Memory.Longest)
	}
	f.b.ReportMetric(100*float64(f.peak)/float64(f.limit), "peak-%")
	f.b.ReportMetric(100*float64(f.stats[0].Memory.Used)/float64(f.limit), "end-%")
	f.b.ReportMetric(float64(low), "bar-min")
	f.b.ReportMetric(float64(high), "bar-max")
	f.b.ReportMetric(float64(longest), "longest")
	for i, name := range []string{"turned-%-below-half", "turned-%-below", "turned-%-above"} {
		f.b.ReportMetric(100*float64(f.turned[i])/float64(max(f.offered[i], 1)), name)
	}
}

// offer admits a batch and counts what is turned away by the length of its queue.
func (f *flood) offer(k int, batch []frontier.Candidate) {
	lens := make(map[string]int64)
	for _, c := range batch {
		if _, ok := lens[c.Site]; !ok {
			lens[c.Site] = f.number("LLEN", f.keys[k].Queue(c.Site, 2))
		}
	}
	verdicts := make([]frontier.Verdict, len(batch))
	if err := f.Admit(f.b.Context(), k, batch, verdicts); err != nil || slices.Contains(verdicts, frontier.Full) {
		f.b.Fatal(err, verdicts)
	}
	for i, c := range batch {
		at := 2
		switch bar := f.stats[k].Memory.Cutoff; {
		case bar == 0:
			continue
		case lens[c.Site] < bar/2:
			at = 0
		case lens[c.Site] < bar:
			at = 1
		}
		f.offered[at]++
		if verdicts[i] == frontier.Capped {
			f.turned[at]++
		}
	}
}

// fetch settles eight URLs of each of four sites of a shard.
func (f *flood) fetch(k int) {
	r, err := f.Tick(f.b.Context(), k, frontier.TickRequest{Want: 4})
	if err != nil {
		f.b.Fatal(err)
	}
	visits, err := f.Visit(f.b.Context(), k, r.Due, frontier.VisitLimits{URLs: 8})
	if err != nil {
		f.b.Fatal(err)
	}
	for _, v := range visits {
		if _, err := f.Settle(f.b.Context(), k, []frontier.Settlement{all(v, frontier.Done)}); err != nil {
			f.b.Fatal(err)
		}
	}
}
