package redis

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
)

// due lists the sites of tickets with their classes.
func due(r frontier.TickReply) string {
	var list []string
	for _, d := range r.Due {
		list = append(list, fmt.Sprintf("%s/%d", strings.TrimSuffix(d.Site, ".example"), d.Class))
	}
	return strings.Join(list, " ")
}

func TestTickShares(t *testing.T) {
	t.Parallel()
	s := one(t)
	for _, c := range []struct {
		want int
		due  string // of sites a0 a1 .. in class 0, b0 .. in 1, c0 .. in 2, due in the order c b a
		turn int
	}{
		{0, "", 0},
		{1, "c0/2", 0},
		{1, "a0/0", 1},
		{2, "a0/0 c0/2", 0},
		{3, "a0/0 c0/2 c1/2", 0},
		{3, "a0/0 a1/0 c0/2", 1},
		{6, "a0/0 a1/0 a2/0 c0/2 c1/2 c2/2", 0},
		{8, "a0/0 a1/0 a2/0 c0/2 c1/2 c2/2 b0/1 b1/1", 0},
		{100, "a0/0 a1/0 a2/0 c0/2 c1/2 c2/2 b0/1 b1/1 b2/1", 0},
	} {
		t.Run(fmt.Sprintf("%d, turn %d", c.want, c.turn), func(t *testing.T) {
			s.reset(t)
			for class := 2; class >= 0; class-- {
				for i := range 3 {
					s.admit(frontier.Candidate{URL: "https://x.example/", Site: fmt.Sprintf("%c%d.example", 'a'+class, i), Priority: uint8(class), Fingerprint: candidate("x", 10*class+i).Fingerprint})
					s.pass(0, time.Millisecond)
				}
			}
			s.pass(0, time.Second)
			s.do("HSET", s.keys[0].Meta(), "round", c.turn)
			if got := due(s.tick(frontier.TickRequest{Want: c.want})); got != c.due {
				t.Errorf("due %s\nwant %s", got, c.due)
			}
		})
	}
}

func TestTickClaims(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidate("a.example", 0))
	s.admit(candidate("b.example", 0))
	s.pass(0, time.Minute) // for which the clock then stands still
	if got := due(s.tick(frontier.TickRequest{Want: 1})); got != "a/2" {
		t.Fatal(got)
	}
	r := s.tick(frontier.TickRequest{Want: 9})
	if due(r) != "b/2" {
		t.Fatal("a claimed site was named again: ", r.Due)
	}
	if !strings.HasSuffix(r.Due[0].Score, ".5") {
		t.Errorf("ticket %q is no half millisecond", r.Due[0].Score)
	}
	r = s.tick(frontier.TickRequest{Want: 9})
	if len(r.Due) != 0 || r.Next <= 4*time.Second || r.Next > 5*time.Second+time.Millisecond {
		t.Errorf("due %v, next in %v, want none and about 5 s", r.Due, r.Next)
	}
	s.pass(0, 6*time.Second)
	if got := due(s.tick(frontier.TickRequest{Want: 9})); got != "a/2 b/2" {
		t.Error("after the claims: ", got)
	}
	s.sound(0)
}

func TestTickNothingWaits(t *testing.T) {
	t.Parallel()
	s := one(t)
	for range 2 {
		r := s.tick(frontier.TickRequest{Want: 5, MaxExpired: 5})
		if len(r.Due)+len(r.Expired)+len(r.Gone) > 0 || r.Next >= 0 || r.Rev != 7 || r.Paused {
			t.Errorf("%+v", r)
		}
	}
}

func TestTickPaused(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidate("a.example", 0))
	s.do("HSET", s.keys[0].Meta(), "paused", "1", "rev", 8)
	s.pass(0, time.Second)
	s.twice("tick", func() {
		if r := s.tick(frontier.TickRequest{Want: 5}); len(r.Due) > 0 || !r.Paused || r.Rev != 8 {
			t.Errorf("%+v", r)
		}
	})
}

