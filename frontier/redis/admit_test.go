package redis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard/shardtest"
)

// TestAdmit is the truth table of the admit script. Every case ends with its
// batch admitted twice: the second time nothing changes.
func TestAdmit(t *testing.T) {
	t.Parallel()
	const a, b = "a.example", "b.example"
	for _, filters := range []int{1, 5} {
		s := open(t, shardtest.One(t), 1, filters)
		for _, c := range []struct {
			name     string
			before   func()
			batch    []frontier.Candidate
			verdicts string
			repeated string // "" = all seen
			queue    string // of a, class 2
			where    string // a stands
		}{
			{name: "new", batch: candidates(a, 0, 3), verdicts: "aaa", queue: "0 1 2", where: "2"},
			{name: "known", before: func() { s.admit(candidates(a, 0, 2)...) }, batch: candidates(a, 0, 3), verdicts: "ssa", queue: "0 1 2", where: "2"},
			{name: "repeats in the batch get their first's verdict", batch: []frontier.Candidate{candidate(a, 0), candidate(a, 1), candidate(a, 0)}, verdicts: "aaa", queue: "0 1", where: "2"},
			{name: "order of the batch", batch: append(candidates(a, 5, 9), candidates(a, 0, 4)...), verdicts: "aaaaaaaa", queue: "5 6 7 8 0 1 2 3", where: "2"},
			{name: "depth", before: func() {
				s.admit(candidates(a, 0, 2)...)
				s.settings.Store(&frontier.Settings{Order: "depth"})
			}, batch: candidates(a, 2, 4), verdicts: "aa", queue: "3 2 0 1", where: "2"},
			{name: "two sites and classes", batch: []frontier.Candidate{candidate(a, 0), class(candidate(b, 0), 1), class(candidate(a, 1), 0)}, verdicts: "aaa", queue: "0", where: "0"},
			{name: "better class moves the site", before: func() { s.admit(class(candidate(a, 9), 3)) }, batch: candidates(a, 0, 1), verdicts: "a", queue: "0", where: "2"},
			{name: "worse class does not", before: func() { s.admit(class(candidate(a, 9), 0)) }, batch: candidates(a, 0, 1), verdicts: "a", queue: "0", where: "0"},
			{name: "leased site stays out", before: func() { s.admit(candidate(a, 9)); s.acquire(1) }, batch: candidates(a, 0, 1), verdicts: "a", queue: "0", where: ""},
			{name: "paused site is held", before: func() { s.alter(a, frontier.SiteChange{Paused: ptr(true)}) }, batch: candidates(a, 0, 1), verdicts: "a", queue: "0", where: "paused"},
			{name: "blocked site", before: func() { s.alter(a, frontier.SiteChange{Blocked: ptr(true)}) }, batch: candidates(a, 0, 2), verdicts: "cc", repeated: "cc"},
			{name: "own cap", before: func() { s.alter(a, frontier.SiteChange{Cap: ptr(int64(2))}) }, batch: candidates(a, 0, 3), verdicts: "aac", repeated: "ssc", queue: "0 1", where: "2"},
			{name: "cap of the settings", before: func() { s.settings.Store(&frontier.Settings{MaxPerSite: 2}) }, batch: append(candidates(a, 0, 3), candidates(b, 0, 2)...), verdicts: "aacaa", repeated: "sscss", queue: "0 1", where: "2"},
			{name: "cap of a rule", before: func() {
				s.settings.Store(&frontier.Settings{MaxPerSite: 9, Sites: []frontier.SiteRule{{Match: "*.example", MaxPages: new(int64(1))}}})
			}, batch: candidates(a, 0, 2), verdicts: "ac", repeated: "sc", queue: "0", where: "2"},
			{name: "own cap beats the settings", before: func() {
				s.settings.Store(&frontier.Settings{MaxPerSite: 1})
				s.alter(a, frontier.SiteChange{Cap: ptr(int64(3))})
			}, batch: candidates(a, 0, 4), verdicts: "aaac", repeated: "sssc", queue: "0 1 2", where: "2"},
			{name: "full list", before: func() {
				if err := s.Configure(Config{MaxList: 3}); err != nil {
					t.Fatal(err)
				}
				s.admit(candidates(a, 0, 2)...)
			}, batch: candidates(a, 0, 5), verdicts: "ssacc", repeated: "ssscc", queue: "0 1 2", where: "2"},
			{name: "wanted again", before: func() { s.admit(candidates(a, 0, 2)...) }, batch: []frontier.Candidate{again(candidate(a, 0), "r1")}, verdicts: "a", queue: "0 1 0", where: "2"},
			{name: "wanted again and unknown", batch: []frontier.Candidate{again(candidate(a, 0), "r1"), candidate(a, 1)}, verdicts: "aa", queue: "0 1", where: "2"},
			{name: "again and plain are one", before: func() { s.admit(candidate(a, 0)) }, batch: []frontier.Candidate{candidate(a, 0), candidate(a, 1), again(candidate(a, 0), "r1")}, verdicts: "aaa", queue: "0 1 0", where: "2"},
			{name: "again under another id", before: func() { s.admit(again(candidate(a, 0), "r1")) }, batch: []frontier.Candidate{again(candidate(a, 0), "r2")}, verdicts: "a", queue: "0 0", where: "2"},
			{name: "again makes it known", before: func() { s.admit(again(candidate(a, 0), "r1")) }, batch: []frontier.Candidate{candidate(a, 0)}, verdicts: "s", queue: "0", where: "2"},
			{name: "more than one call takes", batch: candidates(a, 0, 2*admitMost+1), verdicts: strings.Repeat("a", 2*admitMost+1), queue: "-", where: "2"},
		} {
			t.Run(fmt.Sprintf("%d filters/%s", filters, c.name), func(t *testing.T) {
				s.reset(t)
				if c.before != nil {
					c.before()
				}
				known := s.stat("known")
				first := true
				s.twice("admit", func() {
					want := c.verdicts
					if !first {
						if want = c.repeated; want == "" {
							want = strings.Repeat("s", len(c.batch))
						}
					}
					if got := s.admit(c.batch...); got != want {
						t.Errorf("verdicts %s, want %s (first call: %v)", got, want, first)
					}
					first = false
				})
				if q := strings.Join(s.stored(a, 2), " "); c.queue != "-" && q != c.queue {
					t.Errorf("queue %q, want %q", q, c.queue)
				}
				if w := s.where(a); w != c.where {
					t.Errorf("%s stands in %q, want %q", a, w, c.where)
				}
				if n := s.stat("calls"); n == 0 {
					t.Error("the call left no write")
				}
				if c.verdicts[0] == 'a' && s.stat("known") == known {
					t.Error("nothing counted")
				}
				s.sound(0)
			})
		}
	}
}

