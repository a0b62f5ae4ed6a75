package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seine/shard"
	"seine/shard/shardtest"
)

// TestReportAtTheEnd: a crawl in one process ends with what became of all of it, over
// its runs, and how it ended.
func TestReportAtTheEnd(t *testing.T) {
	t.Parallel()
	holds := func(log string, want ...string) { t.Helper(); holds(t, log, want...) }
	dir := filepath.Join(t.TempDir(), "state")
	pages := chain(t, 3)
	args := []string{"--embedded", "--allow-net", "127.0.0.0/8", "--jitter", "0"}
	_, log := end(t, append(args, "--state", dir, "--delay", "0s", "--seed", pages+"/0")...)
	holds(log, "crawl "+dir+": finished: nothing is left began 20", "fetchers 1 finished")
	holds(log, " URLs 3 known, 3 done, 0 dead", "links 2 found, 0 of them duplicates", "seeds 1 settled; all of them listed", "status 3 200", "seed 200 "+pages+"/0", "largest sites 3 127.0.0.1")
	_, log = end(t, append(args, "--state", dir, "--seed", pages+"/none")...)
	holds(log, "URLs 1 done", "crawl "+dir+": finished: nothing is left began 20", "fetchers 2 finished", " URLs 4 known, 4 done", "seeds 2 settled; all", "1 404")

	url, asked := endless(t)
	args = append(args, "--seed", url+"/")
	_, log = end(t, append(args, "--delay", "0s", "--max-pages", "3")...)
	holds(log, "crawl embedded: --max-pages 3 is reached, 4 URLs are left", "3 done")
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

// holds asks for texts in another whose blanks count as one.
func holds(t *testing.T, text string, want ...string) {
	t.Helper()
	squeezed := strings.Join(strings.Fields(text), " ")
	for _, w := range want {
		if !strings.Contains(squeezed, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}

// TestReportOfRuns: the report of a crawl knows how each of its fetchers ended, though
// none runs any more, and what its seeds wait for.
func TestReportOfRuns(t *testing.T) {
	t.Parallel()
	tool := manager(t)
	t.Run("state", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "state")
		testReportOfRuns(t, tool, []string{"--state", dir}, []string{"--embedded"}, func() {})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server := shardtest.One(t)
		addr := strings.Join(server.Addrs, ",")
		forget := func() { // who was killed counts as live for a while
			c := server.Nodes[0].Client()
			for _, id := range c.ZRange(t.Context(), shard.LiveKey("seine"), 0, -1).Val() {
				c.ZAdd(t.Context(), shard.LiveKey("seine"), redis.Z{Score: 1, Member: id})
			}
		}
		testReportOfRuns(t, tool, []string{"--redis", addr}, []string{"--shards", "2", "--exit-when-done"}, forget)
	})
}

func testReportOfRuns(t *testing.T, tool string, at, run []string, forget func()) {
	report := func(want ...string) {
		t.Helper()
		out, err := exec.Command(tool, append([]string{"report"}, at...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		holds(t, string(out), want...)
	}
	url, asked := endless(t)
	run = append(append(run, at...), "--delay", "1m", "--robots", "ignore", "--seed", url+"/")
	start(t, append(run, "--seed", url+"/second", "--seed", "http://127.0.0.1:1/", "--max-time", "1s")...).wait(t)
	report(": --max-time reached, ", "fetchers 1 --max-time reached", "seeds 1 settled, 2 not yet; all of them listed", "200 "+url+"/ ", "queued "+url+"/second", "queued http://127.0.0.1:1/")

	p := start(t, run...)
	awaitLog(t, p, "seeded")
	report(": it goes on: ", "fetchers 1 --max-time reached, 1 at work", " "+url+"/second")
	p.cmd.Process.Signal(os.Interrupt)
	p.wait(t)
	report(": by a signal, ", "fetchers 1 --max-time reached, 1 by a signal")

	p = start(t, run...)
	awaitLog(t, p, "seeded")
	report("1 at work")
	p.cmd.Process.Kill()
	p.cmd.Wait()
	forget()
	report(": its last fetcher (process ", ") vanished without a word, ", "1 vanished")

	if out, err := exec.Command(tool, append([]string{"set", "--max-pages", "1"}, at...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	start(t, append(run, "--max-pages", "1")...).wait(t)
	report(": --max-pages 1 is reached, ", "1 --max-pages reached")
	if n := asked.Load(); n != 1 {
		t.Errorf("%d pages were asked for, the others are not settled", n)
	}
}
