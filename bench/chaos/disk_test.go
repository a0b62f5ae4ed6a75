//go:build linux

package chaos

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The files of records may not grow any more, as on a full disk. Fetching
// stops and says why, nothing is settled without its record, and with room it
// goes on. The limit is one of the process (RLIMIT_FSIZE), so that neither a
// disk nor root is needed.
func TestDiskFull(t *testing.T) {
	w := build(t, setup{lease: 10 * time.Second})
	w.start(3)
	for range either(2, 6) {
		w.progress(either(150, 300))
		for _, f := range w.fetchers {
			f.limitFile(1)
		}
		w.blows++
		w.waitStalled()
		before := w.stats()
		w.stalledStill()
		for _, f := range w.fetchers {
			f.limitFile(math.MaxUint64)
		}
		w.until("pages to be settled again", func() bool { return w.stats().Done > before.Done })
	}
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	if v.repeats != 0 || v.Doubled.Count != 0 || v.lost != 0 {
		t.Errorf("a full disk made fetchers repeat themselves:\n%s", v.Report)
	}
}

// limitFile sets how large a file the process may write.
func (f *fetcher) limitFile(bytes uint64) {
	f.w.t.Helper()
	var now unix.Rlimit
	if err := unix.Prlimit(f.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &now); err != nil {
		f.w.t.Fatal(err)
	}
	now.Cur = min(bytes, now.Max)
	if err := unix.Prlimit(f.cmd.Process.Pid, unix.RLIMIT_FSIZE, &now, nil); err != nil {
		f.w.t.Fatal(err)
	}
}

// waitStalled waits until every fetcher says that records wait, and no longer
// asks for anything.
func (w *world) waitStalled() {
	w.t.Helper()
	for _, f := range w.fetchers {
		w.until(f.name+" to say that records wait", func() bool {
			if !f.running() {
				w.t.Fatalf("%s ended: %v\n%s", f.name, f.err, f.tail())
			}
			return strings.Contains(f.ask("/healthz"), "records wait")
		})
	}
}

// stalledStill looks on for a while: never may more be settled as done than there
// are records.
func (w *world) stalledStill() {
	w.t.Helper()
	looks := 0
	w.until("some looks", func() bool {
		done := w.stats().Done
		records := int64(0)
		for _, out := range w.outs() {
			b, err := os.ReadFile(out)
			if err != nil {
				w.t.Fatal(err)
			}
			records += int64(bytes.Count(b, []byte("\n")))
		}
		if done > records {
			w.t.Errorf("%d pages were settled, and only %d records are there", done, records)
		}
		looks++
		return looks > 20
	})
}