func TestAdmitRefusesWrongBatches(t *testing.T) {
	t.Parallel()
	s := open(t, shardtest.One(t), 2, 1)
	c := candidate("a.example", 0)
	k := s.Of(c.Fingerprint)
	if err := s.Admit(t.Context(), 1-k, []frontier.Candidate{c}, make([]frontier.Verdict, 1)); err == nil {
		t.Error("a candidate of another shard was taken")
	}
	if err := s.Admit(t.Context(), k, []frontier.Candidate{c}, nil); err == nil {
		t.Error("no room for verdicts")
	}
	if err := s.Admit(t.Context(), k, []frontier.Candidate{class(c, 4)}, make([]frontier.Verdict, 1)); err == nil {
		t.Error("class 4 was taken")
	}
	if err := s.Admit(t.Context(), k, nil, nil); err != nil {
		t.Error("an empty batch: ", err)
	}
}

func TestLostFilter(t *testing.T) {
	t.Parallel()
	s := open(t, shardtest.One(t), 1, 3)
	s.admit(candidates("a.example", 0, 9)...)
	before := s.stat("known")
	lost := candidate("a.example", 1)
	key := s.keys[0].Filter(filterOf(lost, 3))
	s.do("DEL", key)
	for range 2 {
		err := s.Admit(t.Context(), 0, candidates("a.example", 0, 20), make([]frontier.Verdict, 20))
		if !errors.Is(err, frontier.ErrLostFilter) || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "frontier bloom load DIR --shard ") {
			t.Fatalf("%v, want ErrLostFilter that names %s", err, key)
		}
	}
	if s.stat("known") != before || s.do("EXISTS", key) == int64(1) {
		t.Error("something was done without the filter")
	}
	for _, urls := range []bool{false, true} {
		c, err := AuditCheck(t.Context(), s.Frontier, 0, urls)
		if err != nil || c.Faulted != 1 || !strings.Contains(c.Faults[0], key) || urls && c.Probed == 0 {
			t.Errorf("a check finds %+v, %v, want that %s is missing and nothing else", c, err, key)
		}
	}
	// What does not need the lost filter goes on.
	for i := 20; ; i++ {
		if c := candidate("a.example", i); filterOf(c, 3) != filterOf(lost, 3) {
			if v := s.admit(c); v != "a" {
				t.Error(v)
			}
			return
		}
	}
}

