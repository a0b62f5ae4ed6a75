//go:build unix

package jsonl

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"seine/extract/sink"
)

// BenchmarkRecord is what a page's record costs, in processor time and on disk,
// with the fields that are always there and values that differ as those of pages
// do.
func BenchmarkRecord(b *testing.B) {
	for name, file := range map[string]string{"plain": "pages.jsonl", "gzip": "pages.jsonl.gz", "zstd": "pages.jsonl.zst"} {
		b.Run(name, func(b *testing.B) {
			s := open(b, Config{Path: filepath.Join(b.TempDir(), file)})
			done := func(error) {}
			from, i := spent(), 0
			for b.Loop() {
				i++
				s.Write(varied(i), done)
			}
			shut(b, s)
			b.ReportMetric(float64((spent()-from).Nanoseconds())/float64(b.N), "cpu-ns/record")
			b.ReportMetric(float64(s.Stats().Bytes)/float64(b.N), "file-B/record")
		})
	}
}

// varied is the i-th record.
func varied(i int) *sink.Record {
	r := record(16)
	x := uint64(i) * 0x9e3779b97f4a7c15
	r.URL = fmt.Sprintf("https://www.site-%d.example/section-%d/page-%d.html", x%5000, x>>20%60, i)
	r.Title = fmt.Sprintf("Page %d of section %d, and what it says of %d", i, x>>20%60, x>>40)
	r.Digest = fmt.Sprintf("sha256:%016x%016x%016x%016x", x, x*x, x*x*x, x*x*x*x)
	return r
}

func spent() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
