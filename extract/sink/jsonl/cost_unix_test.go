//go:build unix

package jsonl

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seine/extract/sink"
)

// BenchmarkRecord is what a page's record costs, in processor time and on disk,
// with values that differ as those of pages do: by compression, and by the fields
// beside those that are always there.
func BenchmarkRecord(b *testing.B) {
	for _, f := range []struct {
		suffix string
		fields sink.Fields
	}{
		{"", 0},
		{"_links_out_headers", sink.FieldLinksOut | sink.FieldHeaders},
		{"_body_16KB", sink.FieldBody},
		{"_text_4KB", sink.FieldText},
	} {
		for _, c := range [][2]string{{"plain", "pages.jsonl"}, {"gzip", "pages.jsonl.gz"}, {"zstd", "pages.jsonl.zst"}} {
			b.Run(c[0]+f.suffix, func(b *testing.B) {
				s := open(b, Config{Path: filepath.Join(b.TempDir(), c[1]), Fields: f.fields})
				done := func(error) {}
				some := pages()
				from, i := spent(), 0
				for b.Loop() {
					r := *some[i%len(some)]
					i++
					name(&r, i)
					s.Write(&r, done)
				}
				shut(b, s)
				b.ReportMetric(float64((spent()-from).Nanoseconds())/float64(b.N), "cpu-ns/record")
				b.ReportMetric(float64(s.Stats().Bytes)/float64(b.N), "file-B/record")
			})
		}
	}
}

// pages are records with the optional fields of ordinary pages, so many that no
// compressor still knows the last when they come again.
var pages = sync.OnceValue(func() []*sink.Record {
	const body, text, links = 16 << 10, 4 << 10, 60
	rng := rand.New(rand.NewPCG(1, 2))
	words := func(n int) string {
		s := make([]byte, 0, n+16)
		for len(s) < n {
			x := min(rng.Int64N(3000), rng.Int64N(3000), rng.Int64N(3000)) // few words are most of a text
			s = append(strconv.AppendInt(s, x*x*7+1234, 36), ' ')
		}
		return string(s[:n])
	}
	all := make([]*sink.Record, 1024)
	for i := range all {
		r := varied(i)
		r.SetBody([]byte(words(body)))
		r.Text = words(text)
		for n := range links {
			r.LinksOut = append(r.LinksOut, fmt.Sprintf("%s/to-%d?of=%d", r.URL, rng.IntN(1e6), n))
		}
		for name := range strings.FieldsSeq("Date Server Content-Type Content-Length Last-Modified ETag Cache-Control Vary X-Request-Id Via") {
			r.Headers = append(r.Headers, [2]string{name, words(24)})
		}
		all[i] = r
	}
	return all
})

// varied is the i-th record.
func varied(i int) *sink.Record {
	r := record(16)
	name(r, i)
	return r
}

// name gives a record an URL and a title of its own.
func name(r *sink.Record, i int) {
	x := uint64(i) * 0x9e3779b97f4a7c15
	r.URL = fmt.Sprintf("https://www.site-%d.example/section-%d/page-%d.html", x%5000, x>>20%60, i)
	r.Title = fmt.Sprintf("Page %d of section %d, and what it says of %d", i, x>>20%60, x>>40)
	r.Digest = fmt.Sprintf("sha256:%016x%016x%016x%016x", x, x*x, x*x*x, x*x*x*x)
}

func spent() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
