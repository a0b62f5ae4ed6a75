package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/frontiertest"
)

// dump is what a shard must not lose, as text.
func (p *part) dump() string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, s := range p.sites {
		p.age(s)
		if s.place == inIdle && s.clock == 0 {
			continue // to be forgotten
		}
		lent := ""
		if s.lent != nil {
			lent = s.lent.token
		}
		x := extra{}
		if s.extra != nil {
			x = *s.extra
		}
		say("site %s clock %d delay %d failures %d turn %d lent %q paused %v blocked %v open %d place %d extra %+v",
			s.name, s.clock, s.delay, s.failures, s.turn, lent, s.paused, s.blocked, s.open, s.place, x)
		for class, q := range s.queues {
			if q != nil {
				i := 0
				q.each(func(rec []byte) { say("site %s list %d %03d %+v", s.name, class, i, decodeEntry(rec, class)); i++ })
				say("site %s list %d has %d", s.name, class, q.n)
			}
		}
		for _, w := range s.waits {
			say("site %s retry %d %d %+v", s.name, w.until, w.order, w.entry)
		}
	}
	for token, l := range p.leases {
		for i := range l.entries {
			if l.open[i] {
				say("lease %s %s %d %+v", token, l.site.name, i, l.entries[i])
			}
		}
	}
	for cause, d := range p.dead {
		for _, l := range d.list[d.first:] {
			say("letter %s %+v", cause, l)
		}
	}
	for i := range p.known.tables {
		for _, f := range p.known.tables[i].slots {
			say("known %v", f)
		}
	}
	out = slices.DeleteFunc(out, func(s string) bool { return s == "known {0 0}" })
	sort.Strings(out)
	return strings.Join(out, "\n") + fmt.Sprintf("\n%+v %d", p.stats, p.known.n)
}

// reload loads the files of a crawl beside the crawl itself.
func reload(t testing.TB, f *Frontier) *Frontier {
	t.Helper()
	cfg := f.cfg
	cfg.Dir = ""
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(f.cfg.Dir)); err != nil {
		t.Fatal(err)
	}
	for _, p := range g.shards {
		j, err := (&loader{p: p, dir: dir}).load()
		if err != nil {
			t.Fatal(err)
		}
		j.file.Close()
		p.stats.Paused = f.shards[p.k].stats.Paused
		p.now = f.shards[p.k].now
	}
	return g
}

// sameState fails unless the files of f say what f says.
func sameState(t testing.TB, f *Frontier) {
	t.Helper()
	g := reload(t, f)
	for k := range f.shards {
		want, got := f.shards[k].dump(), g.shards[k].dump()
		if want == got {
			continue
		}
		a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
		for _, line := range a {
			if !slices.Contains(b, line) {
				t.Errorf("shard %d: not loaded: %s", k, line)
			}
		}
		for _, line := range b {
			if !slices.Contains(a, line) {
				t.Errorf("shard %d: loaded: %s", k, line)
			}
		}
		t.FailNow()
	}
}

