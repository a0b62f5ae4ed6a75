package redis

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
)

// pages lists the last parts of a visit's URLs.
func pages(v frontier.Visit) string {
	var list []string
	for _, u := range urls(v) {
		list = append(list, u[strings.LastIndexByte(u, '/')+1:])
	}
	return strings.Join(list, " ")
}

// TestVisit is the truth table of leasing: one site, what it has, what is leased.
func TestVisit(t *testing.T) {
	t.Parallel()
	const a = "a.example"
	s := one(t)
	for _, c := range []struct {
		name   string
		before func()
		limits frontier.VisitLimits
		want   string // URLs leased, "" = not granted
		left   string // in class 2
	}{
		{"some of a list", func() { s.admit(candidates(a, 0, 5)...) }, frontier.VisitLimits{URLs: 3}, "0 1 2", "3 4"},
		{"all of it", func() { s.admit(candidates(a, 0, 2)...) }, frontier.VisitLimits{URLs: 3}, "0 1", ""},
		{"at least one", func() { s.admit(candidates(a, 0, 2)...) }, frontier.VisitLimits{}, "0", "1"},
		{"best class first", func() { s.admit(class(candidate(a, 7), 3), candidate(a, 1), class(candidate(a, 5), 0)) }, frontier.VisitLimits{URLs: 2}, "5 1", ""},
		{"every eighth visit starts with the last class", func() {
			s.admit(append(candidates(a, 0, 3), class(candidate(a, 9), 3))...)
			s.do("HSET", s.keys[0].Site(a), "round", 7)
		}, frontier.VisitLimits{URLs: 2}, "9 0", "1 2"},
		{"and takes an eighth of it", func() {
			for i := range 5 {
				s.admit(candidate(a, i), class(candidate(a, 10+i), 3))
			}
			s.do("HSET", s.keys[0].Site(a), "round", 7)
		}, frontier.VisitLimits{URLs: 16}, "10 11 0 1 2 3 4 12 13 14", ""},
		{"span at the usual delay", func() { s.admit(candidates(a, 0, 9)...) }, frontier.VisitLimits{URLs: 8, Span: 3 * time.Second, Delay: time.Second}, "0 1 2", "3 4 5 6 7 8"},
		{"span at the site's delay", func() {
			s.admit(candidates(a, 0, 9)...)
			s.do("HSET", s.keys[0].Site(a), "delay", 2000)
		}, frontier.VisitLimits{URLs: 8, Span: 5 * time.Second, Delay: time.Second}, "0 1", "2 3 4 5 6 7 8"},
		{"without delay", func() { s.admit(candidates(a, 0, 9)...) }, frontier.VisitLimits{URLs: 2, Undelayed: 5, Span: 3 * time.Second}, "0 1 2 3 4", "5 6 7 8"},
		{"with the usual delay", func() { s.admit(candidates(a, 0, 9)...) }, frontier.VisitLimits{URLs: 2, Undelayed: 5, Span: 3 * time.Second, Delay: time.Second}, "0 1", "2 3 4 5 6 7 8"},
		{"longer delay than span", func() { s.admit(candidates(a, 0, 9)...) }, frontier.VisitLimits{URLs: 8, Span: time.Second, Delay: time.Minute}, "0", "1 2 3 4 5 6 7 8"},
		{"leased already", func() {
			s.admit(candidates(a, 0, 2)...)
			s.do("HSET", s.keys[0].Site(a), "token", "other")
		}, frontier.VisitLimits{URLs: 8}, "", "0 1"},
		{"paused", func() {
			s.admit(candidates(a, 0, 2)...)
			s.do("HSET", s.keys[0].Site(a), "paused", 1)
		}, frontier.VisitLimits{URLs: 8}, "", "0 1"},
		{"clock in the future", func() {
			s.admit(candidates(a, 0, 2)...)
			s.do("HSET", s.keys[0].Site(a), "clock", time.Now().Add(time.Hour).UnixMilli())
		}, frontier.VisitLimits{URLs: 8}, "", "0 1"},
		{"lost entries go alone", func() { s.lose(a, 3) }, frontier.VisitLimits{URLs: 8}, "0", "1 2 3 4"},
		{"what comes before a lost one goes without it", func() {
			s.lose(a, 1)
			s.do("LPUSH", s.keys[0].Queue(a, 2), string(frontier.AppendEntry(nil, a, &frontier.Entry{URL: candidate(a, 0).URL + "0", Priority: 2})))
		}, frontier.VisitLimits{URLs: 8}, "00", "0 1 2 3 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.reset(t)
			c.before()
			s.pass(0, 2*time.Millisecond)
			r := s.tick(frontier.TickRequest{Want: 1})
			if len(r.Due) != 1 {
				t.Fatal(r)
			}
			// The same call twice, as a client repeats it: with one token.
			s.tokens.Store(100)
			s.twice("visit", func() {
				s.tokens.Store(100)
				visits := s.visit(c.limits, r.Due...)
				if len(visits) > 1 || len(visits) == 1 == (c.want == "") {
					t.Fatalf("granted %v", visits)
				}
				for _, v := range visits {
					if got := pages(v); got != c.want {
						t.Errorf("leased %s, want %s", got, c.want)
					}
					if s.where(a) != "" {
						t.Error("a leased site stands in ", s.where(a))
					}
				}
			})
			if got := strings.Join(s.stored(a, 2), " "); got != c.left {
				t.Errorf("left %s, want %s", got, c.left)
			}
			// A late copy with another token, as of another fetcher.
			before := s.dump(0)
			if v := s.visit(c.limits, r.Due...); len(v) != 0 && c.want != "" {
				t.Error("one ticket was good twice: ", v)
			}
			if c.want != "" && fmt.Sprint(s.dump(0)) != fmt.Sprint(before) {
				t.Error("a late copy changed something")
			}
		})
	}
}

