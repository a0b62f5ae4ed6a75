package site

import (
	"testing"
	"time"

	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// walledVisit is a visit of a site that had so many walls in a row.
func walledVisit(t *testing.T, walls int) *Visit {
	v := NewVisit(t.Context(), 0, &frontier.Visit{Lease: frontier.Lease{Token: "t", Site: "a.example"}, Walls: walls, Items: make([]frontier.Item, 9)}, time.Hour, time.Hour, 9)
	v.clock.PerSite = 1
	return v
}

// wallReply is a wall that answered.
func wallReply(began time.Time) *work.Reply {
	return &work.Reply{Began: began, Latency: time.Millisecond, Wall: "acme", Failure: &work.Failure{Cause: frontier.CauseWall, Text: "a wall"}}
}

// pageReply is a page that came.
func pageReply(began time.Time) *work.Reply {
	return &work.Reply{Began: began, Latency: time.Millisecond, Answered: true, Page: true}
}

// TestWallsInRow: the third wall in a row, whoever met the others, ends the visit and holds
// its site; a page in between begins the row anew, and what is no page leaves it.
func TestWallsInRow(t *testing.T) {
	now, cfg := time.Now(), &Config{Backoff: time.Second}
	v := walledVisit(t, 0)
	for i, r := range []*work.Reply{wallReply(now), wallReply(now), pageReply(now), wallReply(now), {Began: now, Answered: true}, wallReply(now)} {
		if f := v.TakeReply(r, now, cfg); f.BackedOff {
			t.Fatalf("reply %d: %+v", i, f)
		}
	}
	var item frontier.Item
	if !v.NextItem(&item, 0, cfg) {
		t.Fatal("no URL is asked for after two walls")
	}
	f := v.TakeReply(wallReply(now), now, cfg)
	if !f.BackedOff || !f.Fresh || !f.RetryAt.Equal(now.Add(time.Hour)) || !f.GivesUp.IsZero() || f.Dead != nil {
		t.Errorf("the third: %+v", f)
	}
	if v.clock.Failures != 0 {
		t.Errorf("%d failures: the site answers", v.clock.Failures)
	}
	if v.NextItem(&item, 0, cfg) {
		t.Error("another URL is asked for")
	}
	if f := v.TakeReply(wallReply(now), now, cfg); f.BackedOff || v.walls.Count != frontier.WallsInRow {
		t.Errorf("one that was under way beside it: %+v, %d in a row", f, v.walls.Count)
	}
	v.Release(now.Add(time.Minute))
	st := v.Settlement()
	if w := st.Walls; w == nil || *w != (frontier.Walls{Count: frontier.WallsInRow, Vendor: "acme", Pause: 59 * time.Minute}) || st.Release.Remain != w.Pause {
		t.Errorf("%+v, %+v", w, st.Release)
	}
	if st := v.Settlement(); st.Walls != nil {
		t.Error("sent twice")
	}
}

// TestWallsDouble: a site that comes back from a back-off is tried once, and waits longer.
func TestWallsDouble(t *testing.T) {
	now := time.Now()
	for count, want := range map[int]time.Duration{3: 2 * time.Hour, 4: 4 * time.Hour, 90: 24 * time.Hour} {
		v := walledVisit(t, count)
		if f := v.TakeReply(wallReply(now), now, &Config{}); f.Fresh || !f.RetryAt.Equal(now.Add(want)) {
			t.Errorf("after %d: %+v, want %v", count, f, want)
		}
		if st := v.Settlement(); st.Walls != nil {
			t.Error("walls without an outcome or a release would not be taken")
		}
		v.AddOutcome(frontier.Outcome{Index: 1, Kind: frontier.Retry})
		if st := v.Settlement(); st.Walls == nil || st.Walls.Count != count+1 || st.Walls.Pause != want {
			t.Errorf("%+v", st.Walls)
		}
	}
}

// TestWallsEnd: a page ends the row, and a back-off that a request beside it began.
func TestWallsEnd(t *testing.T) {
	now, cfg := time.Now(), &Config{}
	var item frontier.Item
	v := walledVisit(t, 2)
	v.TakeReply(wallReply(now), now, cfg)
	v.TakeReply(pageReply(now), now, cfg)
	if !v.NextItem(&item, 0, cfg) {
		t.Error("nothing more is asked for")
	}
	v.Release(now)
	if st := v.Settlement(); st.Walls == nil || *st.Walls != (frontier.Walls{}) || st.Release.Remain > time.Minute {
		t.Errorf("%+v, %+v", st.Walls, st.Release)
	}
	v = walledVisit(t, 0)
	v.TakeReply(pageReply(now), now, cfg)
	v.Release(now)
	if st := v.Settlement(); st.Walls != nil {
		t.Error("a site without walls has something to keep of them")
	}
}

// TestWallsGiveUp: a site behind walls counts as unreachable, and is given up after as long.
func TestWallsGiveUp(t *testing.T) {
	now, cfg := time.Now(), &Config{GivesUp: true, GiveUp: 10 * time.Minute}
	v := walledVisit(t, 2)
	if f := v.TakeReply(wallReply(now), now, cfg); !f.RetryAt.Equal(now.Add(10*time.Minute)) || !f.GivesUp.Equal(f.RetryAt) || v.Dead() != nil {
		t.Errorf("the third: %+v", f)
	}
	v = walledVisit(t, 3)
	f := v.TakeReply(wallReply(now), now, cfg)
	if f.BackedOff || f.Dead == nil || f.Dead.Cause != frontier.CauseWall || v.Dead() != f.Dead {
		t.Errorf("the fourth: %+v", f)
	}
	if v.Release(now); v.release.Remain > time.Minute {
		t.Errorf("its other URLs wait for %v to be dead", v.release.Remain)
	}
	cfg.GiveUp = 2 * time.Hour
	v = walledVisit(t, 3)
	if f := v.TakeReply(wallReply(now), now, cfg); !f.RetryAt.Equal(now.Add(2*time.Hour)) || !f.GivesUp.Equal(f.RetryAt) {
		t.Errorf("an hour of two is over: %+v", f)
	}
}

// TestWalledRules: robots.txt behind a wall counts in the row, and gives the site up under
// the wall's name.
func TestWalledRules(t *testing.T) {
	now, cfg := time.Now(), &Config{Backoff: time.Second, GivesUp: true, GiveUp: time.Second}
	fail := wallReply(now).Failure
	v := walledVisit(t, 2)
	v.TakeReply(wallReply(now), now, cfg)
	if f := v.RefuseRules(fail, now, cfg); f != (Failed{}) || v.backedOff {
		t.Errorf("the fleet backs off already: %+v", f)
	}
	v = walledVisit(t, 0)
	v.clock.Failures = BackOffAfter
	v.TakeReply(wallReply(now), now, cfg)
	if f := v.RefuseRules(fail, now, cfg); f.Dead == nil || f.Dead.Cause != frontier.CauseWall {
		t.Errorf("%+v", f)
	}
}