func TestStale(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 9)...)
	v := s.acquire(4)
	before := s.dump(0)
	s.do("HSET", s.keys[0].Meta(), "epoch", "epoch2")
	ctx := t.Context()
	errs := make(map[string]error)
	errs["admit"] = s.Admit(ctx, 0, candidates("a.example", 9, 12), make([]frontier.Verdict, 3))
	_, errs["tick"] = s.Tick(ctx, 0, frontier.TickRequest{Extend: []frontier.Lease{v.Lease}, Want: 1, MaxExpired: 1})
	_, errs["visit"] = s.Visit(ctx, 0, []frontier.Ticket{{Site: "a.example", Class: 2, Score: "1.5"}}, frontier.VisitLimits{URLs: 1})
	_, errs["settle"] = s.Settle(ctx, 0, []frontier.Settlement{all(v, frontier.Done)})
	_, errs["reap"] = s.Reap(ctx, 0, []frontier.Expired{{Lease: v.Lease, Deadline: 1}})
	letter := deadHead("a.example", "x") + string(frontier.AppendEntry(nil, "a.example", &frontier.Entry{URL: "https://a.example/"}))
	_, errs["retry"] = s.RetryDead(ctx, 0, []frontier.DeadLetter{{Cause: "x", Raw: letter}})
	_, errs["drop"] = s.DropDead(ctx, 0, []frontier.DeadLetter{{Cause: "x", Raw: letter}})
	errs["site"] = s.Alter(ctx, 0, "a.example", frontier.SiteChange{Paused: ptr(true)})
	_, errs["check"] = AuditCheck(ctx, s.Frontier, 0, false)
	for name, err := range errs {
		if !errors.Is(err, frontier.ErrStale) {
			t.Errorf("%s of another epoch: %v", name, err)
		}
	}
	s.do("HSET", s.keys[0].Meta(), "epoch", epoch)
	if after := s.dump(0); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("scripts of another epoch changed the shard\nfrom %v\nto   %v", before, after)
	}
}

func filterOf(c frontier.Candidate, n int) int { return shardFilter(c.Fingerprint, n) }

// TestFull fills a server to maxmemory: admission says full, what is known is
// still seen, and everything else goes on.
func TestFull(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		s := open(t, shardtest.Start(t, shardtest.Config{Kind: kind, Directives: []string{"maxmemory-policy noeviction"}}), 1, 1)
		s.admit(candidates("a.example", 0, 20)...)
		s.admit(candidates("b.example", 0, 4)...)
		v := s.acquireOne("a.example", 4)
		s.do("CONFIG", "SET", "maxmemory", 1)
		mixed := append(candidates("a.example", 18, 22), again(candidate("a.example", 0), "r1"))
		before := s.dump(0)
		for range 2 {
			if got := s.admit(mixed...); got != "ssfff" {
				t.Errorf("verdicts %s, want ssfff", got)
			}
			if got := s.admit(candidates("a.example", 0, 3)...); got != "sss" {
				t.Errorf("verdicts %s, want sss", got)
			}
		}
		if fmt.Sprint(s.dump(0)) != fmt.Sprint(before) {
			t.Error("admission changed a full server")
		}
		st := all(v, frontier.Done)
		st.Outcomes[1].Kind, st.Outcomes[2].Kind, st.Outcomes[3].Kind = frontier.Retry, frontier.Dead, frontier.Requeue
		if got := s.settle(st)[0]; slices.Contains(got, false) {
			t.Error("settle on a full server: ", got)
		}
		s.alter("b.example", frontier.SiteChange{Paused: ptr(true)})
		s.pass(0, time.Hour)
		if v := s.acquire(20); len(v.Items) != 18 {
			t.Errorf("leased %d, want 18", len(v.Items))
		}
		s.pass(0, 2*time.Minute)
		if n, err := s.Reap(t.Context(), 0, s.tick(frontier.TickRequest{MaxExpired: 9}).Expired); n != 1 || err != nil {
			t.Error("reap on a full server: ", n, err)
		}
		s.do("CONFIG", "SET", "maxmemory", 0)
		if got := s.admit(mixed...); got != "ssaaa" {
			t.Errorf("after: verdicts %s, want ssaaa", got)
		}
		s.sound(0)
	})
}