// testClock is a time that tests move.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// kept makes crawls on disk.
func kept(shards int, watch func(testing.TB, *Frontier)) func(testing.TB) frontiertest.Backend {
	return func(t testing.TB) frontiertest.Backend {
		c := &testClock{now: time.Now()}
		f, err := New(Config{Layout: frontier.Layout{Shards: shards}, Now: c.Now, MaxList: 40, MaxDead: 20, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		advance := func(d time.Duration) {
			watch(t, f)
			c.Advance(d)
		}
		return frontiertest.Backend{Frontier: f, Advance: advance, Silent: c.Advance, MaxList: 40, MaxDead: 20}
	}
}

// TestContractOnDisk holds a crawl on disk to the contract, and its files to
// what it says, at every step of time.
func TestContractOnDisk(t *testing.T) {
	frontiertest.Run(t, kept(2, func(t testing.TB, f *Frontier) {
		if !strings.Contains(t.Name(), "at_once") {
			sameState(t, f)
		}
	}))
}

// TestDriveOnDisk does so while simulated fetchers crash and repeat themselves,
// and while snapshots are taken.
func TestDriveOnDisk(t *testing.T) {
	for seed := range uint64(3) {
		steps := 0
		open := kept(2, func(t testing.TB, f *Frontier) {
			if steps++; steps%20 == 0 {
				sameState(t, f)
			}
			if steps%77 == 0 {
				for _, p := range f.shards {
					if err := f.dir.compact(p); err != nil {
						t.Fatal(err)
					}
				}
				sameState(t, f)
			}
		})
		frontiertest.Drive(t, open, seed, 3000)
	}
}

// reopened closes a crawl as if the process had ended and opens it again.
func reopened(t testing.TB, f *Frontier, crash bool) *Frontier {
	t.Helper()
	cfg := f.cfg
	if crash {
		cfg.Dir = t.TempDir()
		if err := os.CopyFS(cfg.Dir, os.DirFS(f.cfg.Dir)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// lendAll lends all sites that are due.
func lendAll(t testing.TB, f *Frontier, urls int) []frontier.Visit {
	t.Helper()
	var out []frontier.Visit
	for k := range f.shards {
		reply, err := f.Tick(t.Context(), k, frontier.TickRequest{Want: 1000})
		if err != nil {
			t.Fatal(err)
		}
		visits, err := f.Visit(t.Context(), k, reply.Due, frontier.VisitLimits{URLs: urls})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, visits...)
	}
	return out
}

func admitURLs(t testing.TB, f *Frontier, site string, n int) {
	t.Helper()
	for i := range n {
		c := candidate(site, i)
		c.Priority = 1
		if err := f.Admit(t.Context(), f.Of(c.Fingerprint), []frontier.Candidate{c}, make([]frontier.Verdict, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReopen: what was lent returns to the front. After a crash the first URL
// of each visit is suspect; after Close none is.
func TestReopen(t *testing.T) {
	c := &testClock{now: time.Now()}
	f, err := New(Config{Now: c.Now, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range []string{"a.example", "b.example"} {
		admitURLs(t, f, site, 5)
	}
	if _, _, err := f.Set(t.Context(), func(s *frontier.Settings) error { s.MaxDepth = 7; return nil }); err != nil {
		t.Fatal(err)
	}
	for round, crash := range []bool{false, true} {
		visits := lendAll(t, f, 3)
		if len(visits) != 2 || len(visits[0].Items) != 3 {
			t.Fatalf("round %d: visits %+v", round, visits)
		}
		first := visits[0].Items[0].URL
		f = reopened(t, f, crash)
		if f.Settings().MaxDepth != 7 || f.Settings().Rev != 2 {
			t.Fatalf("settings are %+v", f.Settings())
		}
		c.Advance(time.Minute)
		again := lendAll(t, f, 3)
		i := slices.IndexFunc(again, func(v frontier.Visit) bool { return v.Site == visits[0].Site })
		if i < 0 || again[i].Items[0].URL != first {
			t.Fatalf("round %d: %s did not return to the front: %+v", round, first, again)
		}
		if want := round; int(again[i].Items[0].Lost) != want || (len(again[i].Items) == 1) != crash {
			t.Fatalf("round %d: lent again as %+v", round, again[i].Items)
		}
		for _, v := range again { // back to the front, unmarked
			st := frontier.Settlement{Lease: v.Lease, Free: &frontier.Release{}}
			for _, it := range v.Items {
				st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index, Kind: frontier.Requeue})
			}
			if _, err := f.Settle(t.Context(), 0, []frontier.Settlement{st}); err != nil {
				t.Fatal(err)
			}
		}
		c.Advance(time.Minute)
		// A late settlement of the process that ended is gone.
		settled, err := f.Settle(t.Context(), 0, []frontier.Settlement{{Lease: visits[0].Lease, Outcomes: []frontier.Outcome{{Index: 1}}}})
		if err != nil || settled[0][0] {
			t.Fatalf("late settlement: %v, %v", settled, err)
		}
	}
}

// TestPoison: a URL that ends the process each time is dead after the third,
// and takes no other with it.
func TestPoison(t *testing.T) {
	c := &testClock{now: time.Now()}
	f, err := New(Config{Now: c.Now, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		admitURLs(t, f, fmt.Sprintf("s%d.example", i), 3)
	}
	poison := candidate("s7.example", 1).URL
	done := map[string]bool{}
	crashes := 0
	for range 1000 {
		c.Advance(10 * time.Second)
		var settle []frontier.Settlement
		crash := false
		for _, v := range lendAll(t, f, 3) {
			st := frontier.Settlement{Lease: v.Lease, Free: &frontier.Release{}}
			for _, it := range v.Items {
				crash = crash || it.URL == poison
				done[it.URL] = true
				st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index})
			}
			settle = append(settle, st)
		}
		if crash { // before any other page ended
			crashes++
			f = reopened(t, f, true)
			continue
		}
		if _, err := f.Settle(t.Context(), 0, settle); err != nil {
			t.Fatal(err)
		}
		if ok, _ := f.Finished(t.Context()); ok {
			break
		}
	}
	s, err := f.Stats(t.Context())
	if err != nil || s[0].Done != 59 || s[0].Dead != 1 {
		t.Fatalf("%d crashes, then %+v, %v; want 59 done and 1 dead", crashes, s, err)
	}
	dead, _ := f.DeadLetters(t.Context(), 0, frontier.CauseLost, 0, 9)
	if len(dead) != 1 || dead[0].URL != poison {
		t.Fatalf("dead is %+v", dead)
	}
	if crashes > 5 {
		t.Fatalf("%d crashes until the URL was dead", crashes)
	}
}

// TestOpenErrors: a directory in use, of another layout, of a newer format.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	f, err := New(Config{Layout: frontier.Layout{Shards: 2}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Layout: frontier.Layout{Shards: 2}, Dir: dir}); !errors.Is(err, ErrInUse) {
		t.Fatalf("opened twice: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatalf("closed twice: %v", err)
	}
	c := candidate("a.example", 1)
	err = f.Admit(context.Background(), f.Of(c.Fingerprint), []frontier.Candidate{c}, make([]frontier.Verdict, 1))
	if !errors.Is(err, ErrClosed) {
		t.Fatalf("admit after close: %v", err)
	}
	if _, err := New(Config{Layout: frontier.Layout{Shards: 3}, Dir: dir}); !errors.Is(err, frontier.ErrLayout) || !strings.Contains(err.Error(), "Shards:2") {
		t.Fatalf("another layout: %v", err)
	}
	f, err = New(Config{Layout: frontier.Layout{Shards: 2}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, name := range []string{crawlName, "0.1.log"} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v, %v", name, st.Mode(), err)
		}
	}
}

// TestDiskFull: what the disk refuses is an error, stays in memory and is
// written with the next call that the disk takes.
func TestDiskFull(t *testing.T) {
	f, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	admitURLs(t, f, "a.example", 2)
	j := f.shards[0].log
	good := j.file
	bad, err := os.Open(good.Name()) // cannot be written to
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	swap := func(file *os.File) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.file = file
	}
	swap(bad)
	c := []frontier.Candidate{candidate("b.example", 1)}
	verdicts := make([]frontier.Verdict, 1)
	for range 2 {
		if err := f.Admit(t.Context(), 0, c, verdicts); err == nil {
			t.Fatal("a write that failed was acknowledged")
		}
	}
	swap(good)
	if err := f.Admit(t.Context(), 0, c, verdicts); err != nil || verdicts[0] != frontier.Seen {
		t.Fatalf("repeated: %v, %v", verdicts, err)
	}
	sameState(t, f)
}

// TestSyncAlways: with a negative Sync nothing is acknowledged before it is on
// the disk.
func TestSyncAlways(t *testing.T) {
	f, err := New(Config{Dir: t.TempDir(), Sync: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 3 {
		admitURLs(t, f, fmt.Sprintf("s%d.example", i), 1)
		j := f.shards[0].log
		if j.synced != j.size || j.size == 0 {
			t.Fatalf("%d of %d bytes are synced", j.synced, j.size)
		}
	}
}
