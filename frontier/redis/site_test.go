package redis

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard"
)

func TestPausedSite(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 4)...)
	v := s.acquire(2)
	s.alter("a.example", frontier.SiteChange{Paused: ptr(true)})
	if w := s.where("a.example"); w != "" {
		t.Error("paused and leased it stands in ", w)
	}
	s.settle(all(v, frontier.Done))
	if w := s.where("a.example"); w != "paused" {
		t.Error("paused it stands in ", w)
	}
	s.sound(0)
	s.pass(0, time.Second)
	if r := s.tick(frontier.TickRequest{Want: 9}); len(r.Due) > 0 || r.Next >= 0 {
		t.Errorf("a paused site is due: %+v", r)
	}
	if s.number("PTTL", s.keys[0].Site("a.example")) != -1 {
		t.Error("a pause may expire")
	}
	s.alter("a.example", frontier.SiteChange{Paused: ptr(false)})
	if w := s.where("a.example"); w != "2" {
		t.Error("resumed it stands in ", w)
	}
	if s.number("PTTL", s.keys[0].Site("a.example")) <= 0 {
		t.Error("s of a site without anything to keep does not expire")
	}
	s.sound(0)
	s.alter("b.example", frontier.SiteChange{Paused: ptr(true)})
	if w := s.where("b.example"); w != "" {
		t.Error("paused without work it stands in ", w)
	}
	s.sound(0)
}

func TestPausedSiteWithRetries(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 1)...)
	s.alter("a.example", frontier.SiteChange{Override: ptr("{}")})
	s.settle(all(s.acquire(1), frontier.Retry))
	s.alter("a.example", frontier.SiteChange{Paused: ptr(true)})
	if w := s.where("a.example"); w != "paused" {
		t.Error("stands in ", w)
	}
	s.admit(candidate("a.example", 1))
	if w := s.where("a.example"); w != "paused" {
		t.Error("with new work it stands in ", w)
	}
	s.sound(0)
	s.alter("a.example", frontier.SiteChange{Paused: ptr(false)})
	s.sound(0)
}

func TestBlockedSite(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(append(candidates("a.example", 0, 9), class(candidate("a.example", 9), 0), candidate("b.example", 0))...)
	first := s.acquireOne("a.example", 2)
	s.settle(frontier.Settlement{Lease: first.Lease, Release: &frontier.Release{}}) // stays open without the site
	retried := s.acquireOne("a.example", 1)
	s.settle(all(retried, frontier.Retry))
	second := s.acquireOne("a.example", 3)
	s.alter("a.example", frontier.SiteChange{Blocked: ptr(true)})
	s.sound(0)
	if n := s.stat("queued"); n != 1 { // b
		t.Errorf("%d queued, want 1", n)
	}
	if s.stat("waiting") != 0 || s.stat("open") != 0 || s.stat("blocked") != 10 {
		t.Errorf("waiting %d, open %d, blocked %d, want 0, 0 and 10", s.stat("waiting"), s.stat("open"), s.stat("blocked"))
	}
	if r := s.tick(frontier.TickRequest{Extend: []frontier.Lease{first.Lease, second.Lease}}); len(r.Gone) != 2 {
		t.Error("visits of a blocked site go on: ", r.Gone)
	}
	before := s.dump(0)
	for _, v := range []frontier.Visit{first, second} {
		if got := s.settle(all(v, frontier.Retry))[0]; slices.Contains(got, true) {
			t.Error("settled: ", got)
		}
	}
	if fmt.Sprint(s.dump(0)) != fmt.Sprint(before) {
		t.Error("visits of a blocked site changed something")
	}
	if got := s.admit(candidate("a.example", 0), candidate("a.example", 77), candidate("b.example", 0)); got != "scs" {
		t.Error("verdicts ", got)
	}
	s.alter("a.example", frontier.SiteChange{Blocked: ptr(false)})
	if got := s.admit(candidate("a.example", 0), candidate("a.example", 77)); got != "sa" {
		t.Error("unblocked: verdicts ", got)
	}
	s.sound(0)
}

// TestBlockAgainstVisit: a lease that is made while its block is under way is
// not overlooked.
func TestBlockAgainstVisit(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 9)...)
	v := s.acquire(2)
	args := []any{"a.example", "0", "", 1, "blocked", "1"}
	raw, err := s.Call(t.Context(), 0, siteScript, s.siteKeys(0, "a.example"), args)
	if code, _ := shard.Code(err); code != "OPEN" {
		t.Errorf("%v, %v, want a refusal", raw, err)
	}
	args = append(args, v.Token)
	if raw, err := s.Call(t.Context(), 0, siteScript, append(s.siteKeys(0, "a.example"), s.keys[0].Visit(v.Token)), args); raw != "" || err != nil {
		t.Errorf("%v, %v, want it done", raw, err)
	}
	s.sound(0)
}

