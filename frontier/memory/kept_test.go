package memory

import (
	"errors"
	"fmt"
	"math/rand/v2"
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
	"seine/frontier/memory/store"
)

// dump is what a shard must not lose, as text. What is leased stands where it would
// return to.
func (p *shardState) dump() string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, s := range p.sites {
		p.age(s)
		if s.clock != 0 || s.round != 0 || s.keeps() {
			x := extra{}
			if s.extra != nil {
				x = *s.extra
			}
			row := walls{}
			if x.walls != nil {
				row, x.walls = *x.walls, nil
			}
			say("site %s delay %d failures %d turn %d paused %v blocked %v extra %+v walls %+v, listed %v", s.name, s.delay, s.failures, s.round, s.paused, s.blocked, x, row, p.walled[s.name] == s)
			if s.leased == nil {
				say("site %s clock %d", s.name, s.clock)
			}
		}
		for class, q := range s.queues {
			if q != nil {
				q.each(func(rec []byte) {
					seq, rec := numberOf(rec)
					say("site %s list %d %d %+v", s.name, class, seq, decodeEntry(rec, s.name))
				})
			}
		}
		for _, w := range s.waits {
			say("site %s retry %d %d %+v", s.name, w.until, w.order, w.entry)
		}
	}
	for _, l := range p.leases {
		for i := range l.records {
			if l.open[i] {
				say("site %s list %d %d %+v", l.site.name, l.positions[i].class, l.positions[i].seq, l.entry(i))
			}
		}
	}
	for cause, d := range p.dead {
		for _, l := range d.list[d.first:] {
			say("letter %s %+v", cause, l)
		}
	}
	sort.Strings(out)
	s := p.stats
	s.Queued, s.Lost, s.Open = s.Queued+s.Open, s.Lost+s.Open, 0
	return strings.Join(out, "\n") + fmt.Sprintf("\n%+v %d %d", s, p.known.n, p.contents.n)
}

