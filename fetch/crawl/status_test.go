package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"seine/fetch"
	"seine/fetch/crawl/internal/watch"
	"seine/frontier"
)

// TestLimitedBy: each bound is named in a situation where it holds. It does not run
// beside other tests, whose processor time would make cpu what bounds.
func TestLimitedBy(t *testing.T) {
	tested := map[string]bool{watch.LimitCPU: true, watch.LimitHandler: true} // by TestLimitedByCPU and TestHandlerHangs
	for _, c := range []struct {
		name, want string
		set        func(r *rig, m *meddler, w *web, end <-chan struct{})
	}{
		{"nothing to do", watch.LimitEmpty, func(*rig, *meddler, *web, <-chan struct{}) {}},
		{"a site's delay", watch.LimitPoliteness, func(r *rig, _ *meddler, w *web, _ <-chan struct{}) {
			w.tree("slow.example", 50)
			r.seed("http://slow.example/p0")
		}},
		{"few workers, sites that do not answer", watch.LimitWorkers, func(r *rig, _ *meddler, w *web, end <-chan struct{}) {
			r.cfg.Concurrency = 2
			w.rest(func(http.ResponseWriter, *http.Request) { <-end })
			r.seed("http://a.example/", "http://b.example/", "http://c.example/")
		}},
		{"answers that do not come", watch.LimitNetwork, func(r *rig, _ *meddler, w *web, end <-chan struct{}) {
			w.rest(func(http.ResponseWriter, *http.Request) { <-end })
			r.seed("http://a.example/")
		}},
		{"a shard that does not answer", watch.LimitRedis, func(r *rig, m *meddler, _ *web, _ <-chan struct{}) { m.frozen.Store(true) }},
		{"shards that answer late", watch.LimitRedis, func(r *rig, m *meddler, w *web, end <-chan struct{}) {
			w.rest(html())
			for i := range 2000 {
				r.seed(fmt.Sprintf("http://s%d.example/", i))
			}
			r.cfg.Concurrency = 8
			m.delay = 100 * time.Millisecond
		}},
		{"a shard without room", watch.LimitRedis, func(r *rig, m *meddler, w *web, _ <-chan struct{}) {
			m.full.Store(true)
			w.page("a.example/", "/new")
			r.seed("http://a.example/")
		}},
		{"a shard without room, and an overflow", watch.LimitEmpty, func(r *rig, m *meddler, w *web, _ <-chan struct{}) {
			m.full.Store(true)
			r.cfg.Overflow = &shelf{}
			w.page("a.example/", "/new")
			r.seed("http://a.example/")
		}},
		{"an overflow that cannot write", watch.LimitSink, func(r *rig, m *meddler, w *web, _ <-chan struct{}) {
			m.full.Store(true)
			r.cfg.Overflow = &shelf{err: errors.New("no room")}
			w.page("a.example/", "/new")
			r.seed("http://a.example/")
		}},
		{"an overflow that cannot write, and that nothing waits for", watch.LimitEmpty, func(r *rig, _ *meddler, _ *web, _ <-chan struct{}) {
			r.cfg.Overflow = &shelf{err: errors.New("no room")}
		}},
		{"no replica that acknowledges", watch.LimitReplica, func(r *rig, m *meddler, w *web, _ <-chan struct{}) {
			err := error(frontier.ErrNotAcked)
			m.admit.Store(&err)
			w.page("a.example/", "/new")
			r.seed("http://a.example/")
		}},
		{"no memory for more visits", watch.LimitMemory, func(r *rig, _ *meddler, w *web, _ <-chan struct{}) {
			r.cfg.MaxVisits = 3
			for i := range 20 {
				w.tree(fmt.Sprintf("s%d.example", i), 40)
				r.seed(fmt.Sprintf("http://s%d.example/p0", i))
			}
		}},
		{"no descriptors", watch.LimitFiles, lacking(fetch.ClassFiles)},
		{"no ports", watch.LimitPorts, lacking(fetch.ClassPorts)},
		{"sites that are left to other fetchers", watch.LimitBind, func(r *rig, _ *meddler, _ *web, _ <-chan struct{}) {
			r.cfg.Fetcher = unbound{r.cfg.Fetcher.(*fetch.Client)}
			bind(r, "*.example", "127.0.0.2")
			r.seed("http://a.example/")
		}},
		{"no resolver", watch.LimitDNS, lacking(fetch.ClassResolver)},
		{"no site answers", watch.LimitUnreachable, func(r *rig, _ *meddler, _ *web, _ <-chan struct{}) {
			r.cfg.Fetcher = deaf{}
			r.seed("http://a.example/", "http://b.example/", "http://c.example/")
		}},
		{"all sites refuse", watch.LimitRefused, func(r *rig, _ *meddler, w *web, _ <-chan struct{}) {
			w.rest(text(429, ""))
			r.seed("http://a.example/", "http://b.example/", "http://c.example/")
		}},
		{"walls stand in place of all sites", watch.LimitWalls, func(r *rig, _ *meddler, w *web, _ <-chan struct{}) {
			w.rest(answered(403, checkpoint))
			r.seed("http://a.example/", "http://b.example/", "http://c.example/")
		}},
		{"all sites refuse robots.txt", watch.LimitRefused, func(r *rig, _ *meddler, w *web, _ <-chan struct{}) {
			w.on("/robots.txt", text(503, ""))
			r.seed("http://a.example/", "http://b.example/", "http://c.example/")
		}},
		{"hosts that share an address", watch.LimitAddress, func(r *rig, _ *meddler, w *web, _ <-chan struct{}) {
			r.cfg.Fetcher = w.client(r.t, 2)
			for i := range 20 {
				w.tree(fmt.Sprintf("s%d.example", i), 40)
				r.seed(fmt.Sprintf("http://s%d.example/p0", i))
			}
		}},
		{"a sink that cannot write", watch.LimitSink, func(r *rig, _ *meddler, _ *web, _ <-chan struct{}) { r.store.stalled = true }},
		{"a full disk under the crawl itself", watch.LimitSink, func(r *rig, _ *meddler, _ *web, _ <-chan struct{}) {
			r.cfg.Fault = func() error { return syscall.ENOSPC }
		}},
		{"a sink that is slow", watch.LimitSink, func(r *rig, _ *meddler, w *web, _ <-chan struct{}) {
			r.store.hold, r.cfg.OpenBytes = true, 1000
			for i := range 60 {
				w.tree(fmt.Sprintf("s%d.example", i), 4)
				r.seed(fmt.Sprintf("http://s%d.example/p0", i))
			}
		}},
	} {
		tested[c.want] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWeb(t)
			r := newRig(t, w, func(s *frontier.Settings) {
				if c.want == watch.LimitPoliteness || c.want == watch.LimitMemory {
					s.Delay = 300 * time.Millisecond
				}
			})
			end := make(chan struct{})
			let := sync.OnceFunc(func() { close(end) })
			defer let()
			m := meddle(r)
			r.cfg.ExitWhenDone = false
			c.set(r, m, w, end)
			crawler := r.crawler()
			wait := r.start(crawler)
			// Twice in a row: what is named in passing is not what bounds.
			until(t, c.want+" is named", func() bool { return steady(crawler, c.want) })
			m.frozen.Store(false)
			m.full.Store(false)
			m.admit.Store(nil)
			r.store.flush()
			let()
			crawler.Stop()
			if err := wait(); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, name := range watch.Limits {
		if !tested[name] {
			t.Errorf("no situation is bound by %s", name)
		}
	}
}

// short is a fetcher that lacks something for more connections.
type short struct {
	fetch.Doer
	class string
}

func (s short) Short() string { return s.class }

// lacking sets up a fetcher that lacks a class.
func lacking(class string) func(*rig, *meddler, *web, <-chan struct{}) {
	return func(r *rig, _ *meddler, _ *web, _ <-chan struct{}) {
		r.cfg.Fetcher = short{r.cfg.Fetcher, class}
	}
}

// deaf is a fetcher whose connections are all refused.
type deaf struct{}

func (deaf) Do(context.Context, *fetch.Request, *fetch.Response, fetch.Handler) error {
	return &fetch.Error{Class: fetch.ClassConnect, Retry: true, Err: syscall.ECONNREFUSED}
}

// steady reports whether a bound is named for two judgements.
func steady(c *Crawler, name string) bool {
	for range 2 {
		judged(c)
		if c.Progress().Limit != name {
			return false
		}
	}
	return true
}

// judged waits for the next judgement.
func judged(c *Crawler) {
	before := c.limit.Found()
	for end := time.Now().Add(5 * time.Second); c.limit.Found() == before && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // between looks
	}
}

