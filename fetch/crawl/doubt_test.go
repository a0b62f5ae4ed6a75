package crawl

import (
	"sync/atomic"
	"testing"

	"seine/frontier"
)

// TestDoubt: what a shard once called known counts no longer when it may have
// lost that, also while no link brings a call for admission.
func TestDoubt(t *testing.T) {
	w := newWeb(t)
	w.page("/", "/next")
	r := newRig(t, w, nil)
	var epoch atomic.Uint64
	r.cfg.Epoch = func(int) uint64 { return epoch.Load() }
	r.cfg.ExitWhenDone = false
	r.seed("http://a.example/")
	worker := r.worker()
	wait := r.start(worker)
	until(t, "both pages are done", func() bool { return r.stats().Done == 2 })
	next, err := frontier.NewMaker(r.queue.Layout()).Make("http://a.example/next")
	if err != nil {
		t.Fatal(err)
	}
	lane := worker.laneOf(next.Fingerprint)
	if !lane.known.has(next.Fingerprint) {
		t.Fatal("an admitted link is not known")
	}
	before := lane.doubt()
	epoch.Add(1)
	until(t, "the cache is emptied", func() bool { return !lane.known.has(next.Fingerprint) })
	lane.remember(before, func() { t.Error("an answer of before is remembered") })
	worker.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}