// TestBlockOverlooksLease: of a visit that outlived the block, nothing returns
// to the site.
func TestBlockOverlooksLease(t *testing.T) {
	t.Parallel()
	for _, reaped := range []bool{false, true} {
		s := one(t)
		s.admit(candidates("a.example", 0, 9)...)
		v := s.acquire(4)
		s.settle(frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}})
		args := []any{"a.example", "0", "", 1, "blocked", "1"}
		if raw, err := s.Call(t.Context(), 0, siteScript, s.siteKeys(0, "a.example"), args); raw != "" || err != nil {
			t.Fatal(raw, err)
		}
		s.sound(0)
		s.settle(frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 1, Kind: frontier.Requeue}, {Index: 2, Kind: frontier.Retry}}})
		s.sound(0)
		if reaped {
			s.reap(s.expire(v))
		} else {
			s.settle(frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 3, Kind: frontier.Requeue}, {Index: 4, Kind: frontier.Done}}})
		}
		if s.where("a.example") != "" || s.stat("queued")+s.stat("waiting")+s.stat("open") != 0 {
			t.Errorf("a blocked site stands in %q with %d queued, %d waiting", s.where("a.example"), s.stat("queued"), s.stat("waiting"))
		}
		if n := s.number("ZCARD", s.keys[0].Leases()); n != 0 {
			t.Errorf("%d leases left", n)
		}
		s.sound(0)
	}
}

// TestLateSiteChange: a copy of a change that arrives after the next change.
func TestLateSiteChange(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 9)...)
	keys, args := s.siteKeys(0, "a.example"), []any{"a.example", "0", "", 1, "paused", "1"}
	for i, want := range []any{"", "1"} { // done, and the repeat is answered the version
		if raw, err := s.Call(t.Context(), 0, siteScript, keys, args); raw != want || err != nil {
			t.Errorf("call %d: %v, %v, want %q", i, raw, err, want)
		}
	}
	s.alter("a.example", frontier.SiteChange{Paused: ptr(false)})
	before := s.dump(0)
	if raw, _ := s.Call(t.Context(), 0, siteScript, keys, args); raw == "" {
		t.Error("a late copy was obeyed")
	}
	if fmt.Sprint(s.dump(0)) != fmt.Sprint(before) {
		t.Error("a late copy changed something")
	}
}

func TestSiteChanges(t *testing.T) {
	t.Parallel()
	s := one(t)
	key := s.keys[0].Site("a.example")
	s.alter("a.example", frontier.SiteChange{})
	if s.do("EXISTS", key) != int64(0) {
		t.Error("no change made a site")
	}
	s.alter("a.example", frontier.SiteChange{Cap: ptr(int64(5)), Override: ptr("{}")})
	if got := s.do("HMGET", key, "cap", "override", "paused", "blocked"); fmt.Sprint(got) != "[5 {} <nil> <nil>]" {
		t.Error(got)
	}
	s.alter("a.example", frontier.SiteChange{Cap: ptr(int64(0)), Override: ptr("")})
	if got := s.do("HMGET", key, "cap", "override"); fmt.Sprint(got) != "[<nil> <nil>]" {
		t.Error(got)
	}
	if s.number("PTTL", key) <= 0 {
		t.Error("s of a site without anything to keep does not expire")
	}
	s.sound(0)
}

// TestLentSiteStays: what a site keeps while it is leased does not expire, though it
// had nothing to keep before but the count of its changes.
func TestLeasedSiteStays(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 2)...)
	s.alter("a.example", frontier.SiteChange{Paused: ptr(true)})
	s.alter("a.example", frontier.SiteChange{Paused: ptr(false)})
	s.acquire(1)
	if ms := s.number("PTTL", s.keys[0].Site("a.example")); ms != -1 {
		t.Errorf("s of a leased site expires in %d ms", ms)
	}
}

// TestStopped: what is paused or blocked is listed with time and reason until it
// is not.
func TestStopped(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.alter("b.example", frontier.SiteChange{Blocked: ptr(true), Paused: ptr(true), Reason: "they asked twice"})
	s.alter("a.example", frontier.SiteChange{Paused: ptr(true)})
	s.alter("c.example", frontier.SiteChange{Cap: ptr(int64(5)), Reason: "not a stop"})
	shown := func() (out []string) {
		list, err := s.Stopped(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			if age := time.Since(l.Since); age < -time.Minute || age > time.Minute {
				t.Errorf("%+v: %v ago", l, age)
			}
			out = append(out, fmt.Sprint(l.Site, " ", kindOf(l), " ", l.Reason))
		}
		return out
	}
	want := []string{"a.example paused ", "b.example blocked they asked twice", "b.example paused they asked twice"}
	if got := shown(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	s.alter("b.example", frontier.SiteChange{Blocked: ptr(false), Reason: "they asked again"})
	s.alter("a.example", frontier.SiteChange{Paused: ptr(false)})
	if got := shown(); !slices.Equal(got, want[2:]) {
		t.Errorf("%q, want %q", got, want[2:])
	}
	if p, b, err := s.countStopped(t.Context(), []int{0}); p != 1 || b != 0 || err != nil {
		t.Error(p, b, err)
	}
}

// TestCapOutlivesVisits: the count of a capped site does not expire.
func TestCapOutlivesVisits(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidate("a.example", 0))
	s.settle(all(s.acquire(1), frontier.Done)) // s may expire from now on
	s.settings.Store(&frontier.Settings{MaxPerSite: 3})
	if got := s.admit(candidates("a.example", 1, 3)...); got != "aa" {
		t.Fatal(got)
	}
	if s.number("PTTL", s.keys[0].Site("a.example")) != -1 {
		t.Error("the count may expire")
	}
	s.settle(all(s.acquire(9), frontier.Done))
	if s.number("PTTL", s.keys[0].Site("a.example")) != -1 {
		t.Error("the count may expire after a visit")
	}
	if got := s.admit(candidates("a.example", 3, 5)...); got != "ac" {
		t.Error("verdicts ", got)
	}
}