// TestLimitedByCPU: the processors are what bounds when they are busy, and all
// else goes on.
func TestLimitedByCPU(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.ExitWhenDone = false
	crawler := r.crawler()
	wait := r.start(crawler)
	end := make(chan struct{})
	var burning sync.WaitGroup
	burning.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-end:
				return
			default:
			}
		}
	})
	judged(crawler) // the first one is of the time before
	named, most := 0, 0.0
	for try := 0; try < 20 && named < 2; try++ {
		at, used := time.Now(), cpuTime()
		judged(crawler)
		share := float64(cpuTime()-used) / float64(time.Since(at))
		most = max(most, share)
		if named++; crawler.Progress().Limit != watch.LimitCPU {
			if named = 0; share > 0.95 { // 0.85 is what counts as busy
				t.Errorf("limited by %s at %.0f%% of the processor", crawler.Progress().Limit, 100*share)
				break
			}
		}
	}
	close(end)
	burning.Wait()
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if named < 2 && !t.Failed() {
		t.Skipf("others keep the processors busy: this process got no more than %.0f%% of one", 100*most)
	}
}

// Work that can wait does so for what it would take away, and for nothing else.
func TestBusy(t *testing.T) {
	c := &Crawler{}
	for _, name := range watch.Limits {
		c.limit.Set(name)
		if want := name == "cpu" || name == "redis"; c.Busy() != want {
			t.Errorf("bound by %s: %v", name, c.Busy())
		}
	}
}

