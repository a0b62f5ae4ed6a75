package memory

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
)

// The environment that makes the test binary the process to be killed.
const (
	killDir = "SEINE_MEMORY_KILL_DIR"
	killRun = "SEINE_MEMORY_KILL_RUN"
)

func killConfig(dir string) Config {
	return Config{Layout: frontier.Layout{Shards: 2}, Dir: dir, Claim: 10 * time.Millisecond, memTable: 64 << 10} // logs end and tables begin all the time
}

// TestKilledChild is no test but the process that TestKill kills: it crawls and
// says what was acknowledged.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv(killDir)
	if dir == "" {
		t.Skip("runs as a child of TestKill")
	}
	f, err := New(killConfig(dir))
	if err != nil {
		fmt.Println("E", err)
		os.Exit(1)
	}
	var mu sync.Mutex
	say := func(kind string, urls []string) {
		mu.Lock()
		defer mu.Unlock()
		os.Stdout.WriteString(kind + " " + strings.Join(urls, " ") + "\n") // one write(2): whole or not at all
	}
	go childAdmits(f, os.Getenv(killRun), say)
	for range 2 {
		go childFetches(f, say)
	}
	select {}
}

// childAdmits admits new URLs for ever.
func childAdmits(f *Frontier, run string, say func(string, []string)) {
	for n := 0; ; n++ {
		site := "s" + strconv.Itoa(n%40) + ".example"
		var batch []frontier.Candidate
		var urls []string
		for i := range 10 {
			c := candidate(site, n*10+i)
			c.URL += "?run=" + run
			c.Fingerprint = canon.FingerprintOf([]byte(site), []byte(c.URL))
			batch = append(batch, c)
			urls = append(urls, c.URL)
		}
		if err := f.Admit(context.Background(), f.Of(batch[0].Fingerprint), batch, make([]frontier.Verdict, 10)); err != nil {
			say("E", []string{err.Error()})
			return
		}
		say("A", urls)
		if n > 20 {
			time.Sleep(time.Millisecond)
		}
	}
}

// childFetches leases and settles for ever, in two steps at times.
func childFetches(f *Frontier, say func(string, []string)) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for {
		for k := range f.Shards() {
			reply, _ := f.Tick(ctx, k, frontier.TickRequest{Want: 3})
			visits, err := f.Visit(ctx, k, reply.Due, frontier.VisitLimits{URLs: 4})
			if err != nil {
				say("E", []string{err.Error()})
				return
			}
			for _, v := range visits {
				time.Sleep(time.Duration(r.IntN(500)) * time.Microsecond)
				childSettles(f, v, r, say)
			}
		}
	}
}

func childSettles(f *Frontier, v frontier.Visit, r *rand.Rand, say func(string, []string)) {
	st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
	for _, it := range v.Items {
		o := frontier.Outcome{Index: it.Index}
		if r.IntN(8) == 0 {
			o.Kind = frontier.Retry
		}
		st.Outcomes = append(st.Outcomes, o)
	}
	var done []string
	for i, o := range st.Outcomes {
		if o.Kind == frontier.Done {
			done = append(done, v.Items[i].URL)
		}
	}
	say("I", done) // from here on these may be done, reported or not
	settled, err := f.Settle(context.Background(), v.Shard, []frontier.Settlement{st})
	if err != nil {
		say("E", []string{err.Error()})
		return
	}
	for i, ok := range settled[0].Outcomes {
		if !ok {
			say("E", []string{"gone:", v.Items[i].URL})
		}
	}
	say("D", done)
}

// TestKill kills a crawling process with -9 at random moments. Of all that it
// said was admitted nothing may be missing, of all that it said was done
// nothing may come again.
func TestKill(t *testing.T) {
	kills := 25
	if testing.Short() {
		kills = 5
	}
	dir := t.TempDir()
	said := map[string]map[string]bool{"A": {}, "I": {}, "D": {}}
	runs := 0
	for ; runs < kills; runs++ {
		crawlAndKill(t, dir, runs, said)
	}
	if tables, err := filepath.Glob(filepath.Join(dir, storeName, "*.sst")); err != nil || len(tables) == 0 {
		t.Fatal("no tables were written: ", err)
	}
	left := drainKilled(t, dir)
	admitted, intended, done := said["A"], said["I"], said["D"]
	lost, returned, unreported := 0, 0, 0
	for url := range admitted {
		if left[url] || done[url] {
			continue
		}
		if intended[url] {
			unreported++
		} else {
			lost++
		}
	}
	for url := range left {
		if done[url] {
			returned++
		}
	}
	if lost > 0 || returned > 0 || unreported > runs*8 || len(done) == 0 || len(left) == 0 {
		t.Fatalf("of %d URLs admitted and %d done, %d are lost and %d done ones returned; %d were left, %d were not reported",
			len(admitted), len(done), lost, returned, len(left), unreported)
	}
	t.Logf("%d kills: %d URLs admitted, %d done, %d left, none lost", runs, len(admitted), len(done), len(left))
}

// crawlAndKill runs the child, kills it after some lines of what it says, and
// notes all that it said.
func crawlAndKill(t *testing.T, dir string, run int, said map[string]map[string]bool) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
	cmd.Env = append(os.Environ(), killDir+"="+dir, killRun+"="+strconv.Itoa(run))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	wait := 1 + rand.IntN(300)
	for n := 0; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0:
		case words[0] == "E":
			t.Errorf("run %d: %s", run, lines.Text())
		case said[words[0]] != nil:
			for _, url := range words[1:] {
				said[words[0]][url] = true
			}
		}
		if n == wait {
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
}

// drainKilled is all that a directory still holds, dead URLs too.
func drainKilled(t *testing.T, dir string) map[string]bool {
	cfg := killConfig(dir)
	c := &testClock{now: time.Now().Add(time.Hour)}
	cfg.Now = c.Now
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	left := map[string]bool{}
	for ok := false; !ok; {
		c.Advance(time.Minute)
		for _, v := range acquireAll(t, f, 1000) {
			st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
			for _, it := range v.Items {
				if left[it.URL] {
					t.Fatalf("%s is there twice", it.URL)
				}
				left[it.URL] = true
				st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index})
			}
			if _, err := f.Settle(t.Context(), v.Shard, []frontier.Settlement{st}); err != nil {
				t.Fatal(err)
			}
		}
		if ok, err = f.Finished(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	dead := 0
	for k := range f.Shards() {
		deadList, err := f.DeadLetters(t.Context(), k, frontier.CauseLost, 0, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range deadList {
			dead++
			left[l.URL] = true
		}
	}
	t.Logf("%d URLs are dead as lost", dead)
	return left
}
