package redis

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
	"seine/shard/shardtest"
)

// TestSettle is the truth table of outcomes: a visit of three URLs of which one
// is settled, and what becomes of it, of the lease and of the site.
func TestSettle(t *testing.T) {
	t.Parallel()
	const a = "a.example"
	s := one(t)
	for _, c := range []struct {
		name    string
		outcome []frontier.Outcome
		free    *frontier.Release
		settled string // 1 settled, 0 gone
		open    string // left in v
		queue   string // class 2, behind which 3 and 4 wait
		where   string
		leased  bool
		stats   string // done retried dead waiting
	}{
		{"nothing", nil, nil, "", "1 2 3", "3 4", "", true, "0 0 0 0"},
		{"done", []frontier.Outcome{{Index: 2, Kind: frontier.Done}}, nil, "1", "1 3", "3 4", "", true, "1 0 0 0"},
		{"retry", []frontier.Outcome{{Index: 2, Kind: frontier.Retry, NotBefore: time.Hour}}, nil, "1", "1 3", "3 4", "", true, "0 1 0 1"},
		{"dead", []frontier.Outcome{{Index: 2, Kind: frontier.Dead, Cause: "gone", Text: "410"}}, nil, "1", "1 3", "3 4", "", true, "0 0 1 0"},
		{"requeue", []frontier.Outcome{{Index: 2, Kind: frontier.Requeue}}, nil, "1", "1 3", "1 3 4", "", true, "0 0 0 0"},
		{"requeue keeps order", []frontier.Outcome{{Index: 3, Kind: frontier.Requeue}, {Index: 1, Kind: frontier.Requeue}, {Index: 2, Kind: frontier.Requeue}}, nil, "111", "", "0 1 2 3 4", "", true, "0 0 0 0"},
		{"all of them, not freed", []frontier.Outcome{{Index: 1, Kind: frontier.Done}, {Index: 2, Kind: frontier.Dead, Cause: "x"}, {Index: 3, Kind: frontier.Retry}}, nil, "111", "", "3 4", "", true, "1 1 1 1"},
		{"all of them, freed", []frontier.Outcome{{Index: 1, Kind: frontier.Done}, {Index: 2, Kind: frontier.Done}, {Index: 3, Kind: frontier.Done}}, &frontier.Release{}, "111", "", "3 4", "2", false, "3 0 0 0"},
		{"freed early", []frontier.Outcome{{Index: 1, Kind: frontier.Done}}, &frontier.Release{}, "1", "2 3", "3 4", "2", true, "1 0 0 0"},
		{"freed only", nil, &frontier.Release{Remain: time.Minute}, "", "1 2 3", "3 4", "2", true, "0 0 0 0"},
		{"unknown indexes", []frontier.Outcome{{Index: 4}, {Index: 0}, {Index: -1}, {Index: 1001}, {Index: 1}}, nil, "00001", "2 3", "3 4", "", true, "1 0 0 0"},
		{"one index twice", []frontier.Outcome{{Index: 1, Kind: frontier.Done}, {Index: 1, Kind: frontier.Dead, Cause: "x"}}, nil, "10", "2 3", "3 4", "", true, "1 0 0 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.reset(t)
			s.admit(candidates(a, 0, 5)...)
			v := s.acquire(3)
			first := true
			s.twice("settle", func() {
				got := s.settle(frontier.Settlement{Lease: v.Lease, Outcomes: c.outcome, Release: c.free})[0]
				text := ""
				for _, ok := range got {
					text += map[bool]string{true: "1", false: "0"}[ok]
				}
				want := c.settled
				if !first {
					want = strings.ReplaceAll(want, "1", "0")
				}
				if text != want {
					t.Errorf("settled %s, want %s (first call: %v)", text, want, first)
				}
				first = false
			})
			var open []string
			for _, i := range s.do("HKEYS", s.keys[0].Visit(v.Token)).([]any) {
				open = append(open, i.(string))
			}
			slices.Sort(open)
			if got := strings.Join(open, " "); got != c.open {
				t.Errorf("open %s, want %s", got, c.open)
			}
			if got := strings.Join(s.stored(a, 2), " "); got != c.queue {
				t.Errorf("queue %s, want %s", got, c.queue)
			}
			if got := s.where(a); got != c.where {
				t.Errorf("stands in %q, want %q", got, c.where)
			}
			if leased := s.do("ZSCORE", s.keys[0].Leases(), MemberOf(v.Lease)) != nil; leased != c.leased {
				t.Errorf("leased %v, want %v", leased, c.leased)
			}
			if got := fmt.Sprint(s.stat("done"), s.stat("retried"), s.stat("dead"), s.stat("waiting")); got != c.stats {
				t.Errorf("counters %s, want %s", got, c.stats)
			}
			s.sound(0)
		})
	}
}