func TestPausedShardsAreSeen(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	crawler := r.crawler()
	if got := crawler.Paused(); got != "" {
		t.Error(got)
	}
	crawler.shards[1].paused.Store(true)
	if got := crawler.Paused(); got != "1 of 3 shards are paused" || crawler.situation(time.Now()).Paused != 1 {
		t.Error(got)
	}
	for _, l := range crawler.shards {
		l.paused.Store(true)
	}
	if got := crawler.Paused(); got != "the crawl is paused" {
		t.Error(got)
	}
	stats := []frontier.ShardStats{{}, {Memory: frontier.Memory{OverWatermark: true}}, {}}
	crawler.stats.Store(&stats)
	crawler.shards[2].Asked(time.Now().Add(-time.Hour))
	if s := crawler.situation(time.Now()); s.OverWatermark != 1 || s.Silent != 1 || s.Full != 0 || s.Shards != 3 || s.HasOverflow {
		t.Errorf("%+v", s)
	}
}

// TestSinkCannotWrite: nothing is fetched while the sink says that it cannot write, and
// all is when it can.
func TestSinkCannotWrite(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.store.stalled = true
	for _, u := range []string{"http://a.example/", "http://b.example/", "http://c.example/"} {
		r.seed(u)
	}
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "the sink is what holds", func() bool { return crawler.Progress().Limit == watch.LimitSink })
	if n := len(w.requests("", false)); n != 0 {
		t.Errorf("%d pages were fetched for a sink that cannot write", n)
	}
	r.store.mu.Lock()
	r.store.stalled = false
	r.store.mu.Unlock()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if n := len(w.requests("", false)); n != 3 {
		t.Errorf("%d pages were fetched afterwards, not 3", n)
	}
}
