package memory

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
)

// crawled makes a crawl with some of everything on disk, closes it and returns
// its directory and the URLs that are not done.
func crawled(t testing.TB, snapshot bool) (dir string, left map[string]bool) {
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
		if snapshot && round == 15 {
			if err := f.dir.compact(f.shards[0]); err != nil {
				t.Fatal(err)
			}
		}
		c.Advance(time.Minute)
		for _, v := range lendAll(t, f, 4) {
			st := frontier.Settlement{Lease: v.Lease, Free: &frontier.Release{}}
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
		for _, v := range lendAll(t, f, 100) {
			st := frontier.Settlement{Lease: v.Lease, Free: &frontier.Release{}}
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

// TestTornEnd: whatever a crash left of the last write is cut off.
func TestTornEnd(t *testing.T) {
	dir, left := crawled(t, false)
	path := filepath.Join(dir, "0.1.log")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tail := range []string{"x", "SSj1", string(whole[:100]), strings.Repeat("\x00", 5000), string(whole[len(whole)-30:]) + "torn"} {
		if err := os.WriteFile(path, append(whole[:len(whole):len(whole)], tail...), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := drained(t, dir); !sameURLs(got, left) {
			t.Fatalf("tail %q: %d URLs, want %d", tail[:min(len(tail), 10)], len(got), len(left))
		}
	}
	// Every cut of the last frames.
	for cut := 1; cut < 200; cut += 7 {
		if err := os.WriteFile(path, whole[:len(whole)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		got := drained(t, dir)
		for url := range left {
			if !got[url] {
				t.Fatalf("cut of %d bytes: %s is lost", cut, url)
			}
		}
	}
}

func sameURLs(a, b map[string]bool) bool {
	for url := range a {
		if !b[url] {
			return false
		}
	}
	return len(a) == len(b)
}

// TestDamage: a file that was changed in the middle is an error that names it
// and the place, and a repair saves the rest.
func TestDamage(t *testing.T) {
	for _, name := range []string{"0.1.log", "0.2.snap", "0.2.log", "crawl"} {
		t.Run(name, func(t *testing.T) {
			dir, left := crawled(t, name != "0.1.log")
			path := filepath.Join(dir, name)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			for range 8 {
				at := r.IntN(max(1, len(whole)*9/10))
				broken := append([]byte(nil), whole...)
				broken[at] ^= byte(1 + r.IntN(255))
				broken = broken[:len(broken):len(broken)]
				hurt := t.TempDir()
				if err := os.CopyFS(hurt, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(hurt, name), broken, 0o600); err != nil {
					t.Fatal(err)
				}
				checkDamage(t, hurt, name, int64(at), left)
			}
		})
	}
}

// checkDamage opens a damaged directory, repairs it and opens it again.
func checkDamage(t *testing.T, dir, name string, at int64, left map[string]bool) {
	t.Helper()
	_, err := New(Config{Dir: dir})
	var damage *DamageError
	if !errors.As(err, &damage) {
		t.Fatalf("byte %d of %s was changed: %v", at, name, err)
	}
	if filepath.Base(damage.File) != name || damage.Offset > at {
		t.Fatalf("byte %d of %s was changed: %v", at, name, err)
	}
	found, err := Repair(Config{Dir: dir, Layout: frontier.Layout{LimitBy: canon.ByDomain}})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Damage) == 0 || found.Damage[0].File != name {
		t.Fatalf("byte %d of %s was changed; found %v", at, name, found.Damage)
	}
	got := drained(t, dir)
	missing := 0
	for url := range left {
		if !got[url] {
			missing++
		}
	}
	// One frame of a journal is one call here: at most the URL that it admitted,
	// of which nothing is known either. A frame of a small snapshot is a third
	// of all.
	if strings.HasSuffix(name, ".log") && missing > 1 || name == crawlName && missing > 0 {
		t.Fatalf("byte %d of %s was changed: %d of %d URLs are missing", at, name, missing, len(left))
	}
	if _, err := os.Stat(filepath.Join(dir, damagedName)); err != nil {
		t.Fatal(err)
	}
}

// TestMissingFile: a file that is gone is damage too.
func TestMissingFile(t *testing.T) {
	for _, name := range []string{"0.2.log", crawlName} {
		dir, _ := crawled(t, true)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		if _, err := New(Config{Dir: dir}); !errors.As(err, &damage) || filepath.Base(damage.File) != name {
			t.Fatalf("%s is missing: %v", name, err)
		}
		if _, err := Repair(Config{Dir: dir, Layout: frontier.Layout{LimitBy: canon.ByDomain}}); err != nil {
			t.Fatal(err)
		}
		drained(t, dir)
	}
}

// A file of a shard that the crawl does not have changes nothing: a crawl of more
// shards would look for every URL elsewhere.
func TestStrayFile(t *testing.T) {
	dir, left := crawled(t, true)
	stray, err := os.ReadFile(filepath.Join(dir, "0.2.log"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "7.2.log"), stray, 0o600)
	}
	if err == nil {
		stray[len(stray)/2]++
		err = os.WriteFile(filepath.Join(dir, "0.2.log"), stray, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if done, err := Repair(Config{Dir: dir}); err != nil || len(done.Shards) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if c, err := Check(Config{Dir: dir}); err != nil || !c.Sound() || len(c.Shards) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if got := drained(t, dir); len(got) < len(left) {
		t.Errorf("%d URLs are left of %d", len(got), len(left))
	}
}

// A journal that lost all it held is damage, not a crawl that has not begun.
func TestEmptyJournal(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		dir, _ := crawled(t, snapshot)
		names, err := filepath.Glob(filepath.Join(dir, "*.log"))
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		if err := os.Truncate(names[0], 0); err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		if f, err := New(Config{Dir: dir}); !errors.As(err, &damage) || damage.File != names[0] {
			t.Errorf("opened: %v", err)
			if err == nil {
				f.Close()
			}
		}
		if c, err := Check(Config{Dir: dir}); err != nil || c.Sound() {
			t.Errorf("check: %+v, %v", c, err)
		}
		if _, err := Repair(Config{Dir: dir}); err != nil {
			t.Error(err)
		}
		if c, err := Check(Config{Dir: dir}); err != nil || !c.Sound() {
			t.Errorf("after its repair: %+v, %v", c, err)
		}
	}
}