// lose makes a site whose first n of five entries were lost with a fetcher.
func (s *stand) lose(site string, n int) {
	s.admit(candidates(site, 0, 5)...)
	v := s.acquire(n)
	s.pass(0, 2*time.Minute)
	if got, err := s.Reap(s.t.Context(), 0, s.tick(frontier.TickRequest{MaxExpired: 1}).Expired); got != 1 || err != nil {
		s.t.Fatal(got, err, v)
	}
	s.pass(0, time.Minute)
}

func TestVisitTickets(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 5)...)
	s.pass(0, time.Millisecond)
	good := s.tick(frontier.TickRequest{Want: 1}).Due[0]
	before := s.dump(0)
	for _, bad := range []frontier.Ticket{
		{Site: "b.example", Class: good.Class, Score: good.Score},
		{Site: good.Site, Class: 1, Score: good.Score},
		{Site: good.Site, Class: good.Class, Score: "1.5"},
		{Site: good.Site, Class: good.Class, Score: strings.TrimSuffix(good.Score, ".5")},
		{Site: good.Site, Class: 9, Score: good.Score},
	} {
		if v := s.visit(frontier.VisitLimits{URLs: 5}, bad); len(v) != 0 {
			t.Errorf("%v was granted", bad)
		}
	}
	if fmt.Sprint(s.dump(0)) != fmt.Sprint(before) {
		t.Error("bad tickets changed something")
	}
	start := time.Now()
	v := s.visit(frontier.VisitLimits{URLs: 5}, good)
	if len(v) != 1 {
		t.Fatal("the good one was not granted")
	}
	if d := v[0].Deadline.Sub(start); d < time.Minute || d > time.Minute+time.Since(start) {
		t.Errorf("deadline in %v, want the lease from the call on", d)
	}
	s.sound(0)
}

