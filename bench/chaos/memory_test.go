//go:build linux

package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Redis reaches its maxmemory: before the first page, and in the middle of a
// crawl. Admission answers full, which shows in metrics and health, fetchers
// live on, nothing is evicted, and with more memory all goes on without loss.
func TestRedisFull(t *testing.T) {
	w := build(t, setup{lease: 10 * time.Second})
	w.limitMemory("1")
	w.start(3)
	w.waitFull()
	w.limitMemory("0")
	for range either(1, 4) {
		w.progress(either(200, 400))
		w.limitMemory("1")
		before := w.stats()
		w.waitFull()
		w.until("a queued page to be settled", func() bool { return w.stats().Done > before.Done })
		if after := w.stats(); after.Known > before.Known {
			t.Errorf("%d URLs were admitted beyond maxmemory", after.Known-before.Known)
		}
		for _, f := range w.fetchers {
			if open := f.metric("seine_crawl_open_bytes", ""); open < 0 || open > 64<<20 {
				t.Errorf("pages that wait hold %.0f bytes", open)
			}
		}
		w.limitMemory("0")
	}
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	if v.repeats != 0 || v.lost != 0 {
		t.Errorf("full shards made fetchers repeat themselves:\n%s", v.Report)
	}
	for _, n := range w.redis.Nodes {
		if info := fmt.Sprint(n.Do(t, "info", "stats")); !strings.Contains(info, "evicted_keys:0\r") {
			t.Errorf("%s evicted keys", n.Addr)
		}
	}
}

// limitMemory sets maxmemory everywhere; below what is used, everything is full.
func (w *world) limitMemory(bytes string) {
	w.t.Helper()
	for _, n := range w.redis.Nodes {
		n.Do(w.t, "config", "set", "maxmemory", bytes)
	}
	if bytes != "0" {
		w.blows++
	}
}

// waitFull waits until a fetcher says in all places that Redis is full. None may
// have ended.
func (w *world) waitFull() {
	w.t.Helper()
	w.until("a fetcher to say that Redis is full", func() bool {
		for _, f := range w.fetchers {
			if !f.running() {
				w.t.Fatalf("%s ended: %v\n%s", f.name, f.err, f.tail())
			}
			if strings.Contains(f.ask("/healthz"), "has no room: admission answers full") &&
				f.metric("seine_crawl_verdicts_total", `verdict="full"`) > 0 && f.metric("seine_crawl_limited_by", `bound="redis"`) == 1 {
				return true
			}
		}
		return false
	})
}
