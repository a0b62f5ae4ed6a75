package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard"
)

// expire lets a lease of shard 0 pass and returns it as tick names it.
func (s *stand) expire(v frontier.Visit) frontier.Expired {
	s.t.Helper()
	s.pass(0, 61*time.Second)
	for _, e := range s.tick(frontier.TickRequest{MaxExpired: 100}).Expired {
		if e.Lease == v.Lease {
			return e
		}
	}
	s.t.Fatal("did not expire: ", v.Lease)
	return frontier.Expired{}
}

func (s *stand) reap(e ...frontier.Expired) int {
	s.t.Helper()
	n, err := s.Reap(s.t.Context(), 0, e)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func TestReap(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.settings.Store(&frontier.Settings{Delay: 3 * time.Second})
	s.admit(candidates("a.example", 0, 5)...)
	v := s.acquire(3)
	s.settle(frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{{Index: 2, Kind: frontier.Done}}})
	e := s.expire(v)
	now := s.number("HGET", s.keys[0].Meta(), "tick")
	want := 1
	s.twice("reap", func() {
		if n := s.reap(e); n != want {
			t.Errorf("reaped %d, want %d", n, want)
		}
		want = 0
	})
	if got := strings.Join(s.stored("a.example", 2), " "); got != "0 2 3 4" {
		t.Error("queue ", got)
	}
	if clock := s.number("HGET", s.keys[0].Site("a.example"), "clock"); clock != now+3001 {
		t.Errorf("clock %d ms on, want the delay and one", clock-now)
	}
	if s.stat("lost") != 2 || s.stat("open") != 0 {
		t.Error("lost ", s.stat("lost"), ", open ", s.stat("open"))
	}
	s.sound(0)
	// The dead fetcher comes back: all of it is gone.
	if got := s.settle(all(v, frontier.Done))[0]; slices.Contains(got, true) {
		t.Error("settled after the reap: ", got)
	}
	if r := s.tick(frontier.TickRequest{Extend: []frontier.Lease{v.Lease}}); len(r.Gone) != 1 {
		t.Error("extended after the reap")
	}
	s.sound(0)
}

func TestReapRefuses(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 5)...)
	v := s.acquire(3)
	deadline := s.number("ZSCORE", s.keys[0].Leases(), MemberOf(v.Lease))
	if n := s.reap(frontier.Expired{Lease: v.Lease, Deadline: deadline}); n != 0 {
		t.Error("reaped before its deadline")
	}
	e := s.expire(v)
	s.tick(frontier.TickRequest{Extend: []frontier.Lease{v.Lease}})
	if n := s.reap(e); n != 0 {
		t.Error("reaped though it was extended meanwhile")
	}
	s.pass(0, 61*time.Second)
	if n := s.reap(e); n != 0 {
		t.Error("reaped with a deadline that it has no more")
	}
	if n := s.reap(frontier.Expired{Lease: frontier.Lease{Token: "other", Site: "a.example"}, Deadline: deadline}); n != 0 {
		t.Error("reaped a lease that is not there")
	}
	if got := s.settle(all(v, frontier.Done))[0]; slices.Contains(got, false) {
		t.Error("its fetcher could not settle: ", got)
	}
	s.sound(0)
}

// TestReapOfFreedSite: the site is leased to another; only the URLs come back.
func TestReapOfFreedSite(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 6)...)
	first := s.acquire(2)
	s.settle(frontier.Settlement{Lease: first.Lease, Release: &frontier.Release{}})
	second := s.acquire(2)
	s.pass(0, 40*time.Second)
	s.tick(frontier.TickRequest{Extend: []frontier.Lease{second.Lease}})
	s.pass(0, 30*time.Second)
	r := s.tick(frontier.TickRequest{MaxExpired: 9})
	if len(r.Expired) != 1 || r.Expired[0].Lease != first.Lease {
		t.Fatal(r.Expired)
	}
	s.twice("reap", func() { s.reap(r.Expired...) })
	if token := s.do("HGET", s.keys[0].Site("a.example"), "token"); token != second.Token {
		t.Errorf("leased to %v, want %s", token, second.Token)
	}
	if w := s.where("a.example"); w != "" {
		t.Error("a leased site stands in ", w)
	}
	if got := strings.Join(s.stored("a.example", 2), " "); got != "0 1 4 5" {
		t.Error("queue ", got)
	}
	s.sound(0)
}

