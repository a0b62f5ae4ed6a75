package redis

import (
	"testing"
	"time"

	"seine/frontier"
)

// TestClockSetBack: when the clock of a server is set back, the time of its shards
// goes on from where it was.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidate("a.example", 0))
	s.pass(0, time.Hour)
	r := s.tick(frontier.TickRequest{})
	if r.Lag < 59*time.Minute || r.Lag > time.Hour {
		t.Fatalf("the clock is %v behind, want an hour", r.Lag)
	}
	if r := s.tick(frontier.TickRequest{MaxLag: 2 * time.Hour}); r.Lag < 59*time.Minute {
		t.Errorf("%v behind after a tick, though time may stand for longer", r.Lag)
	}
	v := s.acquire(1)
	stood := s.number("HGET", s.keys[0].Meta(), "tick")
	s.settle(frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1, Kind: frontier.Requeue}}, Release: &frontier.Release{Remain: 20 * time.Millisecond}})
	const maxLag = time.Second
	if by := s.tick(frontier.TickRequest{MaxLag: maxLag}).Lag; by < 59*time.Minute || by > time.Hour+time.Second { // lease lets some time pass
		t.Errorf("moved by %v, want an hour", by)
	}
	if by := s.tick(frontier.TickRequest{MaxLag: maxLag}).Lag; by != 0 {
		t.Errorf("moved again by %v", by)
	}
	end := time.Now().Add(time.Minute)
	for r = s.tick(frontier.TickRequest{Want: 1}); len(r.Due) == 0; r = s.tick(frontier.TickRequest{Want: 1}) {
		if time.Now().After(end) {
			t.Fatalf("a site that rests for 20 ms is not due: %+v", r)
		}
		time.Sleep(time.Millisecond)
	}
	if now := s.number("HGET", s.keys[0].Meta(), "tick"); now < stood+20 || now > stood+2*time.Minute.Milliseconds() {
		t.Errorf("time went from %d to %d", stood, now)
	}
	// Keys go by the server's time, not an hour later.
	s.settle(all(s.visit(frontier.VisitLimits{URLs: 1}, r.Due...)[0], frontier.Done))
	if ttl := time.Duration(s.number("PTTL", s.keys[0].Site("a.example"))) * time.Millisecond; ttl < 23*time.Hour || ttl > 24*time.Hour+time.Second {
		t.Errorf("a site is kept for %v, want a day", ttl)
	}
	// Once more, on top of the first time.
	s.pass(0, time.Hour)
	if by := s.tick(frontier.TickRequest{MaxLag: maxLag}).Lag; by < 59*time.Minute {
		t.Errorf("moved by %v the second time", by)
	}
	s.sound(0)
}

// TestClockSetForward: when the clock of a server is set forward, no delay is cut by
// the step, and no lease is longer for it: whoever ticked before tells.
func TestClockSetForward(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 3)...)
	v := s.acquire(1)
	s.settle(frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1}}, Release: &frontier.Release{Remain: time.Minute}})
	s.admit(candidate("b.example", 0))
	const maxLag = time.Second
	before := s.tick(frontier.TickRequest{MaxLag: maxLag, Want: 9})
	s.do("HINCRBY", s.keys[0].Meta(), "ahead", time.Hour.Milliseconds())
	leased := s.visit(frontier.VisitLimits{URLs: 1}, before.Due...)[0] // before anyone knows
	r := s.tick(frontier.TickRequest{MaxLag: maxLag, LastNow: before.Now, Elapsed: 10 * time.Millisecond, Want: 9})
	if r.ClockJump < 59*time.Minute || r.ClockJump > 61*time.Minute {
		t.Errorf("jumped by %v, want an hour", r.ClockJump)
	}
	if len(r.Due) > 0 || r.Next > time.Minute || r.Next < 50*time.Second {
		t.Errorf("due: %v, next in %v; want a.example in a minute", r.Due, r.Next)
	}
	if left := s.number("ZSCORE", s.keys[0].Leases(), MemberOf(leased.Lease)) - r.Now; left > time.Minute.Milliseconds() {
		t.Errorf("a lease of %d ms, want a minute", left)
	}
	if r := s.tick(frontier.TickRequest{MaxLag: maxLag, LastNow: r.Now, Elapsed: 10 * time.Millisecond}); r.ClockJump > 0 || r.Next < 50*time.Second {
		t.Errorf("jumped again by %v, next in %v", r.ClockJump, r.Next)
	}

	// What passes while nobody ticks is no step, nor what others' ticks account for.
	now := s.tick(frontier.TickRequest{MaxLag: maxLag}).Now
	if r := s.tick(frontier.TickRequest{MaxLag: maxLag, LastNow: now - time.Hour.Milliseconds(), Elapsed: time.Second}); r.ClockJump != 0 {
		t.Errorf("jumped by %v though another ticked just now", r.ClockJump)
	}
	s.do("HINCRBY", s.keys[0].Meta(), "ahead", time.Hour.Milliseconds())
	if r := s.tick(frontier.TickRequest{MaxLag: maxLag, LastNow: now, Elapsed: time.Hour, Want: 9}); r.ClockJump != 0 || len(r.Due) != 1 {
		t.Errorf("after an hour without ticks: jumped by %v, %d sites due", r.ClockJump, len(r.Due))
	}
	s.sound(0)
}
