package redis

import (
	"fmt"
	"testing"
	"time"

	"seine/frontier"
)

// TestSettleWalls is the truth table of walls: a visit of a site that has a row of walls or
// none, and what one settlement makes of it.
func TestSettleWalls(t *testing.T) {
	t.Parallel()
	const a = "a.example"
	s := one(t)
	pause := func(count int, d time.Duration) *frontier.Walls {
		return &frontier.Walls{Count: count, Vendor: "acme", Pause: d}
	}
	done := []frontier.Outcome{{Index: 1}}
	for _, c := range []struct {
		name    string
		before  *frontier.Walls
		walls   *frontier.Walls
		outcome []frontier.Outcome
		free    *frontier.Release
		count   string // that the site then has
		waits   time.Duration
		listed  bool
	}{
		{"none", nil, nil, done, &frontier.Release{Remain: time.Second}, "", time.Second, false},
		{"first", nil, pause(1, 0), done, &frontier.Release{Remain: time.Second}, "1", time.Second, false},
		{"second with its outcome", pause(1, 0), pause(2, 0), done, nil, "2", 0, false},
		{"third", pause(2, 0), pause(3, time.Hour), done, &frontier.Release{Remain: time.Second}, "3", time.Hour, true},
		{"third with its outcome", pause(2, 0), pause(3, time.Hour), done, nil, "3", time.Hour, true},
		{"third without one", pause(2, 0), pause(3, time.Hour), nil, nil, "2", 0, false},
		{"third, and a longer Retry-After", pause(2, 0), pause(3, time.Hour), done, &frontier.Release{Remain: 2 * time.Hour}, "3", 2 * time.Hour, true},
		{"given up", pause(3, time.Hour), pause(4, 0), done, &frontier.Release{Remain: time.Second}, "4", time.Hour, true},
		{"page beside the third", pause(3, time.Hour), &frontier.Walls{}, done, &frontier.Release{Remain: time.Second}, "", time.Second, false},
		{"page without its outcome", pause(3, time.Hour), &frontier.Walls{}, nil, nil, "3", time.Hour, true},
		{"nothing new", pause(3, time.Hour), nil, done, &frontier.Release{}, "3", time.Hour, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.reset(t)
			s.admit(candidates(a, 0, 5)...)
			v := s.acquire(2)
			s.pass(0, time.Minute) // for which the clock then stands still
			if c.before != nil {
				s.settle(frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 2}}, Walls: c.before})
			}
			now := s.number("HGET", s.keys[0].Meta(), "tick")
			s.twice("settle", func() {
				s.settle(frontier.Settlement{Lease: v.Lease, Outcomes: c.outcome, Release: c.free, Walls: c.walls})
			})
			row, _ := s.do("HGET", s.keys[0].Site(a), "walls").(string)
			count := ""
			fmt.Sscan(row, &count)
			if count != c.count {
				t.Errorf("row %q, want %q walls", row, c.count)
			}
			clock := s.number("HGET", s.keys[0].Site(a), "clock")
			if waits := clock - now; c.waits > 0 && waits != c.waits.Milliseconds()+1 || c.waits == 0 && clock > now {
				t.Errorf("the clock waits for %d ms, want %v", waits, c.waits)
			}
			if listed := s.do("ZSCORE", s.keys[0].Walled(), a) != nil; listed != c.listed {
				t.Errorf("listed %v, want %v", listed, c.listed)
			}
			s.sound(0)
		})
	}
}

