package fetcher_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"

	"seine/fetch"
	"seine/fetch/crawl"
	"seine/fetch/fetcher"
	"seine/frontier"
)

// pages is a site of three pages.
func pages() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/":
			fmt.Fprint(w, `<title>home</title><a href="/a">a</a> <a href="/b">b</a>`)
		case "/a", "/b":
			fmt.Fprintf(w, `<title>page %s</title><a href="/">home</a>`, path.Base(r.URL.Path))
		default:
			http.NotFound(w, r)
		}
	}))
}

// A crawl of one site in this process: its seed, and a handler that sees each page once.
func Example() {
	site := pages()
	defer site.Close()

	var mu sync.Mutex // handlers of different sites run side by side
	var titles []string
	err := fetcher.Run(context.Background(), fetcher.Config{
		Seeds: []string{site.URL},
		Handler: func(_ context.Context, p *crawl.Page) error {
			mu.Lock()
			defer mu.Unlock()
			titles = append(titles, p.Title)
			return nil
		},
		Settings: func(s *frontier.Settings) { s.Delay = 0 }, // of a site of our own
		Fetch:    fetch.Config{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
	})
	if err != nil {
		fmt.Println(err)
	}
	slices.Sort(titles)
	fmt.Println(strings.Join(titles, "\n"))
	// Output:
	// home
	// page a
	// page b
}