// sameState fails unless the store of f says what f says.
func sameState(t testing.TB, f *Frontier) {
	t.Helper()
	cfg := f.cfg
	cfg.Dir = ""
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for k, p := range f.states {
		p.mu.Lock()
		last := p.flush()
		p.mu.Unlock()
		if err := f.dir.store.Wait(last); err != nil {
			t.Fatal(err)
		}
		own := g.states[k]
		l := &loader{shardState: own, store: f.dir.store}
		if err := l.load(); err != nil {
			t.Fatal(err)
		}
		l.finish()
		own.stats.Paused, own.now = p.stats.Paused, p.now
		want, got := strings.Split(p.dump(), "\n"), strings.Split(own.dump(), "\n")
		if leased := len(p.leases); leased > 0 { // the clock of a site that is leased is set when it is loaded
			got = slices.DeleteFunc(got, func(line string) bool {
				name, _, isClock := strings.Cut(line, " clock ")
				s := p.sites[strings.TrimPrefix(name, "site ")]
				return isClock && s != nil && s.leased != nil
			})
		}
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("shard %d: not loaded: %s", k, line)
			}
		}
		for _, line := range got {
			if !slices.Contains(want, line) {
				t.Errorf("shard %d: loaded: %s", k, line)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
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

// onDisk makes crawls on disk.
func onDisk(shards int, watch func(testing.TB, *Frontier)) func(testing.TB) frontiertest.Backend {
	return func(t testing.TB) frontiertest.Backend {
		c := &testClock{now: time.Now()}
		f, err := New(Config{Layout: frontier.Layout{Shards: shards}, Now: c.Now, MaxList: 40, MaxListBytes: frontiertest.MaxBytes, MaxDead: 20, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		advance := func(d time.Duration) {
			watch(t, f)
			c.Advance(d)
		}
		return frontiertest.Backend{Frontier: f, Advance: advance, Silent: c.silent, MaxList: 40, MaxDead: 20}
	}
}

// TestContractOnDisk holds a crawl on disk to the contract, and its store to
// what it says, at some steps of time.
func TestContractOnDisk(t *testing.T) {
	frontiertest.Run(t, onDisk(2, func(t testing.TB, f *Frontier) {
		if steps := f.dir.store.Last(); steps%4 == 0 && !strings.Contains(t.Name(), "at_once") {
			sameState(t, f)
		}
	}))
}

// TestDriveOnDisk does so while simulated fetchers crash and repeat themselves.
func TestDriveOnDisk(t *testing.T) {
	for seed := range uint64(3) {
		steps := 0
		frontiertest.Drive(t, onDisk(2, func(t testing.TB, f *Frontier) {
			if steps++; steps%20 == 0 {
				sameState(t, f)
			}
		}), seed, 3000)
	}
}

// crawled makes a crawl with some of everything on disk, in tables and in a log,
// closes it and returns its directory and the URLs that are not done.
func crawled(t testing.TB) (dir string, left map[string]bool) {
	t.Helper()
	c := &testClock{now: time.Now()}
	f, err := New(Config{Now: c.Now, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	left = map[string]bool{}
	for round := range 30 {
		for _, site := range []string{"a.example", "b.example", "c.example"} {
			for i := range 10 {
				u := candidate(site, round*10+i)
				left[u.URL] = true
				if err := f.Admit(t.Context(), 0, []frontier.Candidate{u}, make([]frontier.Verdict, 1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if round == 15 { // what a log held becomes a table when it is opened
			f = reopened(t, f, false)
		}
		c.Advance(time.Minute)
		for _, v := range acquireAll(t, f, 4) {
			st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
			for i, it := range v.Items {
				o := frontier.Outcome{Index: it.Index, Kind: frontier.Kind(i % 2)}
				if o.Kind == frontier.Done {
					delete(left, it.URL)
				}
				st.Outcomes = append(st.Outcomes, o)
			}
			if _, err := f.Settle(t.Context(), 0, []frontier.Settlement{st}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.cfg.Dir, left
}

// drained fetches all that a directory holds.
func drained(t testing.TB, dir string) map[string]bool {
	t.Helper()
	c := &testClock{now: time.Now().Add(24 * time.Hour)}
	f, err := New(Config{Now: c.Now, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := map[string]bool{}
	for range 10_000 {
		c.Advance(time.Minute)
		for _, v := range acquireAll(t, f, 100) {
			st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
			for _, it := range v.Items {
				got[it.URL] = true
				st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index})
			}
			if _, err := f.Settle(t.Context(), 0, []frontier.Settlement{st}); err != nil {
				t.Fatal(err)
			}
		}
		if ok, err := f.Finished(t.Context()); err != nil {
			t.Fatal(err)
		} else if ok {
			return got
		}
	}
	t.Fatal("the crawl does not end")
	return nil
}

func sameURLs(a, b map[string]bool) bool {
	for url := range a {
		if !b[url] {
			return false
		}
	}
	return len(a) == len(b)
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

// only is the newest file of a store whose name is of that form.
func only(t testing.TB, dir, form string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, storeName, form))
	if err != nil || len(names) == 0 {
		t.Fatal(form, names, err)
	}
	return slices.Max(names)
}

// TestTornEnd: whatever a power cut left of the last write is cut off, and
// nothing that was there before is lost.
func TestTornEnd(t *testing.T) {
	whole, left := crawled(t)
	b, err := os.ReadFile(only(t, whole, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tail := range []string{"x", string(b[:100]), strings.Repeat("\x00", 50_000), string(b[len(b)-30:]) + "torn"} {
		dir := copied(t, whole)
		if err := os.WriteFile(only(t, dir, "*.log"), append(slices.Clip(b), tail...), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := drained(t, dir); !sameURLs(got, left) {
			t.Fatalf("tail %q: %d URLs, want %d", tail[:min(len(tail), 10)], len(got), len(left))
		}
	}
}

// A power cut that takes what was not synced yet takes the newest and no more.
func TestUnsyncedEnd(t *testing.T) {
	f, err := New(Config{Dir: t.TempDir(), Sync: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 200 {
		if err := f.Admit(t.Context(), 0, []frontier.Candidate{candidate("a.example", 2*i)}, make([]frontier.Verdict, 1)); err != nil {
			t.Fatal(err)
		}
	}
	log := only(t, f.cfg.Dir, "*.log")
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	least := 200
	for cut := 1; cut < 8000; cut += 611 {
		dir := copied(t, f.cfg.Dir)
		if err := os.WriteFile(only(t, dir, "*.log"), b[:len(b)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		got := drained(t, dir)
		for i := range len(got) {
			if !got[candidate("a.example", 2*i).URL] {
				t.Fatalf("cut of %d bytes: URL %d of %d is lost", cut, i, len(got))
			}
		}
		least = min(least, len(got))
	}
	if least == 200 || least == 0 {
		t.Errorf("cuts left %d URLs: they tell nothing", least)
	}
}

// TestDamage: a byte that was changed anywhere in what the disk had is an error
// that names the file, and nothing is written; or it was one that nobody reads,
// and nothing is lost.
func TestDamage(t *testing.T) {
	whole, left := crawled(t)
	for _, form := range []string{"*.log", "*.sst", "MANIFEST-*", "synced", "OPTIONS-*"} {
		t.Run(form, func(t *testing.T) {
			name := filepath.Base(only(t, whole, form))
			b, err := os.ReadFile(only(t, whole, form))
			if err != nil {
				t.Fatal(err)
			}
			end := len(b)
			for end > 0 && b[end-1] == 0 { // room for what was to come
				end--
			}
			r := rand.New(rand.NewPCG(1, 2))
			found := 0
			for range 30 {
				dir := copied(t, whole)
				at := r.IntN(end)
				hurt := slices.Clone(b)
				hurt[at] ^= byte(1 + r.IntN(255))
				path := filepath.Join(dir, storeName, name)
				if err := os.WriteFile(path, hurt, 0o600); err != nil {
					t.Fatal(err)
				}
				before := bytesOf(t, dir)
				_, failed := Check(dir)
				if bytesOf(t, dir) != before {
					t.Fatalf("byte %d: a check changed the files", at)
				}
				f, err := New(Config{Dir: dir})
				if (err == nil) != (failed == nil) {
					t.Errorf("byte %d: opened: %v; checked: %v", at, err, failed)
				}
				if err == nil {
					f.Close()
					if got := drained(t, dir); !sameURLs(got, left) {
						t.Errorf("byte %d: %d URLs, want %d", at, len(got), len(left))
					}
					continue
				}
				found++
				var damage *store.DamageError
				do := "put a copy"
				if form == "OPTIONS-*" {
					do = "remove it"
				}
				if !errors.As(err, &damage) || damage.File != path || !strings.Contains(err.Error(), do) {
					t.Errorf("byte %d of %s: %v", at, name, err)
				}
				if bytesOf(t, dir) != before {
					t.Errorf("byte %d: it is refused, and its files are not kept", at)
				}
				if form == "OPTIONS-*" {
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
					if got := drained(t, dir); !sameURLs(got, left) {
						t.Errorf("byte %d: without the file there are %d URLs, want %d", at, len(got), len(left))
					}
				}
			}
			if found < 20 && form != "synced" && form != "OPTIONS-*" { // the one has two places, of the other few matter
				t.Errorf("of 30 changes %d were found", found)
			}
		})
	}
}

// TestMissingFile: a file that is gone, or empty, is damage too.
func TestMissingFile(t *testing.T) {
	whole, _ := crawled(t)
	for _, form := range []string{"*.log", "*.sst", "MANIFEST-*"} {
		for how, hurt := range map[string]func(string) error{"missing": os.Remove, "empty": func(path string) error { return os.Truncate(path, 0) }} {
			dir := copied(t, whole)
			path := only(t, dir, form)
			if err := hurt(path); err != nil {
				t.Fatal(err)
			}
			_, err := New(Config{Dir: dir})
			var damage *store.DamageError
			if !errors.As(err, &damage) || form != "*.log" && damage.File != path {
				t.Errorf("%s is %s: %v", path, how, err)
			}
		}
	}
}

// TestCheckReadsRuns: what a start cannot read no check passes, though it is of no shard.
func TestCheckReadsRuns(t *testing.T) {
	dir, _ := crawled(t)
	s, err := store.Open(store.Config{Dir: filepath.Join(dir, storeName)})
	if err != nil {
		t.Fatal(err)
	}
	b := s.NewBatch()
	b.Set(runsKey, []byte("{"))
	s.Add(b)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, opened := New(Config{Dir: dir})
	_, checked := Check(dir)
	if opened == nil || checked == nil || !strings.Contains(checked.Error(), "runs on record") {
		t.Errorf("opened: %v, checked: %v", opened, checked)
	}
}

// TestCheck: a check finds nothing wrong with a crawl that was closed, counts
// what New finds, and changes no byte.
func TestCheck(t *testing.T) {
	dir, left := crawled(t)
	before := bytesOf(t, dir)
	c, err := Check(dir)
	if err != nil || c.Faulty != 0 || len(c.Shards) != 1 || len(c.Files) == 0 {
		t.Fatalf("%+v %v", c, err)
	}
	if s := c.Shards[0]; s.Queued+s.Waiting != int64(len(left)) || s.Known != 30*30 {
		t.Errorf("%+v, %d URLs are left", s, len(left))
	}
	if bytesOf(t, dir) != before {
		t.Error("a check changed the files")
	}
	if _, err := Check(t.TempDir()); !errors.Is(err, ErrNoCrawl) {
		t.Error(err)
	}
}

// bytesOf is all files of a directory, but the lock.
func bytesOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == lockName {
			return err
		}
		b, err := os.ReadFile(path)
		all.WriteString(path)
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestCheckFindsContradictions: files that are whole and say what cannot be.
func TestCheckFindsContradictions(t *testing.T) {
	dir, _ := crawled(t)
	f, err := New(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	post, err := frontier.NewRequest("POST", nil, []byte("a=1"))
	if err != nil {
		t.Fatal(err)
	}
	form, err := frontier.NewMaker(f.Layout()).Make("https://a.example/form")
	if err != nil {
		t.Fatal(err)
	}
	form.Request, form.Fingerprint = post, post.Fingerprint(form.Fingerprint)
	k := f.Of(form.Fingerprint)
	if err := f.Admit(t.Context(), k, []frontier.Candidate{form}, make([]frontier.Verdict, 1)); err != nil {
		t.Fatal(err)
	}
	p := f.states[k]
	p.mu.Lock()
	p.pushBack(p.site("a.example"), &frontier.Entry{URL: "https://a.example/never-admitted"})
	p.pushBack(p.site("a.example"), &frontier.Entry{URL: "https://a.example/form"}) // only the POST was
	p.mu.Unlock()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := Check(dir)
	if err != nil || len(c.Faults) != 2 || !strings.Contains(c.Faults[0], "never-admitted is not known") || !strings.Contains(c.Faults[1], "form is not known") {
		t.Fatalf("%+v %v", c, err)
	}
}
