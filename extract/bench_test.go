package extract

import (
	"bytes"
	"testing"
	"time"

	"github.com/tdewolff/parse/v2"
	tdhtml "github.com/tdewolff/parse/v2/html"
	"golang.org/x/net/html"
)

// benchPages is all corpora that are there, each page ready to be read.
func benchPages(b *testing.B) (all []page, size int64) {
	b.Helper()
	for i := range corpora {
		for _, p := range corpus(b, i) {
			all = append(all, p)
			size += int64(len(p.body))
		}
	}
	return all, size
}

// bench reads all pages with read and says how many links it met.
func bench(b *testing.B, read func(page) int) {
	all, size := benchPages(b)
	b.SetBytes(size)
	b.ReportAllocs()
	links := 0
	for b.Loop() {
		links = 0
		for _, p := range all {
			links += read(p)
		}
	}
	b.ReportMetric(float64(links), "links/op")
}

var benchDoc = Doc{ContentType: "text/html; charset=utf-8"}

// scanReader reads with a Scanner that looks for kinds.
func scanReader(kinds Kinds) func(page) int {
	s := NewScanner(Config{Kinds: kinds})
	n := 0
	count := func(*Link) { n++ }
	return func(p page) int {
		n = 0
		s.Reset(benchDoc, count)
		s.Write(p.body)
		s.Close()
		return n
	}
}

// pageReader reads with the whole pipeline.
func pageReader(b *testing.B) func(page) int {
	pg := NewPage(PageConfig{})
	doc := benchDoc
	doc.Base = mustURL(b, "http://docs.example/a/b/page.html")
	n := 0
	count := func(*Found) { n++ }
	return func(p page) int {
		n = 0
		pg.Reset(doc, count)
		pg.Write(p.body)
		pg.Close()
		return n
	}
}

// readTdewolff reads href attributes with tdewolff's lexer and does no more.
func readTdewolff(p page) int {
	n := 0
	l := tdhtml.NewLexer(parse.NewInputBytes(p.body))
	for {
		switch tt, _ := l.Next(); tt {
		case tdhtml.ErrorToken:
			return n
		case tdhtml.AttributeToken:
			if bytes.Equal(l.AttrKey(), []byte("href")) && len(l.AttrVal()) > 0 {
				n++
			}
		}
	}
}

// readNetHTML reads href attributes with the tokenizer of x/net/html and does
// no more.
func readNetHTML(p page) int {
	n := 0
	z := html.NewTokenizer(bytes.NewReader(p.body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return n
		case html.StartTagToken, html.SelfClosingTagToken:
			for _, more := z.TagName(); more; {
				var key, val []byte
				key, val, more = z.TagAttr()
				if string(key) == "href" && len(val) > 0 {
					n++
				}
			}
		}
	}
}

func BenchmarkScanner(b *testing.B)         { bench(b, scanReader(Navigation)) }
func BenchmarkScannerAllKinds(b *testing.B) { bench(b, scanReader(All)) }
func BenchmarkPage(b *testing.B)            { bench(b, pageReader(b)) }
func BenchmarkTdewolff(b *testing.B)        { bench(b, readTdewolff) }
func BenchmarkNetHTML(b *testing.B)         { bench(b, readNetHTML) }

// BenchmarkRatios reads each page with all readers in turn and reports how many
// times faster ours are. The best of several readings of a page counts, so that
// whatever else the machine does falls out.
func BenchmarkRatios(b *testing.B) {
	for i := range corpora {
		b.Run(corpora[i].name, func(b *testing.B) { ratios(b, corpus(b, i)) })
	}
	b.Run("all", func(b *testing.B) {
		all, _ := benchPages(b)
		ratios(b, all)
	})
}

func ratios(b *testing.B, all []page) {
	size := 0
	for _, p := range all {
		size += len(p.body)
	}
	readers := []func(page) int{scanReader(Navigation), pageReader(b), scanReader(All), readTdewolff, readNetHTML}
	best := make([][]time.Duration, len(readers))
	for i := range best {
		best[i] = make([]time.Duration, len(all))
	}
	for b.Loop() {
		for i, p := range all {
			bytes.IndexByte(p.body, 0xFF) // into the cache, where the network puts it: no reader pays for the others
			for r, read := range readers {
				start := time.Now()
				read(p)
				if took := time.Since(start); best[r][i] == 0 || took < best[r][i] {
					best[r][i] = took
				}
			}
		}
	}
	sum := make([]float64, len(readers))
	for r := range best {
		for _, d := range best[r] {
			sum[r] += d.Seconds()
		}
	}
	b.ReportMetric(sum[3]/sum[0], "scan/tdewolff")
	b.ReportMetric(sum[4]/sum[0], "scan/nethtml")
	b.ReportMetric(sum[3]/sum[1], "page/tdewolff")
	b.ReportMetric(sum[3]/sum[2], "scan-all/tdewolff")
	b.ReportMetric(float64(size)/sum[0]/1e6, "scan-MB/s")
	b.ReportMetric(float64(size)/sum[1]/1e6, "page-MB/s")
}
