package memory

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"seine/frontier"
	"seine/frontier/canon"
)

// TestCheck: a check finds nothing wrong with a crawl that was closed or cut off,
// counts what New finds, and changes no byte.
func TestCheck(t *testing.T) {
	for _, snapshot := range []bool{false, true} {
		dir, left := crawled(t, snapshot)
		for _, tail := range []string{"", "torn"} {
			names, _ := filepath.Glob(filepath.Join(dir, "*.log"))
			last := names[len(names)-1]
			b, err := os.ReadFile(last)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(last, append(b, tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			before := bytesOf(t, dir)
			c, err := Check(Config{Dir: dir})
			if err != nil || !c.Sound() || len(c.Damage) != len(tail)/4 || len(c.Shards) != 1 {
				t.Fatalf("%+v %v", c, err)
			}
			if s := c.Shards[0]; s.Queued+s.Waiting+s.Open != int64(len(left)) || s.Known != 30*30 {
				t.Errorf("%+v, %d URLs are left", s, len(left))
			}
			if after := bytesOf(t, dir); after != before {
				t.Error("a check changed the files")
			}
		}
	}
}

// bytesOf is all files of a directory, but the lock.
func bytesOf(t *testing.T, dir string) string {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, n := range names {
		if n.Name() == lockName || n.IsDir() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, n.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(n.Name())
		all.Write(b)
	}
	return all.String()
}

// TestCheckFindsContradictions: files that are whole and say what cannot be.
func TestCheckFindsContradictions(t *testing.T) {
	dir, _ := crawled(t, false)
	f, err := New(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	p := f.shards[0]
	e := frontier.Entry{URL: "https://a.example/never-admitted"}
	p.mu.Lock()
	p.pushBack(p.site("a.example"), &e)
	p.mu.Unlock()
	if err := f.dir.compact(p); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := Check(Config{Dir: dir})
	if err != nil || c.Sound() || len(c.Damage) != 0 || len(c.Faults) != 1 || !strings.Contains(c.Faults[0], "never-admitted is not known") {
		t.Fatalf("%+v %v", c, err)
	}
	done, err := Repair(Config{Dir: dir})
	if err != nil || done.Again != 1 {
		t.Fatalf("%+v %v", done, err)
	}
	if c, err = Check(Config{Dir: dir}); err != nil || !c.Sound() {
		t.Fatalf("%+v %v", c, err)
	}
}

// TestDamageAnywhere flips bytes, cuts files and removes them, at random: the
// check names what New calls damaged, a repair makes the directory sound, and
// no URL with work left is unknown, so that none would be queued twice.
func TestDamageAnywhere(t *testing.T) {
	whole, _ := crawled(t, true)
	admitted := map[string]bool{}
	for _, site := range []string{"a.example", "b.example", "c.example"} {
		for i := range 300 {
			admitted[candidate(site, i).URL] = true
		}
	}
	files := []string{"0.2.snap", "0.2.log", "crawl"}
	r := rand.New(rand.NewPCG(5, 6))
	hurt := 0
	for range 40 {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		for range 1 + r.IntN(3) {
			path := filepath.Join(dir, files[r.IntN(len(files))])
			b, err := os.ReadFile(path)
			switch {
			case err != nil || len(b) == 0:
			case r.IntN(5) == 0:
				err = os.Remove(path)
			case r.IntN(4) == 0:
				err = os.Truncate(path, r.Int64N(int64(len(b))))
			default:
				b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
				err = os.WriteFile(path, b, 0o600)
			}
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		c, err := Check(Config{Dir: dir})
		if err == nil && c.Sound() {
			if got := drained(t, dir); len(got) == 0 {
				t.Fatal("a sound directory is empty")
			}
			continue
		}
		if err != nil { // nothing is left of it
			if _, e := New(Config{Dir: dir}); len(glob(t, dir)) > 0 && e == nil {
				t.Fatalf("check: %v, and New opens it", err)
			}
			continue
		}
		hurt++
		var damage *DamageError
		if _, err := New(Config{Dir: dir}); !errors.As(err, &damage) || !slices.ContainsFunc(c.Damage, func(d Damage) bool {
			return d.File == filepath.Base(damage.File) && d.Offset == damage.Offset
		}) {
			t.Fatalf("New says %v, the check %v", err, c.Damage)
		}
		cfg := Config{Dir: dir, Layout: frontier.Layout{LimitBy: canon.ByDomain}}
		if _, err := Repair(cfg); err != nil {
			t.Fatal(err)
		}
		if c, err = Check(Config{Dir: dir}); err != nil || !c.Sound() || len(c.Damage) != 0 {
			t.Fatalf("after a repair: %+v %v", c, err)
		}
		for url := range drained(t, dir) {
			if !admitted[url] {
				t.Fatalf("%q was made up", url)
			}
		}
	}
	if hurt < 20 {
		t.Errorf("%d of 40 directories were hurt", hurt)
	}
}

func glob(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "0.*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestCheckBesideDamage: what a whole shard says is judged, whatever became of
// others.
func TestCheckBesideDamage(t *testing.T) {
	dir := t.TempDir()
	f, err := New(Config{Dir: dir, Layout: frontier.Layout{Shards: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.shards {
		p.mu.Lock()
		p.pushBack(p.site("a.example"), &frontier.Entry{URL: "https://a.example/never-admitted"})
		p.mu.Unlock()
		if err := f.dir.compact(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "0.2.snap"), 9); err != nil {
		t.Fatal(err)
	}
	c, err := Check(Config{Dir: dir})
	if err != nil || len(c.Damage) == 0 || len(c.Faults) != 1 || !strings.HasPrefix(c.Faults[0], "shard 1: ") {
		t.Fatalf("%+v %v", c, err)
	}
}
