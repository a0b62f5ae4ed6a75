package memory

import (
	"context"
	"crypto/sha256"
	"fmt"
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

// BenchmarkVisit leases and settles visits of eight URLs.
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
			settle[i] = frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
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
		for f.states[0].stats.Queued < 100*sites {
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

// BenchmarkContents is the memory of the content of a page.
func BenchmarkContents(b *testing.B) {
	for b.Loop() {
		f, _ := New(Config{})
		const pages = 500_000
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		answer := make([]bool, 1)
		for i := range pages {
			sum := sha256.Sum256(fmt.Append(nil, "text", i))
			c := frontier.NewContent(sum[:], fmt.Append(nil, "http://a.example/", i))
			if err := f.Duplicates(b.Context(), f.Of(c.Digest), []frontier.Content{c}, answer); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/pages, "bytes/page")
		runtime.KeepAlive(f)
	}
}

// BenchmarkDisk admits, leases and settles URLs of a crawl on disk, in pages of
// ten new links.
func BenchmarkDisk(b *testing.B) {
	b.ReportAllocs()
	now := time.Now()
	f, err := New(Config{Now: func() time.Time { return now }, Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	const batch = 100
	candidates, verdicts := make([]frontier.Candidate, batch), make([]frontier.Verdict, batch)
	made := 0
	var admitting, leasing time.Duration
	urls := 0
	for b.Loop() {
		for i := range candidates {
			candidates[i] = candidate("site"+strconv.Itoa(made/batch%1000)+".example", made)
			made++
		}
		start := time.Now()
		if err := f.Admit(b.Context(), 0, candidates, verdicts); err != nil {
			b.Fatal(err)
		}
		admitting += time.Since(start)
		start = time.Now()
		reply, _ := f.Tick(b.Context(), 0, frontier.TickRequest{Want: 13})
		visits, err := f.Visit(b.Context(), 0, reply.Due, frontier.VisitLimits{URLs: 8})
		if err != nil {
			b.Fatal(err)
		}
		for _, v := range visits {
			st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
			for _, it := range v.Items {
				st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index})
			}
			urls += len(v.Items)
			if _, err := f.Settle(b.Context(), 0, []frontier.Settlement{st}); err != nil {
				b.Fatal(err)
			}
		}
		leasing += time.Since(start)
		now = now.Add(2 * time.Millisecond)
	}
	b.ReportMetric(float64(admitting.Nanoseconds())/float64(made), "ns/admitted")
	b.ReportMetric(float64(leasing.Nanoseconds())/float64(max(urls, 1)), "ns/fetched")
}

// BenchmarkOpen opens a crawl with a million URLs queued on ten thousand sites.
func BenchmarkOpen(b *testing.B) {
	f, err := New(Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	const urls, sites = 1_000_000, 10_000
	candidates, verdicts := make([]frontier.Candidate, 100), make([]frontier.Verdict, 100)
	for n := 0; n < urls; n += 100 {
		for i := range candidates {
			candidates[i] = candidate("site"+strconv.Itoa(n/100%sites)+".example", n+i)
		}
		if err := f.Admit(b.Context(), 0, candidates, verdicts); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		f = reopened(b, f, false)
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms-to-open")
}

// BenchmarkRecrawl measures the memory of URLs that wait for a recrawl, with an
// ETag of 20 bytes and a Last-Modified, all that is kept of a URL included.
func BenchmarkRecrawl(b *testing.B) {
	for b.Loop() {
		f, _ := New(Config{})
		const urls, sites = 200_000, 200
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		p := f.states[0]
		for n := range urls {
			c := candidate("site"+strconv.Itoa(n%sites)+".example", n)
			next := frontier.Next{Entry: c.Entry(), Key: c.Fingerprint.Key}
			next.Last = frontier.Fetched{Interval: time.Hour, At: 1_800_000_000, Modified: 1_700_000_000, ETag: `"0123456789abcdef01"`, Digest: c.Fingerprint.Key}
			p.know(c.Fingerprint)
			p.keepNext(p.site(c.Site), &next, int64(n))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/urls, "bytes/URL")
		runtime.KeepAlive(f)
	}
}

// BenchmarkQueued measures the memory of a crawl with long queues, all that is
// kept of a URL included.
func BenchmarkQueued(b *testing.B) {
	for b.Loop() {
		f, _ := New(Config{})
		const urls, sites = 1_000_000, 200
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		verdicts := make([]frontier.Verdict, 10)
		candidates := make([]frontier.Candidate, 10)
		for n := 0; n < urls; n += 10 {
			for i := range candidates {
				candidates[i] = candidate("site"+strconv.Itoa(n/10%sites)+".example", n+i)
			}
			f.Admit(b.Context(), 0, candidates, verdicts)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/urls, "bytes/URL")
		runtime.KeepAlive(f)
	}
}
