package crawl

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"seine/fetch/crawl/internal/watch"
	"seine/frontier"
	"seine/frontier/canon"
)

// shelf is an overflow that holds what it is given until let is called.
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

// fail says from now on that nothing can be written.
func (s *shelf) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
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
	t.Parallel()
	r, w, m, s := full(t, func(s *frontier.Settings) { s.Scope = "any" })
	for _, host := range []string{"a", "b", "c"} {
		w.page(host+".example/", "http://x.example/new?a=\"b\\c&d")
		w.page(host+".example/same", "http://x.example/new?a=\"b\\c&d")
	}
	r.seed("http://a.example/", "http://b.example/")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "both pages wait for one line", func() bool {
		waiting := 0
		for _, s := range crawler.shards {
			waiting += s.admitter.Overflow.Waiting()
		}
		return waiting == 2
	})
	if got := crawler.Progress(); got.Limit == watch.LimitRedis || got.Overflow != 0 {
		t.Errorf("limited by %s, %d links in the overflow before they are safe", got.Limit, got.Overflow)
	}
	if n := r.stats().Done; n != 0 {
		t.Errorf("%d pages were settled before their links were safe", n)
	}
	s.let(nil)
	until(t, "both pages are settled", func() bool { return r.stats().Done == 2 })
	r.seed("http://c.example/", "http://a.example/same")
	until(t, "pages with a link that is safe are settled", func() bool { return r.stats().Done == 4 })
	if err := crawler.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "go to the overflow") {
		t.Errorf("ready: %v", err)
	}
	if n, v := s.written(), metric(t, crawler, "seine_crawl_overflow_candidates_total"); n != 1 || v != "1" {
		t.Errorf("%d lines, metric %s: %q", n, v, s.lines)
	}
	m.full.Store(false)
	r.readBack(s, "x.example/new")
	until(t, "what came back is fetched", func() bool { return r.stats().Done+r.stats().Dead == 5 })
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if n := len(r.store.by(t)); n != 5 {
		t.Errorf("%d records", n)
	}
	checkIdle(t, crawler)
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
		if err := seeder.AddText(r.t.Context(), line); err != nil {
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
	t.Parallel()
	r, w, m, s := full(t, func(s *frontier.Settings) { s.MaxDepth = 2 })
	w.page("a.example/", "/d1")
	w.page("a.example/d1", "/d2", "http://elsewhere.example/")
	w.page("a.example/d2", "/d3")
	r.admit("http://a.example/", func(c *frontier.Candidate) { c.Meta = `{"k":"v"}` })
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "a line waits", func() bool { return s.written() == 1 })
	s.let(nil)
	until(t, "the page is settled", func() bool { return r.stats().Done == 1 })
	m.full.Store(false)
	r.readBack(s, `"depth":1,"seed":false`)
	until(t, "the rest is fetched", func() bool { return r.stats().Done == 3 })
	crawler.Stop()
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
	t.Parallel()
	r, w, m, s := full(t, nil)
	c, err := frontier.NewMaker(r.queue.Layout()).Make("http://fed.example/")
	if err != nil {
		t.Fatal(err)
	}
	f := &fed{meddler: m, item: frontier.FeedItem{Candidate: c}}
	r.cfg.Frontier = f
	w.page("a.example/", "/new")
	r.seed("http://a.example/")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "both wait", func() bool { return s.written() == 2 })
	s.fail(errors.New("no room on the disk"))
	until(t, "the sink's side is named", func() bool { return crawler.Progress().Limit == watch.LimitSink })
	if err := crawler.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "no room on the disk") {
		t.Errorf("ready: %v", err)
	}
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	s.let(errors.New("closed"))
	if got := r.stats(); got.Queued != 1 || got.Done != 0 || f.drained.Load() {
		t.Errorf("%+v, the element is gone: %v", got, f.drained.Load())
	}
	checkIdle(t, crawler)
}

// TestOverflowFeed: an element of the feed leaves it when its line is safe.
func TestOverflowFeed(t *testing.T) {
	r, _, m, s := full(t, nil)
	c, err := frontier.NewMaker(r.queue.Layout()).Make("http://fed.example/")
	if err != nil {
		t.Fatal(err)
	}
	c.Refetch, c.Meta = "feed:1", `{"k":"v"}`
	f := &fed{meddler: m, item: frontier.FeedItem{Candidate: c}}
	r.cfg.Frontier = f
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "its line waits", func() bool { return s.written() == 1 })
	if f.drained.Load() {
		t.Error("the element left the feed before its line was safe")
	}
	s.let(nil)
	until(t, "it leaves the feed", f.drained.Load)
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.lines[0], `"refetch":true,"meta":{"k":"v"}}`) {
		t.Error(s.lines[0])
	}
}

// TestOverflowStuck: while the overflow cannot be written, links find room in
// Redis all the same; what is stuck is nobody's trouble then, and is remembered
// once it is written.
func TestOverflowStuck(t *testing.T) {
	t.Parallel()
	r, w, m, s := full(t, nil)
	w.page("a.example/", "/new", "/newer")
	w.page("a.example/new", "/more")
	w.page("a.example/newer")
	w.page("a.example/more")
	r.seed("http://a.example/")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "lines wait for the disk", func() bool { return s.written() == 2 })
	s.fail(errors.New("no room on the disk"))
	l := crawler.shardOf(r.fingerprint("http://a.example/new"))
	until(t, "links are taken back", func() bool { return l.admitter.HasParked() && l.admitter.Overflow.Waiting() == 0 })
	if err := crawler.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "no room on the disk") || strings.Contains(err.Error(), "go to the overflow") {
		t.Errorf("ready: %v", err)
	}
	m.full.Store(false)
	until(t, "all is fetched", func() bool { return r.stats().Done == 4 })
	if err := crawler.Ready(t.Context()); err != nil {
		t.Errorf("ready, and no link waits: %v", err)
	}
	if n := s.written(); n != 2 {
		t.Errorf("%d lines were given to an overflow that takes none", n)
	}
	s.let(nil)
	for _, u := range []string{"http://a.example/new", "http://a.example/newer"} {
		if !l.admitter.Overflow.HasWritten(r.fingerprint(u)) {
			t.Errorf("%s is in the overflow, and that is forgotten", u)
		}
	}
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	r.checkEmpty()
	checkIdle(t, crawler)
}

// TestOverflowStuckStop: a crawler that stops does not wait for an overflow that
// cannot be written: pages go back, and it says how many.
func TestOverflowStuckStop(t *testing.T) {
	r, w, _, s := full(t, nil)
	w.page("a.example/", "/new")
	r.seed("http://a.example/")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "a line waits for the disk", func() bool { return s.written() == 1 })
	s.fail(errors.New("no room on the disk"))
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if n := crawler.Progress().Returned; n != 1 || r.stats().Queued != 1 {
		t.Errorf("%d pages went back, %+v", n, r.stats())
	}
	s.let(errors.New("closed"))
	checkIdle(t, crawler)
}

func (r *rig) fingerprint(url string) canon.Fingerprint {
	r.t.Helper()
	c, err := frontier.NewMaker(r.queue.Layout()).Make(url)
	if err != nil {
		r.t.Fatal(err)
	}
	return c.Fingerprint
}
