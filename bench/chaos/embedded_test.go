//go:build linux

package chaos

import (
	"path/filepath"
	"testing"
	"time"
)

// A crawl in one process, kept on disk, is killed with -9 again and again.
// Nothing is lost.
func TestEmbeddedKilled(t *testing.T) {
	w := build(t, setup{embedded: true, pages: either(1500, 12_000), delay: either(100*time.Millisecond, 50*time.Millisecond)})
	args := []string{"--embedded", "--state", filepath.Join(w.dir, "state"), "--delay", w.setup.delay.String()}
	for _, u := range w.web.Seeds() {
		args = append(args, "--seed", u)
	}
	w.start(1, args...)
	f := w.fetchers[0]
	for range either(5, 20) {
		w.progress(either(100, 300) + w.rng.IntN(100))
		f.kill()
		w.blows++
		f.start()
	}
	w.progress(100) // the web outlasts the last blow
	v := w.judge()
	w.nothingLost(v)
	if most := w.blows * 8 * w.web.Sites(); v.repeats > most { // what may be leased at once
		t.Errorf("%d requests were repeated, and only %d may have been out:\n%s", v.repeats, most, v.Report)
	}
}
