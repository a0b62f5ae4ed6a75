package memory

import (
	"testing"
	"time"

	"seine/frontier"
)

// TestClockSetBack: a crawl that is opened with an earlier clock than it was
// closed with goes on from the time it was at.
func TestClockSetBack(t *testing.T) {
	for _, crash := range []bool{false, true} {
		c := &testClock{now: time.Now().Add(24 * time.Hour)}
		f, err := New(Config{Now: c.Now, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		admitURLs(t, f, "a.example", 3)
		for _, v := range lendAll(t, f, 1) {
			st := frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1}}, Free: &frontier.Release{Remain: time.Minute}}
			if _, err := f.Settle(t.Context(), v.Shard, []frontier.Settlement{st}); err != nil {
				t.Fatal(err)
			}
		}
		c.Advance(-24 * time.Hour)
		f = reopened(t, f, crash)
		if v := lendAll(t, f, 1); len(v) != 0 {
			t.Errorf("crash %v: lent before its minute was over: %+v", crash, v)
		}
		c.Advance(2 * time.Minute)
		if v := lendAll(t, f, 1); len(v) != 1 {
			t.Errorf("crash %v: %d visits after two minutes, want 1", crash, len(v))
		}
	}
}
