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

// A site that is leased costs little while it waits.
func BenchmarkLeasedSite(b *testing.B) {
	c := &Crawler{ctx: context.Background()}
	c.policy.Store(&work.Policy{Settings: &frontier.Settings{Delay: time.Second}})
	a := site.NewAgenda(1, func() func(*site.Visit) { return func(*site.Visit) {} }, func() {})
	s := &shard{visits: make(map[string]*site.Visit)}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	for b.Loop() {
		name := "www." + strconv.Itoa(n) + ".example.org"
		leased := frontier.Visit{Lease: frontier.Lease{Token: "0123456789a" + strconv.Itoa(n), Site: name}, Items: make([]frontier.Item, 8)}
		for i := range leased.Items {
			leased.Items[i] = frontier.Item{Index: i, Entry: frontier.Entry{URL: "https://" + name + "/some/path/of/a/page-" + strconv.Itoa(i) + ".html"}}
		}
		v := site.NewVisit(c.ctx, 0, &leased, time.Minute, time.Minute, 8)
		v.Follow(c.policy.Load())
		s.visits[leased.Token] = v
		a.Schedule(v, time.Now().Add(time.Hour))
		n++
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc+after.StackInuse-before.HeapAlloc-before.StackInuse)/float64(n), "B/site")
	runtime.KeepAlive(s)
}

func TestValidate(t *testing.T) {
	if _, err := New(Config{Concurrency: -1, Lease: time.Second}); err == nil {
		t.Error("an empty config is taken")
	}
}

func TestWorkers(t *testing.T) {
	const plenty = 1 << 40
	for _, c := range []struct {
		conns int
		bytes int64
		want  int
	}{
		{1 << 20, plenty, 1024 * runtime.GOMAXPROCS(0)}, {40, plenty, 40}, {1, plenty, 16}, {1 << 20, 64 << 20, 64}, {1 << 20, 1, 16},
	} {
		if n := workers(c.conns, c.bytes); n != c.want {
			t.Errorf("%d connections, %d bytes: %d workers, want %d", c.conns, c.bytes, n, c.want)
		}
	}
}
