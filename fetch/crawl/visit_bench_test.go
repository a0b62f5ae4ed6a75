package crawl

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/memory"
)

// BenchmarkVisit is what a leased site takes in a fetcher while it waits for its
// clock after its first request, with eight URLs: heap and stack, the leases
// of the frontier among it, eight workers as well.
func BenchmarkVisit(b *testing.B) {
	const sites = 4000
	for b.Loop() {
		s := frontier.DefaultSettings()
		s.VisitURLs = 8
		s.Delay, s.Robots = time.Second, "ignore"
		q, err := memory.New(memory.Config{Settings: s})
		if err != nil {
			b.Fatal(err)
		}
		maker, v := frontier.NewMaker(q.Layout()), make([]frontier.Verdict, 1)
		for i := range 8 * sites {
			c, err := maker.Make(fmt.Sprintf("http://s%d.example/p%d", i/8, i%8))
			if err != nil {
				b.Fatal(err)
			}
			if err := q.Admit(b.Context(), q.Of(c.Fingerprint), []frontier.Candidate{c}, v); err != nil {
				b.Fatal(err)
			}
		}
		c, err := New(Config{Frontier: q, Fetcher: &canned{[]byte("<p>text")}, Concurrency: 8, Sink: void{}, Exact: true, KnownURLs: 1 << 14})
		if err != nil {
			b.Fatal(err)
		}
		before := inUse()
		ended := make(chan error, 1)
		go func() { ended <- c.Run(b.Context()) }()
		for c.count.Done.Get() < sites {
			time.Sleep(time.Millisecond) // between looks
		}
		b.ReportMetric(float64(inUse()-before)/float64(c.visits.Load()), "B/visit")
		c.Stop()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
	}
}

// inUse is the memory that live objects and stacks take.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
