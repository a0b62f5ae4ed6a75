package crawl

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/frontier"
)

// shelf is an overflow that holds what it is given until it is told.
type shelf struct {
	mu    sync.Mutex
	lines []string
	held  []func(error)
	hold  bool
	err   error // why nothing can be written
}

func (s *shelf) Write(lines []byte, done func(error)) {
	s.mu.Lock()
	for line := range strings.Lines(string(lines)) {
		s.lines = append(s.lines, line)
	}
	if s.hold {
		s.held = append(s.held, done)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	done(nil)
}

func (s *shelf) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *shelf) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lines)
}

// let answers what is held, and from now on at once.
func (s *shelf) let(err error) {
	s.mu.Lock()
	held := s.held
	s.held, s.hold, s.err = nil, false, nil
	s.mu.Unlock()
	for _, done := range held {
		done(err)
	}
}

// full returns a crawl whose frontier is full, with an overflow.
func full(t *testing.T, change func(*frontier.Settings)) (*rig, *web, *meddler, *shelf) {
	w := newWeb(t)
	r := newRig(t, w, change)
	m, s := meddle(r), &shelf{hold: true}
	m.full.Store(true)
	r.cfg.Overflow, r.cfg.ExitWhenDone = s, false
	return r, w, m, s
}

// TestOverflow: pages are settled when their links are safe in the overflow and
// no sooner, a link is written once whoever names it, and Redis holds nobody up.
func TestOverflow(t *testing.T) {
	r, w, m, s := full(t, func(s *frontier.Settings) { s.Scope = "any" })
	for _, host := range []string{"a", "b", "c"} {
		w.page(host+".example/", "http://x.example/new?a=\"b\\c&d")
		w.page(host+".example/same", "http://x.example/new?a=\"b\\c&d")
	}
	r.seed("http://a.example/", "http://b.example/")
	worker := r.worker()
	wait := r.start(worker)
	until(t, "both pages wait for one line", func() bool {
		waiting := 0
		for _, l := range worker.lanes {
			l.spill.mu.Lock()
			for _, g := range l.spill.under {
				waiting += len(g.links)
			}
			l.spill.mu.Unlock()
		}
		return waiting == 2
	})
	if got := worker.Progress(); got.Limit == limitRedis || got.Overflow != 0 {
		t.Errorf("limited by %s, %d links in the overflow before they are safe", got.Limit, got.Overflow)
	}
	if n := r.stats().Done; n != 0 {
		t.Errorf("%d pages were settled before their links were safe", n)
	}
	s.let(nil)
	until(t, "both pages are settled", func() bool { return r.stats().Done == 2 })
	r.seed("http://c.example/", "http://a.example/same")
	until(t, "pages with a link that is safe are settled", func() bool { return r.stats().Done == 4 })
	if err := worker.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "go to the overflow") {
		t.Errorf("ready: %v", err)
	}
	if n, v := s.written(), metric(t, worker, "seine_crawl_overflow_links_total"); n != 1 || v != "1" {
		t.Errorf("%d lines, metric %s: %q", n, v, s.lines)
	}
	m.full.Store(false)
	r.readBack(s, "x.example/new")
	until(t, "what came back is fetched", func() bool { return r.stats().Done+r.stats().Dead == 5 })
	worker.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if n := len(r.store.by(t)); n != 5 {
		t.Errorf("%d records", n)
	}
	checkIdle(t, worker)
}

