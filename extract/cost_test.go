package extract

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkScan is what a KB of text without links takes, with the tags that
// text has, and what a link takes beside that.
func BenchmarkScan(b *testing.B) {
	const paragraph = "<p>Some words that <em>say</em> little about a <b>page</b> of many, and lead nowhere at all.</p>\n"
	text := strings.Repeat(paragraph, 64<<10/len(paragraph))
	read := func(b *testing.B, body string) float64 {
		pg := NewPage(PageConfig{})
		doc := benchDoc
		doc.Base = mustURL(b, "http://docs.example/a/b/page.html")
		count := func(*Found) {}
		b.ReportAllocs()
		for b.Loop() {
			pg.Reset(doc, count)
			pg.Write([]byte(body))
			pg.Close()
		}
		return float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	}
	perKB := 0.0
	b.Run("text", func(b *testing.B) {
		perKB = read(b, text) / (float64(len(text)) / 1024)
		b.ReportMetric(perKB, "ns/KB")
	})
	b.Run("links", func(b *testing.B) {
		const links = 600
		var body strings.Builder
		body.WriteString(text)
		for i := range links {
			fmt.Fprintf(&body, "<a href=\"/section/%d/page-%d.html\">A link</a>\n", i%7, i)
		}
		all := read(b, body.String())
		b.ReportMetric((all-perKB*float64(len(text))/1024)/links, "ns/link")
	})
}
