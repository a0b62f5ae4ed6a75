package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A crawl in one process is killed and its journal damaged: the next start names
// file, place and remedy, the remedy works, and the crawl goes on to its end.
func TestDamagedState(t *testing.T) {
	const pages, most = 80, 60
	var mu sync.Mutex
	asked := map[string]int{}
	late := make(chan struct{}) // three seconds from the start: the disk was told twice a second to keep what came first
	var once sync.Once
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path]++
		n := len(asked)
		mu.Unlock()
		var page int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &page); err != nil {
			http.NotFound(w, r)
			return
		}
		if n == most {
			once.Do(func() { close(late) })
		}
		w.Header().Set("Content-Type", "text/html")
		for link := page + 1; link <= min(page+4, pages); link++ {
			fmt.Fprintf(w, "<a href=/%d>x</a>", link)
		}
	}))
	defer srv.Close()
	dir := filepath.Join(t.TempDir(), "state")
	args := []string{"--embedded", "--state", dir, "--delay", "50ms", "--jitter", "0", "--allow-net", "127.0.0.0/8"}
	p := start(t, append(args, "--seed", srv.URL+"/1")...)
	<-late
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.cmd.Wait()

	log := filepath.Join(dir, "0.1.log")
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/8] ^= 1
	if err := os.WriteFile(log, b, 0o600); err != nil {
		t.Fatal(err)
	}
	remedy := "frontier check --state " + dir + " --repair"
	code, text := end(t, args...)
	if code != 1 || !strings.Contains(text, log+" is damaged at byte ") || !strings.Contains(text, remedy) {
		t.Fatalf("code %d: %s", code, text)
	}
	tool := filepath.Join(t.TempDir(), "frontier")
	if out, err := exec.Command("go", "build", "-o", tool, "../frontier").CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	if out, err := exec.Command(tool, strings.Fields(remedy)[1:]...).CombinedOutput(); err != nil || !strings.Contains(string(out), "0.1.log") {
		t.Fatalf("%v: %s", err, out)
	}
	// The seed leads to what a damaged part had and nothing else names.
	if code, text := end(t, append(args, "--seed", srv.URL+"/1")...); code != 0 {
		t.Fatalf("code %d: %s", code, text)
	}
	mu.Lock()
	defer mu.Unlock()
	for page := 1; page <= pages; page++ {
		if n := asked[fmt.Sprint("/", page)]; n == 0 || n > 2 {
			t.Errorf("page %d was asked for %d times", page, n)
		}
	}
	if out, err := exec.Command(tool, "check", "--state", dir).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
