package crawl

import (
	"sync/atomic"
	"testing"

	"seine/frontier"
)

// TestEpoch: what a shard once called known counts no longer when it may have
// lost that, also while no link brings a call for admission.
func TestEpoch(t *testing.T) {
	w := newWeb(t)
	w.page("/", "/next")
	r := newRig(t, w, nil)
	var epoch atomic.Uint64
	r.cfg.Epoch = func(int) uint64 { return epoch.Load() }
	r.cfg.ExitWhenDone = false
	r.seed("http://a.example/")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "both pages are done", func() bool { return r.stats().Done == 2 })
	next, err := frontier.NewMaker(r.queue.Layout()).Make("http://a.example/next")
	if err != nil {
		t.Fatal(err)
	}
	l := crawler.loopOf(next.Fingerprint)
	if !l.known.has(next.Fingerprint) {
		t.Fatal("an admitted link is not known")
	}
	before := l.checkEpoch()
	epoch.Add(1)
	until(t, "the cache is emptied", func() bool { return !l.known.has(next.Fingerprint) })
	l.remember(before, func() { t.Error("an answer of before is remembered") })
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}
