package crawl

import (
	"errors"
	"strings"
	"testing"

	"seine/frontier"
	"seine/frontier/canon"
)

// TestOverflowStuck: while the overflow cannot be written, links find room in
// Redis all the same; what is stuck is nobody's trouble then, and is remembered
// once it is written.
func TestOverflowStuck(t *testing.T) {
	r, w, m, s := full(t, nil)
	w.page("a.example/", "/new", "/newer")
	w.page("a.example/new", "/more")
	w.page("a.example/newer")
	w.page("a.example/more")
	r.seed("http://a.example/")
	crawler := r.worker()
	wait := r.start(crawler)
	until(t, "lines wait for the disk", func() bool { return s.written() == 2 })
	s.fail(errors.New("no room on the disk"))
	l := crawler.loopOf(r.fingerprint("http://a.example/new"))
	until(t, "links are taken back", func() bool { return l.admitter.hasParked() && l.overflow.empty() })
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
		if !l.overflow.written.has(r.fingerprint(u)) {
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
	crawler := r.worker()
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
