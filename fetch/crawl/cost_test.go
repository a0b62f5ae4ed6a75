package crawl

import (
	"bytes"
	"fmt"
	"testing"

	"seine/frontier"
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

// BenchmarkDigest is what the digest of a page costs, by its kind.
func BenchmarkDigest(b *testing.B) {
	page := bytes.Repeat([]byte("<p>Words that lead nowhere.</p>\n"), 2048)
	for _, kind := range []string{frontier.DigestXXH3, frontier.DigestSHA256, frontier.DigestNone} {
		b.Run(kind, func(b *testing.B) {
			var d digest
			for b.Loop() {
				d.begin(kind)
				d.write(page)
				d.text()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(page)>>10), "ns/KB")
		})
	}
}
