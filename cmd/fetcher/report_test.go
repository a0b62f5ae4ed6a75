package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReportAtTheEnd: a crawl in one process ends with what became of all of it, over
// its runs, and how it ended.
func TestReportAtTheEnd(t *testing.T) {
	holds := func(log string, want ...string) {
		t.Helper()
		squeezed := strings.Join(strings.Fields(log), " ")
		for _, w := range want {
			if !strings.Contains(squeezed, w) {
				t.Errorf("no %q in\n%s", w, log)
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "state")
	pages := chain(t, 3)
	args := []string{"--embedded", "--allow-net", "127.0.0.0/8", "--jitter", "0"}
	_, log := end(t, append(args, "--state", dir, "--delay", "0s", "--seed", pages+"/0")...)
	holds(log, "crawl "+dir+": finished began 20")
	holds(log, "ago URLs 3 known, 3 done, 0 dead", "links 2 found, 0 of them duplicates", "seeds 1, all of them listed", "status 3 200", "seed 200 "+pages+"/0", "largest sites 3 127.0.0.1")
	_, log = end(t, append(args, "--state", dir, "--seed", pages+"/none")...)
	holds(log, "URLs 1 done", "crawl "+dir+": finished began 20", "ago URLs 4 known, 4 done", "seeds 2, all", "1 404")

	url, asked := endless(t)
	args = append(args, "--seed", url+"/")
	_, log = end(t, append(args, "--delay", "0s", "--max-pages", "3")...)
	holds(log, "crawl embedded: --max-pages reached, 4 URLs left", "3 done")
	_, log = end(t, append(args, "--delay", "1m", "--max-time", "1s")...)
	holds(log, "crawl embedded: --max-time reached, ")

	p := start(t, append(args, "--delay", "10ms")...)
	for before := asked.Load(); asked.Load() < before+2; {
		time.Sleep(time.Millisecond)
	}
	p.cmd.Process.Signal(os.Interrupt)
	p.wait(t)
	holds(p.log.String(), "crawl embedded: by a signal, ")
}
