package fetch

import (
	"bytes"
	"io"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/molecule-man/go-brrr"
)

// BenchmarkCodings decodes real pages in each coding that a server may choose, at
// the levels that servers use, by turns: what it costs a page and how many bytes it
// is on the wire. Andybalholm's reader of brotli is there to compare. A page's time
// is the least of all rounds.
func BenchmarkCodings(b *testing.B) {
	all, _ := filepath.Glob("/usr/share/doc/python3.11/html/library/*.html")
	if len(all) == 0 {
		b.Skip("SKIPPED: needs Debian's package python3.11-doc")
	}
	var pages [][]byte
	for i := 0; i < len(all); i += 10 {
		pages = append(pages, read(b, all[i]))
	}
	one := read(b, "/usr/share/doc/python3.11/html/library/http.client.html")
	brotliLevel := func(level int) func([]byte) []byte {
		return func(p []byte) []byte {
			var out bytes.Buffer
			w, err := brrr.NewWriter(&out, level)
			if err != nil {
				b.Fatal(err)
			}
			w.Write(p)
			w.Close()
			return out.Bytes()
		}
	}
	br11 := brotliLevel(11)
	other := new(brotli.Reader)
	buf := make([]byte, chunkSize)
	codings := []struct {
		name   string
		coding coding
		pack   func([]byte) []byte
		other  io.Reader
	}{
		{"gzip6", codingGzip, func(p []byte) []byte {
			var out bytes.Buffer
			w, _ := gzip.NewWriterLevel(&out, 6)
			w.Write(p)
			w.Close()
			return out.Bytes()
		}, nil},
		{"br5", codingBrotli, brotliLevel(5), nil},
		{"br11", codingBrotli, br11, nil},
		{"br11-andybalholm", codingBrotli, br11, other},
		{"zstd3", codingZstd, func(p []byte) []byte {
			w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(3)))
			if err != nil {
				b.Fatal(err)
			}
			return w.EncodeAll(p, nil)
		}, nil},
	}
	for _, set := range []struct {
		name  string
		pages [][]byte
	}{{"page", [][]byte{one}}, {"pages", pages}} {
		b.Run(set.name, func(b *testing.B) {
			var d decoders
			packed := make([][][]byte, len(codings))
			best := make([][]time.Duration, len(codings))
			for c := range codings {
				for _, p := range set.pages {
					packed[c] = append(packed[c], codings[c].pack(p))
					best[c] = append(best[c], math.MaxInt64)
				}
			}
			for b.Loop() {
				for i, plain := range set.pages {
					for c, k := range codings {
						from, n := time.Now(), 0
						if k.other != nil {
							other.Reset(bytes.NewReader(packed[c][i]))
							for {
								m, err := other.Read(buf)
								if n += m; err != nil {
									break
								}
							}
						} else {
							s := d.getStage(k.coding, &given{packed[c][i]}, math.MaxInt64)
							for {
								p, err := s.piece()
								if n += len(p); err != nil {
									break
								}
							}
							d.putStage(s)
						}
						best[c][i] = min(best[c][i], time.Since(from))
						if n != len(plain) {
							b.Fatal(k.name, n, len(plain))
						}
					}
				}
			}
			for c, k := range codings {
				var spent, size, plain float64
				for i := range set.pages {
					plain += float64(len(set.pages[i])) / 1024
					spent += float64(best[c][i].Nanoseconds()) / 1e3
					size += float64(len(packed[c][i])) / 1e3
				}
				b.ReportMetric(spent/float64(len(set.pages)), k.name+"-us/page")
				b.ReportMetric(size/float64(len(set.pages)), k.name+"-KB/page")
				b.ReportMetric(spent*1e3/plain, k.name+"-ns/KB")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
