package robots

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/temoto/robotstxt"
)

// typical is a file as shops have it: a few groups, some sixty rules.
func typical() []byte {
	var b bytes.Buffer
	b.WriteString("User-agent: badbot\nDisallow: /\n\nUser-agent: *\nCrawl-delay: 1\n")
	for i := range 40 {
		fmt.Fprintf(&b, "Disallow: /section%d/private/\n", i)
	}
	for i := range 10 {
		fmt.Fprintf(&b, "Disallow: /*?sort%d=\nDisallow: /*/print%d$\n", i, i)
	}
	b.WriteString("Allow: /section1/private/open\nSitemap: https://example.com/sitemap.xml\n")
	return b.Bytes()
}

var benchPaths = []string{
	"/", "/articles/2026/11/a-page-with-a-title-of-usual-length.html", "/section7/private/x",
	"/shop/list?page=2&sort3=price", "/b%C3%BCcher/%7ejoe?q=a%20b",
}

func BenchmarkAllowed(b *testing.B) {
	ours := Parse(typical(), "seine")
	theirs, err := robotstxt.FromBytes(typical())
	if err != nil {
		b.Fatal(err)
	}
	group := theirs.FindGroup("seine")
	for _, p := range benchPaths {
		name := strings.ReplaceAll(p[:min(len(p), 14)], "/", "_")
		b.Run("seine/"+name, func(b *testing.B) {
			path := []byte(p)
			b.ReportAllocs()
			for b.Loop() {
				ours.Allowed(path)
			}
		})
		b.Run("temoto/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				group.Test(p)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	small, large := typical(), bytes.Repeat(typical(), 1<<19/len(typical()))
	for name, file := range map[string][]byte{"typical": small, "512KiB": large} {
		b.Run("seine/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(file, "seine")
			}
		})
		b.Run("temoto/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = robotstxt.FromBytes(file)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	packed := Parse(typical(), "seine").Append(nil)
	b.ReportMetric(float64(len(packed)), "packed-B")
	b.ReportMetric(float64(len(typical())), "file-B")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Load(packed)
	}
}

// Patterns made to be slow: many stars on a path that almost matches.
func BenchmarkHostile(b *testing.B) {
	for _, n := range []int{1000, 2000, 4000} {
		r := Parse([]byte("User-agent: *\nDisallow: /"+strings.Repeat("*a", n/4)+"*aab$\nDisallow: /*"+strings.Repeat("a", n/2)+"b"), "seine")
		path := []byte("/" + strings.Repeat("a", n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				r.Allowed(path)
			}
		})
	}
}
