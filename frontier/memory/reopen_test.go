package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
)

// reopened closes a crawl as if the process had ended and opens it again.
func reopened(t testing.TB, f *Frontier, crash bool) *Frontier {
	t.Helper()
	cfg := f.cfg
	if crash {
		copied := fs.ErrNotExist // the store drops files that it needs no longer, and runs on meanwhile
		for errors.Is(copied, fs.ErrNotExist) {
			cfg.Dir = t.TempDir()
			copied = os.CopyFS(cfg.Dir, os.DirFS(f.cfg.Dir))
		}
		if copied != nil {
			t.Fatal(copied)
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

// acquireAll leases all sites that are due.
func acquireAll(t testing.TB, f *Frontier, urls int) []frontier.Visit {
	t.Helper()
	var out []frontier.Visit
	for k := range f.states {
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

// TestReopen: what was leased returns to the front. After a crash the first URL
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
		visits := acquireAll(t, f, 3)
		if len(visits) != 2 || len(visits[0].Items) != 3 {
			t.Fatalf("round %d: visits %+v", round, visits)
		}
		first := visits[0].Items[0].URL
		f = reopened(t, f, crash)
		if f.Settings().MaxDepth != 7 || f.Settings().Rev != 2 {
			t.Fatalf("settings are %+v", f.Settings())
		}
		c.Advance(time.Minute)
		visited := acquireAll(t, f, 3)
		i := slices.IndexFunc(visited, func(v frontier.Visit) bool { return v.Site == visits[0].Site })
		if i < 0 || visited[i].Items[0].URL != first {
			t.Fatalf("round %d: %s did not return to the front: %+v", round, first, visited)
		}
		if want := round; int(visited[i].Items[0].Lost) != want || (len(visited[i].Items) == 1) != crash {
			t.Fatalf("round %d: leased again as %+v", round, visited[i].Items)
		}
		for _, v := range visited { // back to the front, unmarked
			st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
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
		if err != nil || settled[0].Outcomes[0] {
			t.Fatalf("late settlement: %v, %v", settled, err)
		}
	}
}

// TestCookiesAreKept: with the outcome that they came with, whether the process ends
// or is killed, and as long as the site's clock.
func TestCookiesAreKept(t *testing.T) {
	c := &testClock{now: time.Now()}
	f, err := New(Config{Now: c.Now, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	admitURLs(t, f, "a.example", 5)
	for i, crash := range []bool{true, false, true} {
		cookies := fmt.Sprint("cookies ", i)
		v := acquireAll(t, f, 2)[0]
		s := frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1, Kind: frontier.Done}}, Cookies: &cookies}
		if _, err := f.Settle(t.Context(), 0, []frontier.Settlement{s}); err != nil {
			t.Fatal(err)
		}
		f = reopened(t, f, crash)
		c.Advance(time.Minute)
		if v = acquireAll(t, f, 1)[0]; v.Cookies != cookies {
			t.Errorf("%d: %q", i, v.Cookies)
		}
		if _, err := f.Settle(t.Context(), 0, []frontier.Settlement{{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1, Kind: frontier.Requeue}}, Release: &frontier.Release{}}}); err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Minute)
	}
	c.Advance(25 * time.Hour)
	if v := acquireAll(t, f, 1)[0]; v.Cookies != "" {
		t.Errorf("a day later: %q", v.Cookies)
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
		for _, v := range acquireAll(t, f, 3) {
			st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
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
	if _, err := New(Config{Layout: frontier.Layout{Shards: 3}, Dir: dir}); !errors.Is(err, frontier.ErrLayout) || !strings.Contains(err.Error(), "the crawl has 2, this program 3") {
		t.Fatalf("another layout: %v", err)
	}
	f, err = New(Config{Dir: dir}) // takes what the crawl has
	if err != nil || f.Shards() != 2 {
		t.Fatalf("reopened: %v", err)
	}
	f.Close()
	logs, err := filepath.Glob(filepath.Join(dir, storeName, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, name := range []string{lockName, filepath.Join(storeName, "synced"), filepath.Join(storeName, filepath.Base(logs[0]))} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v, %v", name, st.Mode(), err)
		}
	}
}
