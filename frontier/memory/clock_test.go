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
		for _, v := range acquireAll(t, f, 1) {
			st := frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1}}, Release: &frontier.Release{Remain: time.Minute}}
			if _, err := f.Settle(t.Context(), v.Shard, []frontier.Settlement{st}); err != nil {
				t.Fatal(err)
			}
		}
		c.Advance(-24 * time.Hour)
		f = reopened(t, f, crash)
		if v := acquireAll(t, f, 1); len(v) != 0 {
			t.Errorf("crash %v: leased before its minute was over: %+v", crash, v)
		}
		c.Advance(2 * time.Minute)
		if v := acquireAll(t, f, 1); len(v) != 1 {
			t.Errorf("crash %v: %d visits after two minutes, want 1", crash, len(v))
		}
	}
}

// TestClockSetForward: when the clock is set forward, no delay is cut by the step.
func TestClockSetForward(t *testing.T) {
	c := &testClock{now: time.Now()}
	f, err := New(Config{Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	admitURLs(t, f, "a.example", 2)
	v := acquireAll(t, f, 1)[0]
	st := frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1}}, Release: &frontier.Release{Remain: time.Minute}}
	if _, err := f.Settle(t.Context(), v.Shard, []frontier.Settlement{st}); err != nil {
		t.Fatal(err)
	}
	tick := func(then int64, since time.Duration) frontier.TickReply {
		r, err := f.Tick(t.Context(), 0, frontier.TickRequest{MaxLag: time.Second, LastNow: then, Elapsed: since, Want: 9})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := tick(0, 0)
	c.Advance(time.Hour)
	r := tick(before.Now, 2*time.Second)
	if r.ClockJump != time.Hour-2*time.Second || len(r.Due) > 0 || r.Next > 58*time.Second+2*time.Millisecond || r.Next < 57*time.Second {
		t.Errorf("%+v, want a jump of an hour and a.example in 58 s", r)
	}
	c.Advance(time.Hour)
	if r := tick(r.Now, time.Hour); r.ClockJump != 0 || len(r.Due) != 1 {
		t.Errorf("%+v after an hour, want a.example", r)
	}
}
