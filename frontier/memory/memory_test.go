package memory

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
)

// candidate makes the i-th URL of a site.
func candidate(site string, i int) frontier.Candidate {
	url := pageURL(site, i)
	return frontier.Candidate{URL: url, Site: site, Fingerprint: canon.FingerprintOf([]byte(site), []byte(url)), Priority: uint8(i % 2), Depth: 1}
}

func BenchmarkAdmit(b *testing.B) {
	for _, known := range []bool{true, false} {
		b.Run(map[bool]string{true: "known", false: "new"}[known], func(b *testing.B) {
			b.ReportAllocs()
			f, err := New(Config{})
			if err != nil {
				b.Fatal(err)
			}
			const sites, batch = 1000, 100
			made := 0
			next := func(dst []frontier.Candidate) {
				for i := range dst {
					dst[i] = candidate("site"+strconv.Itoa(made/10%sites)+".example", made)
					made++
				}
			}
			candidates := make([]frontier.Candidate, batch)
			verdicts := make([]frontier.Verdict, batch)
			rounds := 1000
			if !known {
				rounds = 0
			}
			all := make([]frontier.Candidate, rounds*batch)
			next(all)
			for i := range rounds {
				f.Admit(b.Context(), 0, all[i*batch:][:batch], verdicts)
			}
			i := 0
			var spent time.Duration
			for b.Loop() {
				if known {
					candidates = all[i%rounds*batch:][:batch]
					i++
				} else {
					next(candidates)
				}
				start := time.Now()
				if err := f.Admit(b.Context(), 0, candidates, verdicts); err != nil {
					b.Fatal(err)
				}
				spent += time.Since(start)
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N)/batch, "ns/URL")
		})
	}
}

// BenchmarkVisit lends and settles visits of eight URLs.
func BenchmarkVisit(b *testing.B) {
	b.ReportAllocs()
	now := time.Now()
	f, err := New(Config{Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	const sites = 1000
	verdicts := make([]frontier.Verdict, 100)
	candidates := make([]frontier.Candidate, 100)
	made := 0
	fill := func() {
		for i := range candidates {
			candidates[i] = candidate("site"+strconv.Itoa(made/100%sites)+".example", made)
			made++
		}
		f.Admit(ctx, 0, candidates, verdicts)
	}
	for range 10 * sites {
		fill()
	}
	urls := 0
	var spent time.Duration
	for b.Loop() {
		start := time.Now()
		reply, err := f.Tick(ctx, 0, frontier.TickRequest{Want: 16})
		if err != nil {
			b.Fatal(err)
		}
		visits, err := f.Visit(ctx, 0, reply.Due, frontier.VisitLimits{URLs: 8})
		if err != nil {
			b.Fatal(err)
		}
		settle := make([]frontier.Settlement, len(visits))
		for i, v := range visits {
			settle[i] = frontier.Settlement{Lease: v.Lease, Free: &frontier.Release{}}
			for _, it := range v.Items {
				settle[i].Outcomes = append(settle[i].Outcomes, frontier.Outcome{Index: it.Index})
			}
			urls += len(v.Items)
		}
		if _, err := f.Settle(ctx, 0, settle); err != nil {
			b.Fatal(err)
		}
		spent += time.Since(start)
		now = now.Add(2 * time.Millisecond)
		for f.shards[0].stats.Queued < 100*sites {
			fill()
		}
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(urls), "ns/URL")
}

// BenchmarkSites measures the memory of sites with one URL each.
func BenchmarkSites(b *testing.B) {
	for b.Loop() {
		f, _ := New(Config{})
		const sites = 100_000
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		verdicts := make([]frontier.Verdict, 1)
		for i := range sites {
			f.Admit(b.Context(), 0, []frontier.Candidate{candidate("site"+strconv.Itoa(i)+".example", i)}, verdicts)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/sites, "bytes/site")
		runtime.KeepAlive(f)
	}
}
