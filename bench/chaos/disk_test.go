//go:build linux

package chaos

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The disk of the records is full. Fetching stops and says why, nothing is
// settled without its record, and with room it goes on. Who may mount gets a
// small file system of its own filled up; for others files may not grow any more.
func TestDiskFull(t *testing.T) {
	w := build(t, setup{lease: 10 * time.Second})
	d := w.newDisk()
	w.start(3)
	for range either(2, 6) {
		w.progress(either(150, 300))
		d.fill()
		w.blows++
		w.waitStalled()
		before := w.stats()
		w.stalledStill()
		d.free()
		w.until("pages to be settled again", func() bool { return w.stats().Done > before.Done })
	}
	w.note("disk", d)
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	if v.repeats != 0 || v.Doubled.Count != 0 || v.lost != 0 {
		t.Errorf("a full disk made fetchers repeat themselves:\n%s", v.Report)
	}
}

// disk is where the records go.
type disk struct {
	w      *world
	dir    string // of a file system of its own, else ""
	filler string
}

func (d *disk) String() string {
	if d.dir == "" {
		return "not its own: a limit of the processes"
	}
	return "tmpfs"
}

// newDisk leads the records to a file system of their own, where that can be had.
func (w *world) newDisk() *disk {
	w.t.Helper()
	dir := w.t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64m,mode=0700")
	if err != nil {
		w.t.Log("no file system of its own for the records: ", err)
		return &disk{w: w}
	}
	w.t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			w.t.Error(err)
		}
	})
	w.records = dir
	return &disk{w, dir, filepath.Join(dir, "filler")}
}

// fill takes what room there is.
func (d *disk) fill() {
	d.w.t.Helper()
	if d.dir == "" {
		for _, f := range d.w.fetchers {
			f.limitFile(1)
		}
		return
	}
	f, err := os.Create(d.filler)
	if err != nil {
		d.w.t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, unix.ENOSPC) {
		d.w.t.Fatal(err)
	}
}

// free gives it back.
func (d *disk) free() {
	d.w.t.Helper()
	if d.dir == "" {
		for _, f := range d.w.fetchers {
			f.limitFile(math.MaxUint64)
		}
		return
	}
	if err := os.Remove(d.filler); err != nil {
		d.w.t.Fatal(err)
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

// waitStalled waits until every fetcher says in all places that records wait, and
// none asks for anything any more.
func (w *world) waitStalled() {
	w.t.Helper()
	for _, f := range w.fetchers {
		w.until(f.name+" to say that records wait", func() bool {
			if !f.running() {
				w.t.Fatalf("%s ended: %v\n%s", f.name, f.err, f.tail())
			}
			return strings.Contains(f.ask("/healthz"), "records wait") && f.metric("seine_crawl_limited_by", `bound="sink"`) == 1
		})
	}
	asked, looks := len(w.web.Log()), 0
	w.until("requests to end", func() bool {
		if n := len(w.web.Log()); n != asked {
			asked, looks = n, 0
		}
		looks++
		return looks > 50 // a second: five delays
	})
}

// stalledStill looks on for a while: never may more be settled as done than there
// are records, and nothing is asked for.
func (w *world) stalledStill() {
	w.t.Helper()
	asked, looks := len(w.web.Log()), 0
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
	if n := len(w.web.Log()); n != asked {
		w.t.Errorf("%d requests were made while no record could be written", n-asked)
	}
}
