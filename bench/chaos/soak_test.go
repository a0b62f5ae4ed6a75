//go:build linux

package chaos

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"seine/bench/load"
	"seine/bench/web"
)

// A long crawl, only in the long form: a million pages, and not longer than
// SEINE_CHAOS_SOAK says, 20 minutes by default. What a fetcher uses in the last
// quarter is what it used in the second: what lives on its heap within 5%, its
// resident memory within 25%, goroutines and descriptors likewise.
func TestSoak(t *testing.T) {
	if !long() {
		t.Skip("SKIPPED, takes 20 minutes: SEINE_CHAOS=long runs it")
	}
	length := 20 * time.Minute
	if s := os.Getenv("SEINE_CHAOS_SOAK"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal("SEINE_CHAOS_SOAK: ", err)
		}
	}
	wide := web.Config{Sites: 200, Exponent: 3, Links: 20, New: 0.3, Features: web.Gentle, CrawlDelay: 10 * time.Millisecond}
	w := build(t, setup{web: wide, pages: 1_000_000, delay: time.Millisecond})
	w.start(3)
	uses := make([][]use, 3)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(length); time.Now().Before(end) && w.allRun(); <-tick.C {
		for i, f := range w.fetchers {
			uses[i] = append(uses[i], f.uses())
		}
	}
	for i, f := range w.fetchers {
		n := len(uses[i])
		if n < 100 {
			t.Fatalf("%s ended after %d looks", f.name, n)
		}
		second, last := middle(uses[i][n/4:n/2]), middle(uses[i][n*3/4:])
		w.note(f.name, fmt.Sprintf("%v, was %v", last, second))
		if float64(last.live) > 1.05*float64(second.live) || float64(last.memory) > 1.25*float64(second.memory) || float64(last.goroutines) > 1.05*float64(second.goroutines)+10 || last.files > second.files+10 {
			t.Errorf("%s grows: %v in the second quarter, %v in the last", f.name, second, last)
		}
	}
	if w.allRun() {
		for _, f := range w.fetchers {
			f.kill() // what is left of the web would take hours
		}
	}
	for _, f := range w.fetchers {
		<-f.ended
	}
	w.note("requests", len(w.web.Log()))
	w.check()
	w.print(append([]row{{"seed", w.seed}}, w.rows...))
}

// allRun says whether no fetcher has come to the end of the web.
func (w *world) allRun() bool {
	return !slices.ContainsFunc(w.fetchers, func(f *fetcher) bool { return !f.running() })
}

// use is what a process uses: bytes of its heap that the last collection found
// alive, and of memory that it has of the system, which comes and goes with the
// pace of collections.
type use struct{ live, memory, goroutines, files int }

func (u use) String() string {
	return fmt.Sprintf("%.1f MB alive, %d MB resident, %d goroutines, %d files", float64(u.live)/(1<<20), u.memory>>20, u.goroutines, u.files)
}

func (f *fetcher) uses() use {
	// The next collection is due when the heap has doubled.
	u := use{live: int(f.metric("go_memstats_next_gc_bytes", "") / 2), goroutines: int(f.metric("go_goroutines", ""))}
	pid := f.cmd.Process.Pid
	u.memory = int(load.Memory(pid, "VmRSS"))
	if u.memory == 0 {
		f.w.t.Fatalf("%s has ended\n%s", f.name, f.tail())
	}
	u.files, _ = load.Files(pid)
	return u
}

// middle are the medians.
func middle(all []use) use {
	median := func(of func(use) int) int {
		sorted := slices.SortedFunc(slices.Values(all), func(a, b use) int { return cmp.Compare(of(a), of(b)) })
		return of(sorted[len(sorted)/2])
	}
	return use{median(func(u use) int { return u.live }), median(func(u use) int { return u.memory }), median(func(u use) int { return u.goroutines }), median(func(u use) int { return u.files })}
}