func TestTickExtends(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 9)...)
	v := s.acquire(2)
	old := s.number("ZSCORE", s.keys[0].Leases(), MemberOf(v.Lease))
	other := frontier.Lease{Token: "x", Site: "a.example"}
	swapped := frontier.Lease{Token: v.Token, Site: "b.example"}
	for range 2 {
		s.pass(0, 10*time.Second)
		r := s.tick(frontier.TickRequest{Extend: []frontier.Lease{other, v.Lease, swapped}})
		if !slices.Equal(r.Gone, []frontier.Lease{other, swapped}) {
			t.Errorf("gone %v", r.Gone)
		}
		extended := s.number("ZSCORE", s.keys[0].Leases(), MemberOf(v.Lease))
		if extended < old+10000 {
			t.Errorf("deadline %d, was %d", extended, old)
		}
		old = extended
	}
	if n := s.number("ZCARD", s.keys[0].Leases()); n != 1 {
		t.Errorf("%d leases, want 1: extending made one", n)
	}
	// More leases than one call takes.
	many := slices.Repeat([]frontier.Lease{other}, tickMost+10)
	many = append(many, v.Lease)
	if r := s.tick(frontier.TickRequest{Extend: many}); len(r.Gone) != tickMost+10 {
		t.Errorf("%d gone, want %d", len(r.Gone), tickMost+10)
	}
}

func TestTickNamesExpired(t *testing.T) {
	t.Parallel()
	s := one(t)
	for i := range 3 {
		s.admit(candidate(fmt.Sprintf("s%d.example", i), 0))
	}
	var visits []frontier.Visit
	for range 3 {
		s.pass(0, time.Second)
		visits = append(visits, s.visit(frontier.VisitLimits{URLs: 1}, s.tick(frontier.TickRequest{Want: 1}).Due...)...)
	}
	if r := s.tick(frontier.TickRequest{MaxExpired: 9}); len(r.Expired) != 0 {
		t.Fatal("expired already: ", r.Expired)
	}
	s.pass(0, time.Minute)
	if r := s.tick(frontier.TickRequest{}); len(r.Expired) != 0 {
		t.Fatal("none was asked for: ", r.Expired)
	}
	s.twice("tick", func() {
		r := s.tick(frontier.TickRequest{MaxExpired: 2})
		if len(r.Expired) != 2 || r.Expired[0].Lease != visits[0].Lease || r.Expired[1].Lease != visits[1].Lease {
			t.Errorf("expired %v, want the two oldest", r.Expired)
		}
		if d := s.number("ZSCORE", s.keys[0].Leases(), MemberOf(visits[0].Lease)); d != r.Expired[0].Deadline {
			t.Errorf("deadline %d, want %d", r.Expired[0].Deadline, d)
		}
	})
}

// TestTickAfterGap: when nobody ticked for a third of a lease, fetchers may
// have been cut off, and get one lease to come back.
func TestTickAfterGap(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidate("a.example", 0))
	v := s.acquire(1)
	expired := frontier.Expired{Lease: v.Lease, Deadline: s.number("ZSCORE", s.keys[0].Leases(), MemberOf(v.Lease))}
	// The last tick was 21 s ago and the lease is over: both are moved back.
	now := time.Now().UnixMilli()
	s.do("HSET", s.keys[0].Meta(), "tick", now-21000, "quiet", 0)
	s.do("ZADD", s.keys[0].Leases(), now-1000, MemberOf(v.Lease))
	expired.Deadline = now - 1000
	if n, _ := s.Reap(t.Context(), 0, []frontier.Expired{expired}); n != 0 {
		t.Error("reaped before anybody could come back")
	}
	if r := s.tick(frontier.TickRequest{MaxExpired: 9}); len(r.Expired) != 0 {
		t.Error("expired right after the gap: ", r.Expired)
	}
	if n, _ := s.Reap(t.Context(), 0, []frontier.Expired{expired}); n != 0 {
		t.Error("reaped in the quiet time")
	}
	for range 4 {
		s.pass(0, 14*time.Second)
		if r := s.tick(frontier.TickRequest{MaxExpired: 9}); len(r.Expired) != 0 {
			t.Error("expired in the quiet time: ", r.Expired)
		}
	}
	s.pass(0, 5*time.Second)
	r := s.tick(frontier.TickRequest{MaxExpired: 9})
	if len(r.Expired) != 1 {
		t.Fatal("never expired after a gap")
	}
	if n, _ := s.Reap(t.Context(), 0, r.Expired); n != 1 {
		t.Error("not reaped after the quiet time")
	}
	s.sound(0)
}

func TestTicksClockNeverGoesBack(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.pass(0, time.Hour)
	before := s.number("HGET", s.keys[0].Meta(), "tick")
	s.tick(frontier.TickRequest{})
	if after := s.number("HGET", s.keys[0].Meta(), "tick"); after != before {
		t.Errorf("tick at %d, then at %d", before, after)
	}
}