// TestEndWalls is the truth table of the end that a person sets.
func TestEndWalls(t *testing.T) {
	t.Parallel()
	const a = "a.example"
	s := one(t)
	for _, c := range []struct {
		name  string
		count int
		clock int64 // ms from the end of the back-off on, that it was moved by since
		waits int64 // ms
	}{
		{"no walls", 0, 0, 7001},
		{"too few for a back-off", 2, 0, 7001},
		{"backed off", 3, 0, 2001},
		{"backed off, and a time was granted", 3, 9000, 3_609_001},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.reset(t)
			s.admit(candidates(a, 0, 5)...)
			v := s.acquire(1)
			s.pass(0, time.Minute) // for which the clock then stands still
			now := s.number("HGET", s.keys[0].Meta(), "tick")
			st := frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1}}, Release: &frontier.Release{Remain: 7 * time.Second, Delay: 2 * time.Second}}
			st.Walls = &frontier.Walls{Count: c.count, Vendor: "acme", Pause: time.Hour}
			s.settle(st)
			s.do("HINCRBY", s.keys[0].Site(a), "clock", c.clock)
			for range 2 {
				s.alter(a, frontier.SiteChange{EndWalls: true})
				if waits := s.number("HGET", s.keys[0].Site(a), "clock") - now; waits != c.waits {
					t.Errorf("the clock waits for %d ms, want %d", waits, c.waits)
				}
				if s.do("HGET", s.keys[0].Site(a), "walls") != nil || s.do("ZSCORE", s.keys[0].Walled(), a) != nil {
					t.Error("the row of walls is still there")
				}
			}
			s.sound(0)
		})
	}
}

// TestWalledListIsBounded: a site stays on the list for a day after its back-off at most, if
// others come to it.
func TestWalledListIsBounded(t *testing.T) {
	t.Parallel()
	s := one(t)
	wall := func(i int) {
		s.admit(candidates(fmt.Sprintf("s%d.example", i), 0, 1)...)
		v := s.acquire(1)
		st := all(v, frontier.Done)
		st.Walls = &frontier.Walls{Count: 3, Vendor: "acme", Pause: time.Hour}
		s.settle(st)
	}
	for i := range 25 {
		wall(i)
	}
	if n := s.number("ZCARD", s.keys[0].Walled()); n != 25 {
		t.Fatalf("%d sites, want 25", n)
	}
	s.pass(0, 26*time.Hour)
	for i := range 3 {
		wall(100 + i)
	}
	if n := s.number("ZCARD", s.keys[0].Walled()); n != 3 {
		t.Errorf("%d sites, want 3", n)
	}
}

// TestWallBytes: what a site behind a wall costs more than another.
func TestWallBytes(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 5)...)
	s.settle(all(s.acquire(1), frontier.Done))
	before := s.number("MEMORY", "USAGE", s.keys[0].Site("a.example"))
	v := s.acquire(1)
	st := all(v, frontier.Done)
	st.Walls = &frontier.Walls{Count: 3, Vendor: "haproxy-protection", Pause: time.Hour}
	s.settle(st)
	more := s.number("MEMORY", "USAGE", s.keys[0].Site("a.example")) - before + s.number("MEMORY", "USAGE", s.keys[0].Walled())
	t.Log(more, "bytes with the list of one site")
	if more > 400 {
		t.Errorf("a walled site costs %d bytes", more)
	}
}

// TestNoWallsNoCost: what a crawl without walls sends and keeps has nothing of them.
func TestNoWallsNoCost(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 5)...)
	for range 3 {
		s.settle(all(s.acquire(1), frontier.Done))
		s.pass(0, time.Second)
	}
	if s.do("HGET", s.keys[0].Site("a.example"), "walls") != nil || s.number("EXISTS", s.keys[0].Walled()) != 0 {
		t.Error("a site without walls keeps something of them")
	}
	v := s.acquire(1)
	plain := settling{f: s.Frontier}
	st := all(v, frontier.Done)
	plain.add(&st)
	walled := settling{f: s.Frontier}
	st.Walls = &frontier.Walls{Count: 3, Vendor: "acme", Pause: time.Hour}
	walled.add(&st)
	if len(walled.keys) != len(plain.keys) || len(walled.text) <= len(plain.text) || string(walled.text[:len(plain.text)]) != string(plain.text) {
		t.Errorf("%q and %q: walls stand at the end of a message that has some", plain.text, walled.text)
	}
}