// TestSettleLate: copies of a call that arrive when all has changed since.
func TestSettleLate(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 9)...)
	v := s.acquire(2)
	late := all(v, frontier.Retry)
	late.Release = &frontier.Release{Remain: time.Hour, Delay: time.Hour, Why: "late", Failures: 9}
	s.settle(all(v, frontier.Done))
	next := s.acquire(2)
	before := s.dump(0)
	if got := s.settle(late)[0]; slices.Contains(got, true) {
		t.Error("a late copy settled ", got)
	}
	if fmt.Sprint(s.dump(0)) != fmt.Sprint(before) {
		t.Error("a late copy changed something while the site is leased to another")
	}
	s.settle(all(next, frontier.Done))
	before = s.dump(0)
	s.settle(late, all(next, frontier.Dead))
	if fmt.Sprint(s.dump(0)) != fmt.Sprint(before) {
		t.Error("a late copy changed something while the site is free")
	}
	s.sound(0)
}

// TestSettleEarlyFree: the site goes on while pages of its last visit are open.
func TestSettleEarlyFree(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 9)...)
	first := s.acquire(3)
	s.settle(frontier.Settlement{Lease: first.Lease, Release: &frontier.Release{}})
	second := s.acquire(3)
	if pages(second) != "3 4 5" {
		t.Error("leased ", pages(second))
	}
	before := s.dump(0)
	s.settle(frontier.Settlement{Lease: first.Lease, Release: &frontier.Release{Remain: time.Hour, Why: "late"}})
	if fmt.Sprint(s.dump(0)) != fmt.Sprint(before) {
		t.Error("a site that is leased to another was freed by a late copy")
	}
	s.settle(frontier.Settlement{Lease: first.Lease, Outcomes: []frontier.Outcome{{Index: 1, Kind: frontier.Requeue}, {Index: 2, Kind: frontier.Retry}, {Index: 3, Kind: frontier.Done}}})
	if s.do("ZSCORE", s.keys[0].Leases(), MemberOf(first.Lease)) != nil {
		t.Error("the first lease did not end")
	}
	if w := s.where("a.example"); w != "" {
		t.Error("a leased site stands in ", w)
	}
	s.sound(0)
	// The other way round: the site is free, and what was open is requeued.
	s.settle(frontier.Settlement{Lease: second.Lease, Release: &frontier.Release{}})
	s.do("LTRIM", s.keys[0].Queue("a.example", 2), 1, 0)
	s.do("DEL", s.keys[0].Wait("a.example"))
	for z := 3; z < 8; z++ {
		s.do("ZREM", s.base[0][z], "a.example")
	}
	s.settle(frontier.Settlement{Lease: second.Lease, Outcomes: []frontier.Outcome{{Index: 1, Kind: frontier.Requeue}}})
	if w := s.where("a.example"); w != "2" {
		t.Errorf("with requeued work it stands in %q", w)
	}
}

func TestSettleClock(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(candidates("a.example", 0, 9)...)
	key := s.keys[0].Site("a.example")
	v := s.acquire(1)
	s.pass(0, time.Minute) // for which the clock then stands still
	now := s.number("HGET", s.keys[0].Meta(), "tick")
	st := all(v, frontier.Done)
	st.Release, st.Cookies = &frontier.Release{Remain: 1500*time.Millisecond + 1, Delay: 2 * time.Second}, ptr("c")
	s.settle(st)
	clock := s.number("HGET", key, "clock")
	if clock != now+1502 {
		t.Errorf("clock %d ms after the call, want 1502: rounded up twice", clock-now)
	}
	if c := s.do("HGET", key, "cookies"); c != "c" { // they go with the rest
		t.Errorf("cookies %q", c)
	}
	if ttl := s.number("PEXPIRETIME", key); ttl != clock+24*3600*1000 {
		t.Errorf("expires %d ms after the clock, want a day", ttl-clock)
	}
	if due := s.number("ZSCORE", s.keys[0].Ready(2), "a.example"); due != clock {
		t.Errorf("due at %d, want the clock %d", due, clock)
	}
	s.pass(0, 2*time.Second)
	v = s.acquire(1)
	if s.number("PTTL", key) != -1 {
		t.Error("s of a leased site may expire")
	}
	// The clock never goes back.
	s.do("HSET", key, "clock", clock+10_000_000)
	s.settle(all(v, frontier.Done))
	if c := s.number("HGET", key, "clock"); c != clock+10_000_000 {
		t.Errorf("clock went from %d to %d", clock+10_000_000, c)
	}
}