// TestFullFilter: what a filter refuses is full and not queued.
func TestFullFilter(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.do("DEL", s.keys[0].Filter(0))
	s.do("BF.RESERVE", s.keys[0].Filter(0), "0.000001", 10, "NONSCALING")
	for range 2 {
		s.admit(candidates("a.example", 0, 30)...)
	}
	got := s.admit(candidates("a.example", 0, 30)...)
	if seen := strings.Count(got, "s"); seen < 10 || seen > 12 || strings.Count(got, "f") != 30-seen {
		t.Error("verdicts ", got)
	}
	if got := s.admit(again(candidate("a.example", 0), "r1")); got != "f" {
		t.Error("wanted again: ", got)
	}
	s.sound(0)
}

// TestFalsePositivesOfABatch: a URL that was unknown before its batch is queued,
// though the batch itself made the filter call it known.
func TestFalsePositivesOfABatch(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.do("DEL", s.keys[0].Filter(0))
	s.do("BF.RESERVE", s.keys[0].Filter(0), "0.5", 1000)
	if got := s.admit(candidates("a.example", 0, 400)...); got != strings.Repeat("a", 400) {
		t.Error("verdicts ", got)
	}
	if n := s.number("LLEN", s.keys[0].Queue("a.example", 2)); n != 400 {
		t.Errorf("%d queued, want 400", n)
	}
	s.sound(0)
}

// TestAdmissionKeepsOrder: candidates of one site stay in their order, whatever
// their classes and filters.
func TestAdmissionKeepsOrder(t *testing.T) {
	t.Parallel()
	a := newAdmission()
	var batch []frontier.Candidate
	for i := range 100 {
		batch = append(batch, class(candidate([]string{"b.example", "a.example"}[i%2], i), uint8(i/3%4)))
	}
	a.place(batch, a.unique(batch), 7)
	if len(a.filters) != 7 || len(a.placed) != 100 {
		t.Fatal(a.filters, a.placed)
	}
	for x, i := range a.placed {
		if want := 2*x + 1; x < 50 && i != want || x >= 50 && i != 2*(x-50) {
			t.Fatalf("place %d is that of candidate %d", x, i)
		}
	}
}

// TestOldQueueIsMeasured: a queue that took more than it may before there was a
// bound is measured when it gets its next URL, and takes no more until it is shorter.
func TestOldQueueIsMeasured(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.cfg.MaxListBytes = 32 << 10
	urls := candidates("a.example", 0, 1003)
	if got := s.admit(urls[0]); got != "a" {
		t.Fatal(got)
	}
	queue := s.keys[0].Queue("a.example", int(urls[0].Priority))
	entry := s.do("LINDEX", queue, 0)
	for range 1999 {
		s.do("RPUSH", queue, fmt.Sprintf("%s%x", entry, rand.Uint64()))
	}
	if got := s.admit(urls[1]) + s.admit(urls[2:502]...); strings.Count(got, "a") != 1 || got[0] != 'a' || strings.Count(got, "c") != 500 {
		t.Errorf("verdicts %.40s, want that the first is admitted and the others are not", got)
	}
	s.do("LTRIM", queue, 1500, -1)
	if got := s.admit(urls[502]); got != "a" {
		t.Errorf("%s when the queue is shorter", got)
	}
}
