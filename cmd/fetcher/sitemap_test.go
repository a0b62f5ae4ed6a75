package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A sitemap that --sitemap names is read by content, whatever its type and name
// and without --sitemaps; scope and rules bind its pages, not itself. With nothing
// else to start from there is a crawl, and a bad one is refused.
func TestSitemapFlag(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]int{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path]++
		mu.Unlock()
		if r.URL.Path == "/robots.txt" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if r.URL.Path == "/list.bin" {
			w.Header().Set("Content-Type", "application/octet-stream")
			fmt.Fprint(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
			for _, path := range []string{"/a", "/b", "/denied"} {
				fmt.Fprintf(w, "<url><loc>http://%s%s</loc></url>", r.Host, path)
			}
			fmt.Fprint(w, "</urlset>")
		}
	}))
	defer srv.Close()
	args := []string{"--embedded", "--delay", "0s", "--max-time", "1m", "--allow-net", "127.0.0.0/8", "--deny", "/denied$", "--skip-ext", "bin"}
	if code, log := end(t, append(args, "--sitemap", srv.URL+"/list.bin")...); code != 0 {
		t.Fatal(code, log)
	}
	mu.Lock()
	defer mu.Unlock()
	for path, want := range map[string]int{"/list.bin": 1, "/a": 1, "/b": 1, "/denied": 0} {
		if asked[path] != want {
			t.Errorf("%s was asked for %d times, want %d", path, asked[path], want)
		}
	}
	if code, log := end(t, append(args, "--sitemap", "mailto:x")...); code == 0 {
		t.Error("a sitemap that is no URL to crawl was taken:", log)
	}
}
