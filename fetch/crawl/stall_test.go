package crawl

import "testing"

// TestSinkCannotWrite: nothing is fetched while the sink says that it cannot write, and
// all is when it can.
func TestSinkCannotWrite(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.store.stalled = true
	for _, u := range []string{"http://a.example/", "http://b.example/", "http://c.example/"} {
		r.seed(u)
	}
	crawler := r.worker()
	wait := r.start(crawler)
	until(t, "the sink is what holds", func() bool { return crawler.Progress().Limit == limitSink })
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
