package memory

import (
	"fmt"
	"os"
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
				q.each(func(rec []byte) {
					say("site %s list %d %03d %+v", s.name, class, i, decodeEntry(rec, s.name, class))
					i++
				})
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
			say("known %v", p.known.unmix(f))
		}
	}
	out = slices.DeleteFunc(out, func(s string) bool { return s == "known {0 0}" })
	sort.Strings(out)
	return strings.Join(out, "\n") + fmt.Sprintf("\n%+v %d", p.stats, p.known.n)
}

// reload loads the files of a crawl beside the crawl itself.
func reload(t testing.TB, f *Frontier) *Frontier {
	t.Helper()
	return reloadFrom(t, f, copied(t, f.cfg.Dir))
}

// copied copies a directory.
func copied(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// reloadFrom is reload from a directory that may change.
func reloadFrom(t testing.TB, f *Frontier, dir string) *Frontier {
	t.Helper()
	cfg := f.cfg
	cfg.Dir = ""
	g, err := New(cfg)
	if err != nil {
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

func (c *testClock) silent(d time.Duration) (moved time.Duration) { c.Advance(d); return 0 }

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
		return frontiertest.Backend{Frontier: f, Advance: advance, Silent: c.silent, MaxList: 40, MaxDead: 20}
	}
}

// TestContractOnDisk holds a crawl on disk to the contract, and its files to
// what it says, at some steps of time.
func TestContractOnDisk(t *testing.T) {
	frontiertest.Run(t, kept(2, func(t testing.TB, f *Frontier) {
		if steps := f.shards[0].log.last(); steps%4 == 0 && !strings.Contains(t.Name(), "at_once") {
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
