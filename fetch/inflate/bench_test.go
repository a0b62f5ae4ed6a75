package inflate

import (
	"bytes"
	stdflate "compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
)

// realPages are pages of Debian's documentation, and what gzip makes of them.
func realPages(b *testing.B, paths ...string) (plain, packed [][]byte) {
	for _, path := range paths {
		p, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		plain, packed = append(plain, p), append(packed, pack(b, Gzip, 6, p))
	}
	if len(plain) == 0 {
		b.Skip("SKIPPED: needs Debian's packages python3.11-doc and postgresql-doc-15")
	}
	return plain, packed
}

// The ways of inflating that are compared, by turns. Each returns how many bytes came.
var waysToInflate = []struct {
	name string
	make func() func(packed []byte) int
}{
	{"klauspost", func() func([]byte) int {
		z, buf := new(gzip.Reader), make([]byte, 16<<10)
		return func(packed []byte) int { z.Reset(bytes.NewReader(packed)); return drain(z, buf) }
	}},
	{"stdlib", func() func([]byte) int {
		z, buf := new(stdflate.Reader), make([]byte, 16<<10)
		return func(packed []byte) int { z.Reset(bytes.NewReader(packed)); return drain(z, buf) }
	}},
	{"stream", func() func([]byte) int {
		s := new(Stream)
		return func(packed []byte) (n int) {
			s.Reset(Gzip)
			for {
				out, taken, err := s.Next(packed)
				packed = packed[taken:]
				n += len(out)
				if err != nil || len(out) == 0 {
					return n
				}
			}
		}
	}},
	{"whole", func() func([]byte) int {
		d, dst := new(Decoder), make([]byte, 0, 4<<20)
		return func(packed []byte) int {
			d.Reset(Gzip)
			out, _, _ := d.Decode(dst, packed)
			return len(out)
		}
	}},
}

func drain(r io.Reader, buf []byte) (n int) {
	for {
		k, err := r.Read(buf)
		if n += k; err != nil {
			return n
		}
	}
}

// BenchmarkInflate inflates real pages in all ways by turns: the page of 103 KB
// that is 15 KB as gzip, every tenth of all, and every tenth of the small ones. A
// page's time is the least of all rounds, so that other load counts little.
func BenchmarkInflate(b *testing.B) {
	const docs = "/usr/share/doc/"
	var some, small []string
	for _, pattern := range []string{"python3.11/html/*/*.html", "postgresql-doc-15/html/*.html"} {
		all, _ := filepath.Glob(docs + pattern)
		for i := 0; i < len(all); i += 10 {
			some = append(some, all[i])
			if info, err := os.Stat(all[i]); err == nil && info.Size() < 10<<10 {
				small = append(small, all[i])
			}
		}
	}
	one, _ := filepath.Glob(docs + "python3.11/html/library/http.client.html")
	for _, set := range []struct {
		name  string
		paths []string
	}{{"page", one}, {"pages", some}, {"small", small}} {
		b.Run(set.name, func(b *testing.B) {
			plain, packed := realPages(b, set.paths...)
			best := make([][]time.Duration, len(waysToInflate))
			ways := make([]func([]byte) int, len(waysToInflate))
			for w := range ways {
				ways[w] = waysToInflate[w].make()
				for range packed {
					best[w] = append(best[w], math.MaxInt64)
				}
			}
			for b.Loop() {
				for i, p := range packed {
					for w, f := range ways {
						from := time.Now()
						if n := f(p); n != len(plain[i]) {
							b.Fatal(waysToInflate[w].name, n, len(plain[i]))
						}
						best[w][i] = min(best[w][i], time.Since(from))
					}
				}
			}
			var sums [8]float64
			for w := range ways {
				for _, d := range best[w] {
					sums[w] += float64(d.Nanoseconds()) / 1e3 / float64(len(packed))
				}
				b.ReportMetric(sums[w], waysToInflate[w].name+"-us/page")
			}
			b.ReportMetric(sums[2]/sums[0], "stream/klauspost")
			b.ReportMetric(sums[2]/sums[1], "stream/stdlib")
			b.ReportMetric(0, "ns/op")
		})
	}
}
