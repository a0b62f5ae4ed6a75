//go:build linux

package chaos

import (
	"syscall"
	"testing"
)

// Fetchers are killed with -9 again and again. Nothing is lost, and what is
// fetched twice is what the killed held.
func TestFetchersKilled(t *testing.T) {
	w := build(t, setup{})
	w.start(3)
	for range either(5, 20) {
		w.progress(either(100, 300))
		f := w.pick()
		f.kill()
		w.blows++
		f.start()
	}
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	w.explained(v)
	if v.lost == 0 {
		t.Error("the killed held nothing: the test shows nothing")
	}
}

// Fetchers are asked to end. They give everything back, and those that come
// after them repeat nothing.
func TestFetchersStopped(t *testing.T) {
	w := build(t, setup{fetch: []string{"--grace", "20s"}})
	w.start(3)
	for range either(2, 10) {
		w.progress(either(150, 300))
		for _, f := range w.fetchers {
			f.cmd.Process.Signal(syscall.SIGTERM)
		}
		w.waitAll()
		w.blows++
		if s := w.stats(); s.Open+s.Leases != 0 {
			t.Errorf("stopped fetchers left %d URLs of %d visits open", s.Open, s.Leases)
		}
		for _, f := range w.fetchers {
			f.start()
		}
	}
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	if v.repeats != 0 || v.Doubled.Count != 0 || v.lost != 0 {
		t.Errorf("an orderly end repeats something:\n%s", v.Report)
	}
}
