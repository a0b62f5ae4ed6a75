package crawl

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"seine/frontier"
)

// TestLimitedBy: each bound is named in a situation where it holds.
func TestLimitedBy(t *testing.T) {
	for _, c := range []struct {
		name, want string
		set        func(r *rig, m *meddler, w *web, end <-chan struct{})
	}{
		{"nothing to do", limitEmpty, func(*rig, *meddler, *web, <-chan struct{}) {}},
		{"a site's delay", limitPoliteness, func(r *rig, _ *meddler, w *web, _ <-chan struct{}) {
			w.tree("slow.example", 50)
			r.seed("http://slow.example/p0")
		}},
		{"few workers, sites that do not answer", limitNetwork, func(r *rig, _ *meddler, w *web, end <-chan struct{}) {
			r.cfg.Concurrency = 2
			w.rest(func(http.ResponseWriter, *http.Request) { <-end })
			r.seed("http://a.example/", "http://b.example/", "http://c.example/")
		}},
		{"a shard that does not answer", limitRedis, func(r *rig, m *meddler, _ *web, _ <-chan struct{}) { m.frozen.Store(true) }},
		{"shards that answer late", limitRedis, func(r *rig, m *meddler, w *web, end <-chan struct{}) {
			w.rest(html())
			for i := range 2000 {
				r.seed(fmt.Sprintf("http://s%d.example/", i))
			}
			r.cfg.Concurrency = 8
			m.delay = 100 * time.Millisecond
		}},
		{"a shard without room", limitRedis, func(r *rig, m *meddler, w *web, _ <-chan struct{}) {
			m.full.Store(true)
			w.page("a.example/", "/new")
			r.seed("http://a.example/")
		}},
		{"a shard without room, and an overflow", limitEmpty, func(r *rig, m *meddler, w *web, _ <-chan struct{}) {
			m.full.Store(true)
			r.cfg.Overflow = &shelf{}
			w.page("a.example/", "/new")
			r.seed("http://a.example/")
		}},
		{"an overflow that cannot write", limitSink, func(r *rig, m *meddler, w *web, _ <-chan struct{}) {
			m.full.Store(true)
			r.cfg.Overflow = &shelf{err: errors.New("no room")}
			w.page("a.example/", "/new")
			r.seed("http://a.example/")
		}},
		{"an overflow that cannot write, and that nothing waits for", limitEmpty, func(r *rig, _ *meddler, _ *web, _ <-chan struct{}) {
			r.cfg.Overflow = &shelf{err: errors.New("no room")}
		}},
		{"a sink that cannot write", limitSink, func(r *rig, _ *meddler, _ *web, _ <-chan struct{}) { r.store.stalled = true }},
		{"a sink that is slow", limitSink, func(r *rig, _ *meddler, w *web, _ <-chan struct{}) {
			r.store.hold, r.cfg.OpenBytes = true, 1000
			for i := range 60 {
				w.tree(fmt.Sprintf("s%d.example", i), 4)
				r.seed(fmt.Sprintf("http://s%d.example/p0", i))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, func(s *frontier.Settings) {
				if c.want == limitPoliteness {
					s.Delay = 300 * time.Millisecond
				}
			})
			end := make(chan struct{})
			let := sync.OnceFunc(func() { close(end) })
			defer let()
			m := meddle(r)
			r.cfg.ExitWhenDone = false
			c.set(r, m, w, end)
			crawler := r.worker()
			wait := r.start(crawler)
			// Twice in a row: what is named in passing is not what bounds.
			until(t, c.want+" is named", func() bool { return steady(crawler, c.want) })
			m.frozen.Store(false)
			m.full.Store(false)
			r.store.flush()
			let()
			crawler.Stop()
			if err := wait(); err != nil {
				t.Fatal(err)
			}
		})
	}
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
	before := c.bottleneck.now.Load()
	for end := time.Now().Add(5 * time.Second); c.bottleneck.now.Load() == before && time.Now().Before(end); {
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
	crawler := r.worker()
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
		if named++; crawler.Progress().Limit != limitCPU {
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
	for _, name := range limitNames {
		c.bottleneck.now.Store(&name)
		if want := name == "cpu" || name == "redis"; c.Busy() != want {
			t.Errorf("bound by %s: %v", name, c.Busy())
		}
	}
}
