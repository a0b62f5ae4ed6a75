package main_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"seine/extract/sink/jsonl"
)

// TestFewFiles crawls many more sites, in more requests at once, than the process
// may have descriptors: pages keep coming, none is tried twice, none is dead.
func TestFewFiles(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		asked.Add(1)
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<p>page</p>")
	})}
	go server.Serve(ln)
	t.Cleanup(func() { server.Close() })
	dir := t.TempDir()
	file := filepath.Join(dir, "seeds")
	for _, c := range []struct{ limit, sites, workers int }{{256, 1500, 400}, {1024, 1500, 400}, {20_000, 4000, 1024}} {
		limit, sites := c.limit, int64(c.sites)
		var own syscall.Rlimit // of this process, which has the other ends
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &own); err != nil || own.Cur < uint64(min(limit, c.sites)+1000) {
			t.Logf("limit %d: this process may have %d files, too few to serve that", limit, own.Cur)
			continue
		}
		var seeds strings.Builder
		for i := range c.sites {
			fmt.Fprintf(&seeds, "http://127.%d.%d.1:%d/\n", i>>8, i&255, ln.Addr().(*net.TCPAddr).Port)
		}
		if err := os.WriteFile(file, []byte(seeds.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		asked.Store(0)
		out := filepath.Join(dir, fmt.Sprintf("%d.jsonl", limit))
		cmd := exec.Command("sh", "-c", `ulimit -n "$0" && exec "$@"`, strconv.Itoa(limit), fetcher, "--embedded", "--allow-net", "127.0.0.0/8",
			"--file", file, "--out", out, "--concurrency", strconv.Itoa(c.workers), "--delay", "1ms", "--max-time", "5m")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("limit %d: %v\n%s", limit, err, text)
			continue
		}
		n := int64(0)
		for r, err := range jsonl.Records(out) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; r.Status != 200 || r.Attempts != 1 {
				t.Errorf("limit %d: %s: status %d after %d attempts, %v", limit, r.URL, r.Status, r.Attempts, r.Error)
			}
		}
		if n != sites || asked.Load() != sites {
			t.Errorf("limit %d: %d records, %d requests of %d", limit, n, asked.Load(), sites)
		}
	}
}
