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

// BenchmarkInflate inflates every tenth page of Debian's documentation, the small
// ones of them, and one page of 103 KB that is 15 KB as gzip, in all ways by turns.
// Between two times that a page is inflated in one way all the others are, so that
// the processor cannot learn a page by heart. A page's time is the least of all
// rounds, so that other load counts little.
func BenchmarkInflate(b *testing.B) {
	const docs = "/usr/share/doc/"
	const one = docs + "python3.11/html/library/http.client.html"
	var paths []string
	for _, pattern := range []string{"python3.11/html/*/*.html", "postgresql-doc-15/html/*.html"} {
		all, _ := filepath.Glob(docs + pattern)
		for i, path := range all {
			if i%10 == 0 || path == one {
				paths = append(paths, path)
			}
		}
	}
	plain, packed := realPages(b, paths...)
	best := make([][]time.Duration, len(waysToInflate))
	ways := make([]func([]byte) int, len(waysToInflate))
	for w := range ways {
		ways[w] = waysToInflate[w].make()
		for range packed {
			best[w] = append(best[w], math.MaxInt64)
		}
	}
	for b.Loop() {
		for w, f := range ways {
			for i, p := range packed {
				from := time.Now()
				n := f(p)
				best[w][i] = min(best[w][i], time.Since(from))
				if n != len(plain[i]) {
					b.Fatal(waysToInflate[w].name, n, len(plain[i]))
				}
			}
		}
	}
	for _, set := range []struct {
		name string
		has  func(i int) bool
	}{
		{"page", func(i int) bool { return paths[i] == one }},
		{"pages", func(int) bool { return true }},
		{"small", func(i int) bool { return len(plain[i]) < 10<<10 }},
	} {
		var us [8]float64
		for w := range ways {
			n := 0.
			for i, d := range best[w] {
				if set.has(i) {
					us[w] += float64(d.Nanoseconds()) / 1e3
					n++
				}
			}
			b.ReportMetric(us[w]/n, waysToInflate[w].name+"-us/"+set.name)
		}
		b.ReportMetric(us[2]/us[0], "stream/klauspost/"+set.name)
		b.ReportMetric(us[2]/us[1], "stream/stdlib/"+set.name)
	}
	b.ReportMetric(0, "ns/op")
}
