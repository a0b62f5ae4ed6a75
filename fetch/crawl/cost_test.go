package crawl

import (
	"bytes"
	"fmt"
	"testing"
)

// BenchmarkCost splits what a page costs beside its request and its record, in
// processor time: the page as such with a KB of text, and each link to a known
// page, found and looked up.
func BenchmarkCost(b *testing.B) {
	text := bytes.Repeat([]byte("<p>Words that lead nowhere.</p>\n"), 32)
	var bare float64
	b.Run("page", func(b *testing.B) {
		bare = cpuPerPage(b, text)
		b.ReportMetric(bare, "cpu-ns/page")
	})
	b.Run("known link", func(b *testing.B) {
		const links = benchPages // another each
		body := bytes.NewBuffer(bytes.Clone(text))
		for i := range links {
			fmt.Fprintf(body, "<a href='/p%d'>x</a>\n", i)
		}
		b.ReportMetric((cpuPerPage(b, body.Bytes())-bare)/links, "cpu-ns/link")
	})
}

func cpuPerPage(b *testing.B, body []byte) float64 {
	from := cpuTime()
	for b.Loop() {
		crawlPages(b, body, nil)
	}
	return float64((cpuTime() - from).Nanoseconds()) / float64(b.N*benchSites*benchPages)
}