// TestPoison: a URL that kills its fetcher is leased alone and dies after the
// third time; the others live.
func TestPoison(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 4)...)
	acquired, done := 0, 0
	for range 20 {
		if s.stat("queued") == 0 {
			break
		}
		s.pass(0, time.Minute)
		v := s.acquire(4)
		poison := slices.IndexFunc(v.Items, func(it frontier.Item) bool { return strings.HasSuffix(it.URL, "/2") })
		if poison < 0 {
			s.settle(all(v, frontier.Done))
			done += len(v.Items)
			continue
		}
		if acquired++; acquired > 1 && len(v.Items) != 1 {
			t.Errorf("leased with others after it was lost: %v", pages(v))
		}
		s.reap(s.expire(v))
	}
	if acquired != 3 || done != 3 {
		t.Errorf("leased %d times, want 3; %d done, want 3", acquired, done)
	}
	list := s.do("LRANGE", s.keys[0].Dead(frontier.CauseLost), 0, -1).([]any)
	if len(list) != 1 {
		t.Fatalf("dead: %q", list)
	}
	if d, err := ParseDeadLetter(list[0].(string), frontier.CauseLost); err != nil || !strings.HasSuffix(d.URL, "/2") || d.Lost != 3 {
		t.Errorf("%+v, %v", d, err)
	}
	s.sound(0)
}

// TestOutcomesClearLost: whoever brings a URL back alive clears its count of losses.
func TestOutcomesClearLost(t *testing.T) {
	t.Parallel()
	for _, kind := range []frontier.Kind{frontier.Retry, frontier.Requeue} {
		s := one(t)
		s.admit(candidates("a.example", 0, 1)...)
		s.reap(s.expire(s.acquire(1)))
		s.pass(0, time.Minute)
		v := s.acquire(1)
		if v.Items[0].Lost != 1 {
			t.Fatalf("%+v, want one loss", v.Items[0])
		}
		s.settle(all(v, kind))
		if v := s.acquire(1); v.Items[0].Lost != 0 {
			t.Errorf("kind %d left the count of losses: %+v", kind, v.Items[0])
		}
		s.sound(0)
	}
}

func TestReapBoundsDeadLetters(t *testing.T) {
	t.Parallel()
	s := one(t)
	if err := s.Configure(Config{MaxDead: 2}); err != nil {
		t.Fatal(err)
	}
	s.admit(candidates("a.example", 0, 3)...)
	for range 9 {
		s.pass(0, time.Minute)
		s.reap(s.expire(s.acquire(1)))
	}
	if s.stat("dead") != 3 || s.stat("dropped") != 1 || s.number("LLEN", s.keys[0].Dead(frontier.CauseLost)) != 2 {
		t.Error("dead ", s.stat("dead"), ", dropped ", s.stat("dropped"))
	}
	s.sound(0)
}

