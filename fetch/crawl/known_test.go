package crawl

import (
	"fmt"
	"sync/atomic"
	"testing"

	"seine/frontier"
	"seine/frontier/canon"
)

// TestEpoch: what a shard once called known counts no longer when it may have
// lost that, also while no link brings a call for admission; what other shards
// did goes on to count.
func TestEpoch(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Scope = "any" })
	var epochs [3]atomic.Uint64
	r.cfg.Epoch = func(k int) uint64 { return epochs[k].Load() }
	r.cfg.ExitWhenDone = false
	m := frontier.NewMaker(r.queue.Layout())
	of := make(map[int]canon.Fingerprint) // a link of each shard
	var links []string
	for i := 0; len(of) < 3; i++ {
		next, err := m.Make(fmt.Sprintf("http://s%d.example/next", i))
		if err != nil {
			t.Fatal(err)
		}
		if k := r.queue.Of(next.Fingerprint); of[k] == (canon.Fingerprint{}) {
			of[k] = next.Fingerprint
			links = append(links, next.URL)
		}
	}
	w.page("a.example/", links...)
	r.seed("http://a.example/")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "the page is done", func() bool { return len(r.store.by(t)) > 0 && r.stats().Open == 0 })
	known := func(k int) bool { return crawler.knows(of[k]) }
	for k := range 3 {
		if !known(k) {
			t.Fatalf("an admitted link of shard %d is not known", k)
		}
	}
	before := crawler.shards[1].CheckEpoch()
	epochs[1].Add(1)
	until(t, "what shard 1 knew is forgotten", func() bool { return !known(1) })
	crawler.known.Remember(of[1], before)
	if known(1) {
		t.Error("an answer of before is remembered")
	}
	if !known(0) || !known(2) {
		t.Error("what other shards know is forgotten")
	}
	crawler.known.Remember(of[1], before+1)
	if !known(1) {
		t.Error("an answer of now is not remembered")
	}
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}
