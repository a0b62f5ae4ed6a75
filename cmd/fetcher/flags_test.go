package main_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"seine/shard/shardtest"
)

// inOrder paces a crawl so that a page's links are queued before the next page
// is leased; without a delay the site is leased anew as soon as its request ended.
// By breadth they have more time: some pages are queued before them.
const (
	inOrder = "--visit-urls 1 --concurrency 1 --jitter 0 --delay 1s"
	inTime  = "--visit-urls 1 --concurrency 1 --jitter 0 --delay 150ms"
)

// TestCrawlFlags: what rules a crawl has the same effect in one process and on
// Redis. The site is a tree of degree three; page /1-2 is the second child of
// the first child of /.
func TestCrawlFlags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, flags string
		check       func(paths []string) error
	}{
		{"max-depth", "--max-depth 2", func(p []string) error { return count(p, 1+3+9) }},
		{"max-per-site", "--max-per-site 7", func(p []string) error { return count(p, 7) }},
		{"max-pages", "--max-pages 9 --concurrency 1", func(p []string) error { return count(p, 9) }},
		{"deny", "--max-depth 2 --deny /2", func(p []string) error { return count(p, 1+2+6) }},
		{"breadth", "--max-depth 3 --max-pages 13 " + inTime, func(p []string) error { return sorted(p, 13, func(n int) bool { return n <= 2 }) }},
		{"depth", "--max-depth 3 --max-pages 4 --order depth " + inOrder, func(p []string) error { return sorted(p, 4, func(n int) bool { return n <= 3 }) }},
		{"priority", "--max-depth 2 --max-pages 5 --priority /3=0 " + inOrder, func(p []string) error {
			if len(p) != 5 || p[1] != "/3" || !strings.HasPrefix(p[4], "/3-") {
				return fmt.Errorf("began with %v", p[:min(5, len(p))])
			}
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, where := range []string{"embedded", "redis"} {
				t.Run(where, func(t *testing.T) {
					t.Parallel()
					paths := crawlTree(t, where == "embedded", strings.Fields(c.flags))
					if err := c.check(paths); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

func count(paths []string, want int) error {
	if len(paths) != want {
		return fmt.Errorf("%d pages asked for, want %d: %v", len(paths), want, paths)
	}
	return nil
}

// sorted holds the depth of n pages; by depth, the fourth one is as deep as it
// goes.
func sorted(paths []string, n int, ok func(depth int) bool) error {
	if err := count(paths, n); err != nil {
		return err
	}
	deepest := 0
	for _, p := range paths {
		depth := 0
		if p != "/" {
			depth = 1 + strings.Count(p, "-")
		}
		if deepest = max(deepest, depth); !ok(depth) {
			return fmt.Errorf("page %s among the first %d", p, n)
		}
	}
	if n == 4 && deepest != 3 {
		return fmt.Errorf("the first four go %d deep: %v", deepest, paths)
	}
	return nil
}

// crawlTree crawls the tree, five levels at most, and returns what was asked for.
func crawlTree(t *testing.T, embedded bool, flags []string) []string {
	t.Helper()
	var mu sync.Mutex
	var paths []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		mu.Lock()
		paths = append(paths, r.URL.Path)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		if strings.Count(r.URL.Path, "-") > 3 {
			return
		}
		for i := 1; i <= 3; i++ {
			link := fmt.Sprintf("%s-%d", r.URL.Path, i)
			if r.URL.Path == "/" {
				link = fmt.Sprintf("/%d", i)
			}
			fmt.Fprintf(w, "<a href='%s'>x</a>", link)
		}
		io.WriteString(w, "</html>")
	}))
	t.Cleanup(srv.Close)
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	args := []string{"--delay", "0s", "--connect-to", "::127.0.0.1:" + port, "--seed", "http://tree.example/"}
	if embedded {
		args = append(args, "--embedded")
	} else {
		args = append(args, "--redis", shardtest.One(t).Addrs[0], "--shards", "1", "--plan-urls", "10k", "--exit-when-done")
	}
	start(t, append(args, flags...)...).wait(t)
	mu.Lock()
	defer mu.Unlock()
	return paths
}

// TestBindFlag: requests leave from the addresses of --bind, or from those of their site's
// rule, and records have the address that answered.
func TestBindFlag(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	peers := map[string]bool{} // host and address
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addr, _, _ := net.SplitHostPort(r.RemoteAddr)
		mu.Lock()
		peers[r.Host+" "+addr] = true
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
	}))
	t.Cleanup(srv.Close)
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	config := filepath.Join(t.TempDir(), "fetcher.yaml")
	if err := os.WriteFile(config, []byte("bind: [127.0.0.2]\nsites:\n  - match: ruled.example\n    bind: [198.51.100.7, 127.0.0.3]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "--embedded", "--config", config, "--connect-to", "::127.0.0.1:"+port, "--seed", "http://a.example/", "--seed", "http://ruled.example/", "--fields", "ip,protocol")
	p.wait(t)
	mu.Lock()
	defer mu.Unlock()
	if want := map[string]bool{"a.example 127.0.0.2": true, "ruled.example 127.0.0.3": true}; !maps.Equal(peers, want) {
		t.Errorf("asked from %v", peers)
	}
	if out, err := os.ReadFile(p.out); err != nil || strings.Count(string(out), `"ip":"127.0.0.1","protocol":"http/1.1"`) != 2 {
		t.Errorf("%s %v", out, err)
	}
}
