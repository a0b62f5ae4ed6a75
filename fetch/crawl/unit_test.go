package crawl

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// A site that is lent costs little while it waits.
func BenchmarkLentSite(b *testing.B) {
	c := &Crawler{ctx: context.Background()}
	c.policy.Store(&work.Policy{Settings: &frontier.Settings{Delay: time.Second}})
	c.deadSites = site.NewDeadSites(time.Minute, 0)
	a := site.NewAgenda(1, func(*worker, *visit) {}, func() *worker { return new(worker) }, func() {})
	l := &shardLoop{crawler: c, visits: make(map[string]*visit)}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	for b.Loop() {
		site := "www." + strconv.Itoa(n) + ".example.org"
		lent := frontier.Visit{Lease: frontier.Lease{Token: "0123456789a" + strconv.Itoa(n), Site: site}, Items: make([]frontier.Item, 8)}
		for i := range lent.Items {
			lent.Items[i] = frontier.Item{Index: i, Entry: frontier.Entry{URL: "https://" + site + "/some/path/of/a/page-" + strconv.Itoa(i) + ".html"}}
		}
		v := newVisit(l, lent, time.Minute)
		l.visits[lent.Token] = v
		a.Put(v, time.Now().Add(time.Hour))
		n++
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/float64(n), "B/site")
	runtime.KeepAlive(l)
}

func TestValidate(t *testing.T) {
	if _, err := New(Config{Concurrency: -1, Lease: time.Second}); err == nil {
		t.Error("an empty config is taken")
	}
}