// TestSettleKeeps: the clock of a site that is kept is exact, and its zset has the ticket.
func TestSettleKeeps(t *testing.T) {
	const a = "a.example"
	s := one(t)
	for _, c := range []struct {
		name    string
		outcome frontier.Outcome
		urls    int
		before  func()
		kept    bool
		where   string
	}{
		{"queued", frontier.Outcome{Index: 1}, 3, func() {}, true, "2"},
		{"requeued", frontier.Outcome{Index: 1, Kind: frontier.Requeue}, 1, func() {}, true, "2"},
		{"retry before its clock", frontier.Outcome{Index: 1, Kind: frontier.Retry, NotBefore: time.Second}, 1, func() {}, true, "3"},
		{"retry after its clock", frontier.Outcome{Index: 1, Kind: frontier.Retry, NotBefore: time.Minute}, 1, func() {}, false, "3"},
		{"nothing left", frontier.Outcome{Index: 1}, 1, func() {}, false, ""},
		{"paused", frontier.Outcome{Index: 1}, 3, func() { s.alter(a, frontier.SiteChange{Paused: ptr(true)}) }, false, "paused"},
		{"blocked", frontier.Outcome{Index: 1}, 3, func() { s.alter(a, frontier.SiteChange{Blocked: ptr(true)}) }, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.reset(t)
			s.admit(candidates(a, 0, c.urls)...)
			v := s.acquire(1)
			c.before()
			s.pass(0, time.Minute) // for which the clock then stands still
			now := s.number("HGET", s.keys[0].Meta(), "tick")
			st := frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{c.outcome}, Release: &frontier.Release{Remain: 2 * time.Second, Keep: true}}
			var replies []frontier.Settled
			s.twice("settle", func() {
				reply, err := s.Settle(t.Context(), 0, []frontier.Settlement{st})
				if err != nil {
					t.Fatal(err)
				}
				replies = append(replies, reply...)
			})
			if s.where(a) != c.where {
				t.Errorf("stands in %q, want %q", s.where(a), c.where)
			}
			got, clock := replies[0], now+2001
			if replies[1].Kept != (frontier.Ticket{}) {
				t.Error("a repeat was given ", replies[1].Kept)
			}
			if !c.kept {
				if got.Kept != (frontier.Ticket{}) || got.Due != 0 {
					t.Error("kept: ", got)
				}
				return
			}
			want := frontier.Ticket{Site: a, Class: c.where[0] - '0', Score: fmt.Sprint(clock+frontier.KeptFor.Milliseconds(), ".5")}
			if got.Kept != want || got.Due != 2001*time.Millisecond {
				t.Errorf("kept %v, due in %v, want %v", got.Kept, got.Due, want)
			}
			if score := s.do("ZSCORE", s.keys[0].Ready(int(want.Class)), a); score != want.Score {
				t.Errorf("score %v, want %v", score, want.Score)
			}
			if at := s.number("HGET", s.keys[0].Site(a), "clock"); at != clock {
				t.Errorf("clock %d, want %d", at, clock)
			}
			s.sound(0)
		})
	}
}

func TestSettleRetry(t *testing.T) {
	t.Parallel()
	s := one(t)
	for class := range uint8(4) {
		s.reset(t)
		s.admit(frontier.Candidate{URL: "https://a.example/page/1", Site: "a.example", Fingerprint: candidate("a.example", 1).Fingerprint, Priority: class})
		want := class
		for attempt := range uint8(3) {
			v := s.acquire(1)
			if e := v.Items[0].Entry; e.Priority != want || e.Attempts != attempt {
				t.Errorf("class %d, attempts %d, want %d and %d", e.Priority, e.Attempts, want, attempt)
			}
			want = min(3, want+1)
			s.settle(all(v, frontier.Retry))
		}
		s.sound(0)
	}
}

