package main_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A crawl in one process is killed and its store damaged: the next start names file
// and remedy and changes nothing; with the file put back the crawl goes on to its end.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	const pages, most = 80, 60
	var mu sync.Mutex
	asked := map[string]int{}
	late := make(chan struct{}) // three seconds from the start: the store syncs twice a second, so the disk has what came first
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

	logs, err := filepath.Glob(filepath.Join(dir, "store", "*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	whole, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	hurt := slices.Clone(whole)
	hurt[len(bytes.TrimRight(hurt, "\x00"))/8] ^= 1
	for _, b := range [][]byte{hurt, whole} { // damaged, and put back
		if err := os.WriteFile(logs[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		code, text := end(t, args...)
		if &b[0] == &whole[0] {
			if code != 0 {
				t.Fatalf("code %d: %s", code, text)
			}
		} else if code != 1 || !strings.Contains(text, logs[0]+" is damaged") || !strings.Contains(text, "put a copy of the whole of "+dir+" back") {
			t.Fatalf("code %d: %s", code, text)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for page := 1; page <= pages; page++ {
		if n := asked[fmt.Sprint("/", page)]; n == 0 || n > 2 {
			t.Errorf("page %d was asked for %d times", page, n)
		}
	}
}
