package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/frontier/audit"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

// A crawl with recrawls loses none when its fetcher is killed, in
// Redis and in a directory: each page comes time after time, with the validator that
// it gave, and the record has what did not change.
func TestRecrawlKilled(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server := shardtest.Start(t, shardtest.Config{})
		testRecrawl(t, "--redis", strings.Join(server.Addrs, ","), "--shards", "2", "--lease", "5s")
		client, err := shard.Open(t.Context(), shard.Config{Addrs: server.Addrs})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		f, err := redis.Open(t.Context(), client, "seine", nil)
		if err != nil {
			t.Fatal(err)
		}
		for k := range 2 {
			if r, err := audit.Check(context.Background(), f, k, true); err != nil || r.Faulted > 0 {
				t.Errorf("shard %d: %v %+v", k, err, r)
			}
		}
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		testRecrawl(t, "--embedded", "--state", filepath.Join(t.TempDir(), "state"))
	})
}

// testRecrawl kills a fetcher in the middle of a crawl of 12 pages, and lets another go
// on until each was fetched three times more.
func testRecrawl(t *testing.T, where ...string) {
	const pages = 12
	var mu sync.Mutex
	asked, conditional := map[string]int{}, map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var page int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &page); err != nil {
			http.NotFound(w, r)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path]++
		tag := fmt.Sprintf(`"page%d"`, page)
		w.Header().Set("ETag", tag)
		if given := r.Header.Get("If-None-Match"); given == tag {
			conditional[r.URL.Path]++
			w.WriteHeader(http.StatusNotModified)
			return
		} else if given != "" {
			t.Errorf("%s was asked for with %s", r.URL.Path, given)
		}
		w.Header().Set("Content-Type", "text/html")
		for link := page + 1; link <= min(page+4, pages); link++ {
			fmt.Fprintf(w, "<a href=/%d>x</a>", link)
		}
	}))
	defer srv.Close()
	times := func(of map[string]int, least int) bool {
		mu.Lock()
		defer mu.Unlock()
		for page := 1; page <= pages; page++ {
			if of[fmt.Sprint("/", page)] < least {
				return false
			}
		}
		return true
	}
	some := func(of map[string]int) bool {
		mu.Lock()
		defer mu.Unlock()
		return len(of) > 0
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("never: %s; asked %v, conditional %v", what, asked, conditional)
			}
		}
	}
	args := append(where, "--delay", "5ms", "--jitter", "0", "--recrawl", `/\d+$=200ms..1s`)
	code, text := end(t, append(args, "--exit-when-done", "--seed", srv.URL+"/1", "--out", filepath.Join(t.TempDir(), "x"))...)
	if code != 2 || !strings.Contains(text, "is never done") {
		t.Fatalf("--exit-when-done: code %d: %s", code, text)
	}
	p := start(t, append(args, "--seed", srv.URL+"/1")...)
	await("all pages were asked for, some twice", func() bool { return times(asked, 1) && some(conditional) })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.cmd.Wait()
	mu.Lock()
	clear(conditional)
	mu.Unlock()
	p = start(t, args...)
	await("each page was recrawled three times after the kill", func() bool { return times(conditional, 3) })
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	out, err := os.ReadFile(p.out)
	if err != nil {
		t.Fatal(err)
	}
	unchanged := 0
	for line := range bytes.Lines(out) {
		var r struct {
			Status    int
			Unchanged bool
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Unchanged != (r.Status == 304) {
			t.Errorf("record %s", line)
		}
		if r.Unchanged {
			unchanged++
		}
	}
	if code, text := end(t, append(args, "--allow-net", "127.0.0.0/8", "--max-time", "2s", "--out", filepath.Join(t.TempDir(), "y"))...); code != 0 {
		t.Errorf("a run in which nothing changed: code %d: %s", code, text)
	}
	if unchanged < 3*pages {
		t.Errorf("%d records say unchanged, want %d at least", unchanged, 3*pages)
	}
}
