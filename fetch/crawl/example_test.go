package crawl_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"seine/fetch"
	"seine/fetch/crawl"
	"seine/fetch/fetcher"
	"seine/frontier"
)

// A product scraper writes title and price of each product.
func Example_products() {
	shop := site(map[string]string{
		"/":    `<a href="/p/1">lamp</a> <a href="/p/2">chair</a> <a href="/about">about</a>`,
		"/p/1": `<h1>Lamp</h1> <span class="price">19.90</span>`,
		"/p/2": `<h1>Chair</h1> <span class="price">45.00</span>`,
	})
	defer shop.Close()

	title, price := cascadia.MustCompile("h1"), cascadia.MustCompile(".price")
	var mu sync.Mutex // handlers of different sites run side by side
	var products []string
	err := run(shop.URL, quick, func(_ context.Context, p *crawl.Page) error {
		if p.Status != http.StatusOK || !strings.Contains(p.URL, "/p/") {
			p.DropRecord()
			return nil
		}
		tree, err := p.Tree()
		if err != nil {
			return err
		}
		item := map[string]string{"title": text(cascadia.Query(tree, title)), "price": text(cascadia.Query(tree, price))}
		mu.Lock()
		products = append(products, item["title"]+" "+item["price"])
		mu.Unlock()
		return p.Emit(item) // it goes to the output, in the page's record
	})
	if err != nil {
		fmt.Println(err)
	}
	slices.Sort(products)
	fmt.Println(strings.Join(products, "\n"))
	// Output:
	// Chair 45.00
	// Lamp 19.90
}

// A link checker lists broken links with the page that led to them first.
func Example_brokenLinks() {
	pages := site(map[string]string{
		"/":  `<a href="/a">a</a> <a href="/b">b</a>`,
		"/a": `<a href="/gone">gone</a>`,
		"/b": `<a href="/">home</a>`,
	})
	defer pages.Close()

	referrers := func(s *frontier.Settings) {
		quick(s)
		s.Referrer = true // each URL carries the page that linked to it
	}
	err := run(pages.URL, referrers, func(_ context.Context, p *crawl.Page) error {
		switch {
		case p.Error != nil:
			fmt.Println(path(pages, p.Referrer), "->", path(pages, p.URL), p.Error.Text)
		case p.Status >= 400:
			fmt.Println(path(pages, p.Referrer), "->", path(pages, p.URL), p.Status)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: /a -> /gone 404
}

// A site map writer collects the pages of a site that search engines may show.
func Example_siteMap() {
	pages := site(map[string]string{
		"/":       `<a href="/new">new</a> <a href="/hidden">hidden</a> <a href="/missing">missing</a>`,
		"/new":    `<p>news`,
		"/hidden": `<meta name="robots" content="noindex">`,
	})
	defer pages.Close()

	type location struct {
		Loc string `xml:"loc"`
	}
	var siteMap struct {
		XMLName xml.Name   `xml:"http://www.sitemaps.org/schemas/sitemap/0.9 urlset"`
		URLs    []location `xml:"url"`
	}
	var mu sync.Mutex
	err := run(pages.URL, quick, func(_ context.Context, p *crawl.Page) error {
		if p.Status == http.StatusOK && !p.NoIndex {
			mu.Lock()
			siteMap.URLs = append(siteMap.URLs, location{"https://www.example.com" + path(pages, p.URL)})
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	slices.SortFunc(siteMap.URLs, func(a, b location) int { return strings.Compare(a.Loc, b.Loc) })
	text, err := xml.MarshalIndent(siteMap, "", "  ")
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(string(text))
	// Output:
	// <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
	//   <url>
	//     <loc>https://www.example.com/</loc>
	//   </url>
	//   <url>
	//     <loc>https://www.example.com/new</loc>
	//   </url>
	// </urlset>
}

// run crawls a site in this process. With Config.State the crawl is kept in that
// directory and goes on at the next start, with Config.Redis any number of programs
// work on it, and with Config.Sink its records are kept.
func run(url string, settings func(*frontier.Settings), handler crawl.Handler) error {
	return fetcher.Run(context.Background(), fetcher.Config{
		Seeds: []string{url}, Handler: handler, Settings: settings,
		Fetch: fetch.Config{
			UserAgent: "example/1.0 (+https://example.com/bot)",
			AllowNet:  []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, // of a site on this machine
		},
	})
}

// quick is for a site of our own.
func quick(s *frontier.Settings) { s.Delay = 10 * time.Millisecond }

// site serves pages on this machine.
func site(pages map[string]string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, page)
	}))
}

func path(s *httptest.Server, url string) string { return strings.TrimPrefix(url, s.URL) }

// text is the text of an element.
func text(n *html.Node) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.TrimSpace(b.String())
}
