package crawl

import "testing"

// Work that can wait does so for what it would take away, and for nothing else.
func TestBusy(t *testing.T) {
	w := &Worker{}
	for _, name := range limitNames {
		w.limit.now.Store(&name)
		if want := name == "cpu" || name == "redis"; w.Busy() != want {
			t.Errorf("bound by %s: %v", name, w.Busy())
		}
	}
}