// TestRetriesThatAreEqual: one URL wanted again twice, retried twice, is one.
func TestRetriesThatAreEqual(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.admit(again(candidate("a.example", 0), "r1"))
	s.admit(again(candidate("a.example", 0), "r2"))
	v := s.acquire(9)
	if len(v.Items) != 2 {
		t.Fatal(v.Items)
	}
	s.twice("settle", func() { s.settle(all(v, frontier.Retry)) })
	s.sound(0)
	if s.stat("waiting") != 1 || s.stat("merged") != 1 {
		t.Errorf("waiting %d, merged %d, want 1 and 1", s.stat("waiting"), s.stat("merged"))
	}
}

func TestDeadLettersAreBounded(t *testing.T) {
	t.Parallel()
	s := one(t)
	if err := s.Configure(Config{MaxDead: 3}); err != nil {
		t.Fatal(err)
	}
	s.admit(candidates("a.example", 0, 5)...)
	v := s.acquire(5)
	st := all(v, frontier.Dead)
	st.Outcomes[0].Cause = "other"
	st.Outcomes[4].Text = "a\tb\r\nc"
	s.twice("settle", func() { s.settle(st) })
	if s.stat("dead") != 5 || s.stat("dropped") != 1 {
		t.Errorf("dead %d, dropped %d, want 5 and 1", s.stat("dead"), s.stat("dropped"))
	}
	list := s.do("LRANGE", s.keys[0].Dead("timeout"), 0, -1).([]any)
	if len(list) != 3 {
		t.Fatalf("%q", list)
	}
	first, err1 := ParseDeadLetter(list[0].(string), "timeout")
	last, err2 := ParseDeadLetter(list[2].(string), "timeout")
	if err1 != nil || err2 != nil || !strings.HasSuffix(first.URL, "/2") || !strings.HasSuffix(last.URL, "/4") || last.Text != "a b c" || last.Site != "a.example" {
		t.Errorf("%+v, %v; %+v, %v", first, err1, last, err2)
	}
	s.sound(0)
}

// TestManySettlements: more than one call takes.
func TestManySettlements(t *testing.T) {
	t.Parallel()
	s := one(t)
	var list []frontier.Settlement
	for i := range 40 {
		s.admit(candidates(fmt.Sprintf("s%d.example", i), 0, 20)...)
	}
	s.pass(0, time.Millisecond)
	for _, v := range s.visit(frontier.VisitLimits{URLs: 20}, s.tick(frontier.TickRequest{Want: 100}).Due...) {
		list = append(list, all(v, frontier.Done))
	}
	if len(list) != 40 {
		t.Fatal(len(list))
	}
	for i, settled := range s.settle(list...) {
		if len(settled) != 20 || slices.Contains(settled, false) {
			t.Fatal(i, settled)
		}
	}
	if s.stat("done") != 800 {
		t.Error(s.stat("done"))
	}
	s.sound(0)
}

// A site keeps no more URLs to be recrawled than its keys may have to move; one
// of those that it has is kept anew.
func TestMaxAgain(t *testing.T) {
	t.Parallel()
	server := shardtest.Start(t, shardtest.Config{})
	s := open(t, server, 1, 1)
	if err := s.Configure(Config{MaxRecrawls: 2}); err != nil {
		t.Fatal(err)
	}
	s.admit(candidates("a.example", 0, 3)...)
	settle := func(v frontier.Visit) {
		t.Helper()
		st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
		for _, it := range v.Items {
			next := &frontier.Next{Entry: it.Entry, Key: canon.FingerprintOf([]byte("a.example"), []byte(it.URL)).Key}
			st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index, Kind: frontier.Recrawl, NotBefore: time.Second, Next: next})
		}
		s.settle(st)
	}
	settle(s.acquire(3))
	for name, want := range map[string]int64{"recrawls": 2, "forgone": 1, "done": 3} {
		if got := s.stat(name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	s.pass(0, 2*time.Second)
	settle(s.acquire(3))
	if s.stat("recrawls") != 2 || s.stat("forgone") != 1 || s.stat("recrawled") != 2 {
		t.Errorf("the second time %d wait, %d do not", s.stat("recrawls"), s.stat("forgone"))
	}
	s.sound(0)
}