// readBack seeds the lines of an overflow.
func (r *rig) readBack(s *shelf, want string) {
	r.t.Helper()
	seeder, err := frontier.NewSeeder(r.queue, frontier.SeedConfig{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, line := range s.lines {
		if !strings.Contains(line, want) {
			r.t.Errorf("a line without %s: %s", want, line)
		}
		if err := seeder.Add(r.t.Context(), line); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := seeder.Flush(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// TestOverflowKeepsDepth: what comes back from the overflow ends at the depth
// that it would have ended at, and is in the scope that it was in.
func TestOverflowKeepsDepth(t *testing.T) {
	r, w, m, s := full(t, func(s *frontier.Settings) { s.MaxDepth = 2 })
	w.page("a.example/", "/d1")
	w.page("a.example/d1", "/d2", "http://elsewhere.example/")
	w.page("a.example/d2", "/d3")
	r.admit("http://a.example/", func(c *frontier.Candidate) { c.Meta = `{"k":"v"}` })
	worker := r.worker()
	wait := r.start(worker)
	until(t, "a line waits", func() bool { return s.written() == 1 })
	s.let(nil)
	until(t, "the page is settled", func() bool { return r.stats().Done == 1 })
	m.full.Store(false)
	r.readBack(s, `"depth":1,"seed":false`)
	until(t, "the rest is fetched", func() bool { return r.stats().Done == 3 })
	worker.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	records := r.store.by(t)
	if d2, ok := records["http://a.example/d2"]; !ok || d2.Depth != 2 || len(records) != 3 {
		t.Errorf("%d records, %+v", len(records), d2)
	}
	r.checkEmpty()
}

// TestOverflowFails: pages whose links will never be safe go back, and elements
// of the feed stay where they are.
func TestOverflowFails(t *testing.T) {
	r, w, m, s := full(t, nil)
	c, err := frontier.NewMaker(r.queue.Layout()).Make("http://fed.example/")
	if err != nil {
		t.Fatal(err)
	}
	f := &fed{meddler: m, item: frontier.FeedItem{Candidate: c}}
	r.cfg.Frontier = f
	w.page("a.example/", "/new")
	r.seed("http://a.example/")
	s.err = errors.New("no room on the disk")
	worker := r.worker()
	wait := r.start(worker)
	until(t, "both wait", func() bool { return s.written() == 2 })
	until(t, "the sink's side is named", func() bool { return worker.Progress().Limit == limitSink })
	if err := worker.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "no room on the disk") {
		t.Errorf("ready: %v", err)
	}
	worker.Stop()
	s.let(errors.New("closed"))
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if got := r.stats(); got.Queued != 1 || got.Done != 0 || f.drained.Load() {
		t.Errorf("%+v, the element is gone: %v", got, f.drained.Load())
	}
	checkIdle(t, worker)
}

// TestOverflowFeed: an element of the feed leaves it when its line is safe.
func TestOverflowFeed(t *testing.T) {
	r, _, m, s := full(t, nil)
	c, err := frontier.NewMaker(r.queue.Layout()).Make("http://fed.example/")
	if err != nil {
		t.Fatal(err)
	}
	c.Again, c.Meta = "feed:1", `{"k":"v"}`
	f := &fed{meddler: m, item: frontier.FeedItem{Candidate: c}}
	r.cfg.Frontier = f
	worker := r.worker()
	wait := r.start(worker)
	until(t, "its line waits", func() bool { return s.written() == 1 })
	if f.drained.Load() {
		t.Error("the element left the feed before its line was safe")
	}
	s.let(nil)
	until(t, "it leaves the feed", f.drained.Load)
	worker.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.lines[0], `"again":true,"meta":{"k":"v"}}`) {
		t.Error(s.lines[0])
	}
}

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
			w.others = func(http.ResponseWriter, *http.Request) { <-end }
			r.seed("http://a.example/", "http://b.example/", "http://c.example/")
		}},
		{"a shard that does not answer", limitRedis, func(r *rig, m *meddler, _ *web, _ <-chan struct{}) { m.frozen.Store(true) }},
		{"shards that answer late", limitRedis, func(r *rig, m *meddler, w *web, end <-chan struct{}) {
			w.others = html()
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
		{"an overflow that cannot write", limitSink, func(r *rig, _ *meddler, _ *web, _ <-chan struct{}) {
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
			worker := r.worker()
			wait := r.start(worker)
			// Twice in a row: what is named in passing is not what bounds.
			until(t, c.want+" is named", func() bool { return steady(worker, c.want) })
			m.frozen.Store(false)
			m.full.Store(false)
			r.store.flush()
			let()
			worker.Stop()
			if err := wait(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// steady reports whether a bound is named for two judgements.
func steady(w *Worker, name string) bool {
	for range 2 {
		before := w.limit.now.Load()
		for end := time.Now().Add(5 * time.Second); w.limit.now.Load() == before && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // between looks
		}
		if w.Progress().Limit != name {
			return false
		}
	}
	return true
}

// TestLimitedByCPU: the processors are what bounds when they are busy, and all
// else goes on.
func TestLimitedByCPU(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.ExitWhenDone = false
	worker := r.worker()
	wait := r.start(worker)
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
	named, share := false, 0.0
	for try := 0; try < 20 && !named; try++ {
		at, used := time.Now(), cpuTime()
		named = steady(worker, limitCPU)
		share = max(share, float64(cpuTime()-used)/float64(time.Since(at)))
	}
	close(end)
	burning.Wait()
	worker.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if !named && share < 0.9 {
		t.Skipf("others keep the processors busy: this process got no more than %.0f%% of one", 100*share)
	}
	if !named {
		t.Errorf("limited by %s at %.0f%% of the processor", worker.Progress().Limit, 100*share)
	}
}
