package canon

import (
	"html"
	neturl "net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// page is a page's URL and its links.
type page struct {
	base  string
	links []string
}

// usual is a mixture as pages of shops, news and forums have it.
var usual = []page{{"https://www.example.com/articles/2024/05/a-typical-page-name.html", []string{
	"/", "/about", "/articles/2024/05/another-typical-page.html", "/search?q=crawler&page=2&sort=date", "/tags/open-source/",
	"https://www.example.com/shop/item/12345-some-product-name", "https://cdn.example.net/assets/app.css?v=20240501",
	"https://twitter.com/share?url=https%3A%2F%2Fwww.example.com%2F&text=Hello%20World", "//static.example.com/img/logo.png",
	"next-page.html", "../06/index.html", "./comments?page=3#c42", "?print=1", "#top", "/wiki/Gr%C3%BC%C3%9Fe_aus_K%C3%B6ln",
	"http://forum.example.org:8080/viewtopic.php?f=5&t=1234&p=98765#p98765", "https://sub.domain.example.co.uk/path/to/some/deep/page/",
	"/user/profile?id=8127&tab=posts", "/category/shoes/men?color=red&size=42&utm_source=feed", "https://en.wikipedia.org/wiki/Web_crawler",
}}}

var href = regexp.MustCompile(`href="([^"]*)"`)

// docs are the links of real pages, those of the PostgreSQL manual.
func docs(b *testing.B) (pages []page) {
	files, _ := filepath.Glob("/usr/share/doc/postgresql-doc-15/html/*.html")
	if len(files) == 0 {
		b.Skip("postgresql-doc-15 is not installed")
	}
	for _, f := range files[:min(len(files), 200)] {
		text, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		p := page{base: "https://www.postgresql.org/docs/15/" + filepath.Base(f)}
		for _, m := range href.FindAllSubmatch(text, -1) {
			p.links = append(p.links, html.UnescapeString(string(m[1])))
		}
		pages = append(pages, p)
	}
	return pages
}

func BenchmarkLink(b *testing.B) {
	for _, corpus := range []struct {
		name  string
		pages func(*testing.B) []page
	}{
		{"usual", func(*testing.B) []page { return usual }},
		{"docs", docs},
	} {
		b.Run(corpus.name, func(b *testing.B) {
			pages := corpus.pages(b)
			b.Run("canon", func(b *testing.B) { benchCanon(b, pages, func(u *URL) int { return len(u.Fetch()) + len(u.Key()) }) })
			sites := NewSites(ByDomain)
			b.Run("canon+fingerprint", func(b *testing.B) {
				benchCanon(b, pages, func(u *URL) int {
					_, f := sites.Fingerprint(u)
					return int(f.Key & 1)
				})
			})
			b.Run("library", func(b *testing.B) { benchLibrary(b, pages) })
			b.Run("net-url", func(b *testing.B) { benchNetURL(b, pages) })
		})
	}
}

// sink keeps results alive.
var sink int

// perLink reports what one link of pages costs.
func perLink(b *testing.B, pages []page) {
	links := 0
	for _, p := range pages {
		links += len(p.links)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(links), "ns/link")
}

func benchCanon(b *testing.B, pages []page, use func(*URL) int) {
	p := NewParser(Config{})
	type raw struct {
		base  URL
		links [][]byte
	}
	list := make([]raw, len(pages))
	for i, pg := range pages {
		if err := p.Parse(&list[i].base, []byte(pg.base)); err != nil {
			b.Fatal(err)
		}
		for _, l := range pg.links {
			list[i].links = append(list[i].links, []byte(l))
		}
	}
	var u URL
	b.ReportAllocs()
	for b.Loop() {
		for i := range list {
			for _, l := range list[i].links {
				if p.Resolve(&u, &list[i].base, l, nil) == nil {
					sink += use(&u)
				}
			}
		}
	}
	perLink(b, pages)
}

func benchNetURL(b *testing.B, pages []page) {
	bases := make([]*neturl.URL, len(pages))
	for i, pg := range pages {
		var err error
		if bases[i], err = neturl.Parse(pg.base); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, pg := range pages {
			for _, l := range pg.links {
				if ref, err := neturl.Parse(l); err == nil {
					sink += len(bases[i].ResolveReference(ref).String())
				}
			}
		}
	}
	perLink(b, pages)
}

// benchLibrary measures the slow path.
func benchLibrary(b *testing.B, pages []page) {
	p := NewParser(Config{})
	var base, u URL
	b.ReportAllocs()
	for b.Loop() {
		for _, pg := range pages {
			if err := p.Parse(&base, []byte(pg.base)); err != nil {
				b.Fatal(err)
			}
			for _, l := range pg.links {
				if p.slow(&u, &base, []byte(l), nil) == nil {
					sink += len(u.Fetch()) + len(u.Key())
				}
			}
		}
	}
	perLink(b, pages)
}
