//go:build linux

package chaos

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"seine/bench/web"
)

// A long crawl, only in the long form: a million pages, or as long as
// SEINE_CHAOS_SOAK says, 20 minutes by default. What a fetcher uses in the last quarter is what it used in
// the second: memory within 5%, goroutines and descriptors likewise.
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
	w := build(t, setup{web: wide, pages: 1_000_000})
	w.start(3)
	uses := make([][]use, 3)
	tick := time.NewTicker(length / 400)
	defer tick.Stop()
	for range 400 {
		if <-tick.C; !w.allRun() {
			break
		}
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
		if float64(last.memory) > 1.05*float64(second.memory) || float64(last.goroutines) > 1.05*float64(second.goroutines)+10 || last.files > second.files+10 {
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

// use is what a process uses.
type use struct{ memory, goroutines, files int }

func (u use) String() string {
	return fmt.Sprintf("%d MB, %d goroutines, %d files", u.memory>>20, u.goroutines, u.files)
}

func (f *fetcher) uses() use {
	u := use{goroutines: int(f.metric("go_goroutines", ""))}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.cmd.Process.Pid))
	if err != nil {
		f.w.t.Fatalf("%s: %v\n%s", f.name, err, f.tail())
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			u.memory = kb << 10
		}
	}
	fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", f.cmd.Process.Pid))
	u.files = len(fds)
	return u
}

// middle are the medians.
func middle(all []use) use {
	median := func(of func(use) int) int {
		sorted := slices.SortedFunc(slices.Values(all), func(a, b use) int { return cmp.Compare(of(a), of(b)) })
		return of(sorted[len(sorted)/2])
	}
	return use{median(func(u use) int { return u.memory }), median(func(u use) int { return u.goroutines }), median(func(u use) int { return u.files })}
}