// TestVisitCarries: what the last visit left of the site comes with the next.
func TestVisitCarries(t *testing.T) {
	t.Parallel()
	s := one(t)
	seed := frontier.Candidate{URL: "https://a.example/page/0", Site: "a.example", Fingerprint: candidate("a.example", 0).Fingerprint,
		Priority: 1, Depth: 300, Redirects: 2, Seed: true, Meta: `{"job": "x	y"}`}
	s.admit(append(candidates("a.example", 1, 3), seed)...)
	v := s.acquire(1)
	if !v.First || v.Delay != 0 || v.Why != "" || v.Failures != 0 || v.Override != "" {
		t.Errorf("first visit: %+v", v)
	}
	want := frontier.Entry{URL: seed.URL, Priority: 1, Depth: 300, Redirects: 2, Seed: true, Meta: seed.Meta}
	if v.Items[0].Entry != want || v.Items[0].Index != 1 {
		t.Errorf("leased %+v, want %+v", v.Items[0], want)
	}
	s.alter("a.example", frontier.SiteChange{Override: ptr(`{"delay":"3s"}`)})
	st := all(v, frontier.Done)
	st.Release = &frontier.Release{Delay: 1500*time.Millisecond + time.Microsecond, Why: "robots", Failures: 4}
	s.settle(st)
	v = s.acquire(1)
	if v.First || v.Delay != 1501*time.Millisecond || v.Why != "robots" || v.Failures != 4 || v.Override != `{"delay":"3s"}` {
		t.Errorf("second visit: %+v", v)
	}
	s.settle(all(v, frontier.Done))
	v = s.acquire(1)
	if v.First || v.Why != "" || v.Failures != 0 || v.Delay != 0 {
		t.Errorf("third visit: %+v", v)
	}
}

// TestVisitRetries: retries that are due join the queues, one class lower.
func TestVisitRetries(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 6)...)
	v := s.acquire(4)
	st := all(v, frontier.Retry)
	for i := range st.Outcomes {
		st.Outcomes[i].NotBefore = time.Duration(4-i) * time.Minute // 3, 2, 1 and 0 in turn
	}
	s.settle(st)
	if w := s.where("a.example"); w != "2" {
		t.Error("with work and retries it stands in ", w)
	}
	v = s.acquire(2)
	if got := pages(v); got != "4 5" {
		t.Error("leased ", got)
	}
	s.settle(all(v, frontier.Done))
	if w := s.where("a.example"); w != "3" {
		t.Error("with retries only it stands in ", w)
	}
	if r := s.tick(frontier.TickRequest{Want: 9}); len(r.Due) != 0 || r.Next < 50*time.Second || r.Next > time.Minute {
		t.Errorf("due %v, next %v, want the first retry in a minute", r.Due, r.Next)
	}
	s.pass(0, 2*time.Minute+time.Second)
	v = s.acquire(9)
	if got := pages(v); got != "3 2" {
		t.Error("leased ", got)
	}
	for _, it := range v.Items {
		if it.Attempts != 1 || it.Priority != 3 {
			t.Errorf("%+v, want one attempt and class 3", it)
		}
	}
	// A site of which only retries are left gets new work.
	s.settle(all(v, frontier.Done))
	s.admit(class(candidate("a.example", 9), 1))
	if w := s.where("a.example"); w != "1" {
		t.Error("with new work it stands in ", w)
	}
	s.pass(0, time.Hour)
	if got := pages(s.acquire(9)); got != "9 1 0" {
		t.Error("leased ", got)
	}
	s.sound(0)
}

// TestVisitReplyLost: the repeat of a call gets what is still open.
func TestVisitReplyLost(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 20)...)
	s.pass(0, time.Millisecond)
	r := s.tick(frontier.TickRequest{Want: 1})
	s.tokens.Store(500)
	first := s.visit(frontier.VisitLimits{URLs: 12}, r.Due...)[0]
	s.settle(frontier.Settlement{Lease: first.Lease, Outcomes: []frontier.Outcome{{Index: 1, Kind: frontier.Done}, {Index: 3, Kind: frontier.Done}}})
	s.tokens.Store(500)
	again := s.visit(frontier.VisitLimits{URLs: 12}, r.Due...)[0]
	if again.Token != first.Token || pages(again) != "1 3 4 5 6 7 8 9 10 11" {
		t.Errorf("the repeat got %s", pages(again))
	}
	if !slices.IsSortedFunc(again.Items, func(a, b frontier.Item) int { return a.Index - b.Index }) || again.Items[0].Index != 2 {
		t.Error("indexes ", again.Items)
	}
	s.sound(0)
}

// TestNoClassStarves: within a site every class is leased while better ones never
// run dry.
func TestNoClassStarves(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(class(candidate("a.example", 999), 3))
	for round := range 20 {
		s.admit(candidates("a.example", 10*round, 10*round+10)...)
		v := s.acquire(4)
		if strings.Contains(pages(v), "999") {
			return
		}
		s.settle(all(v, frontier.Done))
	}
	t.Error("class 3 starved in 20 visits")
}
