package crawl_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"seine/fetch"
	"seine/fetch/crawl"
	"seine/fetch/fetcher"
	"seine/frontier"
)

// library is a site whose books only a search form finds, and whose prices only a client
// with a key gets.
func library() *httptest.Server {
	books := map[string]string{"sea": "Moby Dick", "war": "War and Peace"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<form action="/search" method="post"><input name="word"></form>`)
	})
	mux.HandleFunc("POST /search", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, books[r.PostFormValue("word")])
	})
	mux.HandleFunc("GET /prices", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "open sesame" {
			http.Error(w, "no key", http.StatusForbidden)
			return
		}
		fmt.Fprint(w, "all books cost 5.00")
	})
	return httptest.NewServer(mux)
}

// A handler sends a form, and a request with a header of its own. The crawl sends each
// form once, under the delay and the robots.txt of its site.
func Example_form() {
	site := library()
	defer site.Close()

	var mu sync.Mutex // handlers of different sites run side by side
	var found []string
	handler := func(_ context.Context, p *crawl.Page) error {
		if !strings.HasSuffix(p.URL, "/") {
			mu.Lock()
			defer mu.Unlock()
			found = append(found, fmt.Sprintf("%s %d %s", p.Method, p.Status, p.Body))
			return nil
		}
		for _, word := range []string{"sea", "war", "sea"} {
			form := url.Values{"word": {word}}
			if err := p.Add(crawl.Candidate{URL: "/search", Method: "POST", Body: []byte(form.Encode())}); err != nil {
				return err
			}
		}
		return p.Add(crawl.Candidate{URL: "/prices", Header: [][2]string{{"X-Key", "open sesame"}}})
	}
	err := fetcher.Run(context.Background(), fetcher.Config{
		Seeds: []string{site.URL}, Handler: handler,
		Settings: func(s *frontier.Settings) { s.Delay = 10 * time.Millisecond }, // of a site of our own
		Fetch: fetch.Config{
			UserAgent: "example/1.0 (+https://example.com/bot)",
			AllowNet:  []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, // of a site on this machine
		},
	})
	if err != nil {
		fmt.Println(err)
	}
	slices.Sort(found)
	fmt.Println(strings.Join(found, "\n"))
	// Output:
	//  200 all books cost 5.00
	// POST 200 Moby Dick
	// POST 200 War and Peace
}
