//go:build linux

package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"seine/extract/sink/frame"
)

// Redis is full from the middle of the crawl on, and fetchers have an overflow:
// they go on until nothing is queued and no page is open, one of them killed in
// the long form. Then there is memory, the files are taken back, and the crawl
// ends with nothing lost.
func TestOverflow(t *testing.T) {
	w := build(t, setup{lease: 10 * time.Second})
	dir := filepath.Join(w.dir, "overflow")
	args := []string{"--overflow", dir, "--no-exit-when-done"}
	w.start(3, args...)
	w.progress(either(150, 400))
	w.limitMemory("1")
	before := w.stats()
	w.waitOverflow()
	if long() {
		w.progress(50)
		f := w.pick()
		f.kill()
		f.start()
	}
	w.until("all that was queued to be settled", func() bool {
		s := w.stats()
		return s.Queued+s.Waiting+s.Open+s.Leases == 0
	})
	after := w.stats()
	if after.Known > before.Known+64 { // some calls were under way
		t.Errorf("%d URLs were admitted beyond maxmemory", after.Known-before.Known)
	}
	if after.Done <= before.Done {
		t.Errorf("nothing was fetched while Redis was full: %d done before, %d after", before.Done, after.Done)
	}
	w.note("settled while full", after.Done-before.Done)
	w.limitMemory("0")
	w.takeBack(dir)
	w.calm()
	named := 0 // one that fetched nothing while Redis was full has no files
	for _, f := range w.fetchers {
		f.cmd.Process.Signal(syscall.SIGTERM)
		f.wait()
		if strings.Contains(f.logged()[f.from:], "--file "+dir+"/*") {
			named++
		}
		f.args = args[:2]
		f.start()
	}
	if named == 0 {
		t.Errorf("no fetcher says how its links are taken back:\n%s", w.fetchers[0].tail())
	}
	v := w.judge()
	w.nothingLost(v)
	w.explained(v)
	for _, n := range w.redis.Nodes {
		if info := fmt.Sprint(n.Do(t, "info", "stats")); !strings.Contains(info, "evicted_keys:0\r") {
			t.Errorf("%s evicted keys", n.Addr)
		}
	}
}

// waitOverflow waits until a fetcher says that links go to the overflow, and
// does not call itself limited by Redis.
func (w *world) waitOverflow() {
	w.t.Helper()
	w.until("a fetcher to write links to its overflow", func() bool {
		for _, f := range w.fetchers {
			if strings.Contains(f.ask("/healthz"), "go to the overflow") && f.metric("seine_crawl_overflow_candidates_total", "") > 0 &&
				f.metric("seine_crawl_limited_by", `bound="redis"`) == 0 {
				return true
			}
		}
		return false
	})
}

// takeBack seeds all files of an overflow, those that are still written too.
func (w *world) takeBack(dir string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("files in %s: %v, %v", dir, files, err)
	}
	open := 0
	for _, f := range files {
		if st, err := os.Stat(f); err != nil || st.Mode().Perm() != 0o600 {
			w.t.Errorf("%s: %v, %v", f, st.Mode(), err)
		}
		if strings.HasSuffix(f, frame.OpenEnd) {
			open++
		}
	}
	w.note("files of links", len(files))
	w.note("of these unfinished", open)
	printed := w.frontier(append([]string{"seed", "--file"}, files...)...)
	w.t.Logf("seeding %d files:\n%s", len(files), printed)
	if s := w.stats(); s.Queued == 0 && s.Open == 0 {
		w.t.Errorf("nothing was taken back: %+v", s)
	}
}
