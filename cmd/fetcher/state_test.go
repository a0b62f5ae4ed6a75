package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A crawl that goes on from a directory has its settings: another value is refused
// with the way to change it, at rest and live, and what was changed counts.
func TestStateSettings(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		n := asked.Add(1)
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<a href=/%d>x</a>", n)
	}))
	defer srv.Close()
	tool, dir := manager(t), filepath.Join(t.TempDir(), "state")
	set := func(flags ...string) {
		t.Helper()
		if out, err := exec.Command(tool, append([]string{"set", "--state", dir}, flags...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	args := []string{"--embedded", "--state", dir, "--allow-net", "127.0.0.0/8", "--seed", srv.URL + "/", "--concurrency", "1"}
	given := append(args, "--max-pages", "3", "--delay", "10ms", "--jitter", "0")
	for range 2 { // the same values are no others
		if code, text := end(t, given...); code != 0 || asked.Load() != 3 {
			t.Fatalf("code %d, %d pages: %s", code, asked.Load(), text)
		}
	}
	for _, flags := range [][]string{{"--max-pages", "5"}, {"--delay", "50ms"}} {
		code, text := end(t, append(args, flags...)...)
		if code != 3 || !strings.Contains(text, "frontier set --state "+dir+" "+flags[0]) {
			t.Errorf("code %d: %s", code, text)
		}
	}
	set("--max-pages", "5")
	if code, text := end(t, args...); code != 0 || asked.Load() != 5 {
		t.Fatalf("code %d, %d pages: %s", code, asked.Load(), text)
	}
	// While it runs.
	set("--max-pages", "0")
	p := start(t, args...)
	for asked.Load() < 10 {
		time.Sleep(time.Millisecond)
	}
	out, err := exec.Command(tool, "stats", "--state", dir).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "fetcher") {
		t.Errorf("%v: %s", err, out)
	}
	set("--max-pages", "20")
	p.wait(t)
	if n := asked.Load(); n < 20 || n > 200 {
		t.Errorf("%d pages were fetched", n)
	}
}