// TestRevive: dead letters come back as new; what is dropped is gone.
func TestRevive(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(append(candidates("a.example", 0, 3), candidate("b.example", 0), class(candidate("c.example", 0), 1))...)
	s.pass(0, time.Millisecond)
	var letters []frontier.DeadLetter
	for _, v := range s.visit(frontier.VisitLimits{URLs: 9}, s.tick(frontier.TickRequest{Want: 9}).Due...) {
		st := all(v, frontier.Dead)
		for i := range st.Outcomes {
			st.Outcomes[i].Text = "what happened"
			st.Outcomes[i].Cause = strings.TrimSuffix(v.Site, ".example")
		}
		s.settle(st)
	}
	for _, cause := range []string{"a", "b", "c"} {
		for _, raw := range s.do("LRANGE", s.keys[0].Dead(cause), 0, -1).([]any) {
			d, err := ParseDeadLetter(raw.(string), cause)
			if err != nil {
				t.Fatal(err)
			}
			letters = append(letters, d)
		}
	}
	s.alter("b.example", frontier.SiteChange{Blocked: ptr(true)})
	ctx := t.Context()
	want := 3
	s.twice("retry", func() { // a0, a2, c0; b is blocked
		n, err := s.RetryDead(ctx, 0, []frontier.DeadLetter{letters[0], letters[3], letters[4], letters[2]})
		if n != want || err != nil {
			t.Errorf("retried %d, %v, want %d", n, err, want)
		}
		want = 0
	})
	want = 1
	s.twice("drop", func() {
		n, err := s.DropDead(ctx, 0, letters[1:2])
		if n != want || err != nil {
			t.Errorf("dropped %d, %v, want %d", n, err, want)
		}
		want = 0
	})
	if got := strings.Join(s.stored("a.example", 2), " "); got != "0 2" {
		t.Error("queue ", got)
	}
	if a, b, c := s.where("a.example"), s.where("b.example"), s.where("c.example"); a != "2" || b != "" || c != "1" {
		t.Errorf("they stand in %q, %q, %q", a, b, c)
	}
	s.sound(0)
	if _, err := s.RetryDead(ctx, 0, []frontier.DeadLetter{{Cause: "a", Raw: "broken"}}); err == nil {
		t.Error("a broken letter was taken")
	}
}

// TestLettersInSteps: what is taken out of a long list, from its far end too, is
// taken in small steps, and the others stay in their order, though each step is made
// twice because its reply was lost.
func TestDeadLettersInSteps(t *testing.T) {
	t.Parallel()
	s := one(t)
	run := s.run
	s.run = func(ctx context.Context, k int, script *shard.Script, keys []string, args ...any) (any, error) {
		if script == deadLettersScript {
			if _, err := run(ctx, k, script, keys, args...); err != nil {
				return nil, err
			}
		}
		return run(ctx, k, script, keys, args...)
	}
	const many = 1000
	var all []string
	for i := range many {
		site := []string{"a.example", "b.example", "c.example"}[i%3]
		e := frontier.Entry{URL: fmt.Sprintf("https://%s/%d", site, i)}
		all = append(all, deadHead(site, "x")+string(frontier.AppendEntry(nil, site, &e)))
		s.do("RPUSH", s.keys[0].Dead("x"), all[i])
	}
	s.do("HSET", s.keys[0].Stats(), "dead:x", many, "dead", many)
	s.alter("c.example", frontier.SiteChange{Blocked: ptr(true)})
	ctx := t.Context()
	list, err := s.DeadLetters(ctx, 0, "x", 0, many)
	if err != nil {
		t.Fatal(err)
	}
	of := func(sites ...string) (chosen []frontier.DeadLetter, others []string) {
		for _, d := range list {
			if slices.Contains(sites, d.Site) {
				chosen = append(chosen, d)
			} else {
				others = append(others, d.Raw)
			}
		}
		return chosen, others
	}
	stored := func() (texts []string) {
		for _, v := range s.do("LRANGE", s.keys[0].Dead("x"), 0, -1).([]any) {
			texts = append(texts, v.(string))
		}
		return texts
	}
	chosen, others := of("a.example")
	if n, err := s.DropDead(ctx, 0, chosen[len(chosen)/2:]); n != len(chosen)-len(chosen)/2 || err != nil {
		t.Errorf("dropped %d, %v", n, err)
	}
	if n, err := s.DropDead(ctx, 0, chosen); n != len(chosen)/2 || err != nil {
		t.Errorf("dropped %d, %v", n, err)
	}
	if got := stored(); !slices.Equal(got, others) {
		t.Errorf("%d letters stay, want %d, or in another order", len(got), len(others))
	}
	chosen, _ = of("b.example", "c.example")
	_, others = of("a.example", "b.example")
	if n, err := s.RetryDead(ctx, 0, chosen); n != len(chosen)-len(others) || err != nil {
		t.Errorf("retried %d, %v", n, err)
	}
	if got := stored(); !slices.Equal(got, others) {
		t.Errorf("%d letters of the blocked site stay, want %d, or in another order", len(got), len(others))
	}
	if got := s.stored("b.example", 0); len(got) != len(chosen)-len(others) {
		t.Errorf("%d in the queue", len(got))
	}
}
