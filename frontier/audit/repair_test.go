package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/audit"
	"seine/frontier/redis"
	"seine/shard/shardtest"
)

// scene is a shard with some of everything.
type scene struct {
	*stand
	leased frontier.Visit  // of b.example, one of three settled
	freed  frontier.Visit  // of g.example, released with one page open
	left   map[string]bool // URLs that are to be fetched still
}

// setUp makes a scene.
func setUp(s *stand) *scene {
	sc := &scene{stand: s, left: map[string]bool{}}
	base := 0
	add := func(site string, n int) {
		base += 100 // no two sites have a path in common
		list := candidates(site, base, base+n)
		for i := range list {
			list[i].Priority = uint8(i % 3)
			sc.left[list[i].URL] = true
		}
		s.admit(list...)
	}
	done := func(v frontier.Visit, indexes ...int) {
		for _, it := range v.Items {
			if slices.Contains(indexes, it.Index) {
				delete(sc.left, it.URL)
			}
		}
	}
	add("c.example", 4) // two wait, one is dead
	v := s.acquire("c.example", 3)
	st := all(v, frontier.Retry)
	st.Outcomes[0].NotBefore, st.Outcomes[1].NotBefore = time.Hour, 2*time.Hour
	st.Outcomes[2].Kind, st.Outcomes[2].Cause = frontier.Dead, "gone"
	done(v, st.Outcomes[2].Index)
	s.settle(st)
	add("b.example", 6)
	sc.leased = s.acquire("b.example", 3)
	s.settle(frontier.Settlement{Lease: sc.leased.Lease, Outcomes: []frontier.Outcome{{Index: 1}}})
	done(sc.leased, 1)
	add("g.example", 3)
	sc.freed = s.acquire("g.example", 3)
	s.settle(frontier.Settlement{Lease: sc.freed.Lease, Outcomes: []frontier.Outcome{{Index: 1}, {Index: 3}}, Release: &frontier.Release{}})
	done(sc.freed, 1, 3)
	add("a.example", 7)
	add("d.example", 2)
	s.alter("d.example", frontier.SiteChange{Paused: ptr(true)})
	s.admit(candidates("e.example", 0, 2)...)
	s.alter("e.example", frontier.SiteChange{Blocked: ptr(true)})
	s.sound()
	return sc
}

// finish fetches what is left of the scene, each once.
func (s *scene) finish() {
	s.t.Helper()
	s.alter("d.example", frontier.SiteChange{Paused: ptr(false)})
	got := map[string]int{}
	for range 300 {
		s.pass(15 * time.Second)
		r := s.tick(frontier.TickRequest{Want: 100, MaxExpired: 100})
		s.reap(r.Expired...)
		for _, v := range s.visit(frontier.VisitLimits{URLs: 3}, r.Due...) {
			for _, it := range v.Items {
				got[it.URL]++
			}
			s.settle(all(v, frontier.Done))
		}
		if ok, err := s.Finished(s.t.Context()); err != nil {
			s.t.Fatal(err)
		} else if ok {
			break
		}
		s.pass(10 * time.Minute / 30)
	}
	for url := range s.left {
		if got[url] != 1 {
			s.t.Errorf("%s was fetched %d times", url, got[url])
		}
	}
	for url := range got {
		if !s.left[url] {
			s.t.Errorf("%s was fetched, and should not", url)
		}
	}
	s.sound()
}

// TestRepair breaks a shard in every way: the check finds it and names the key,
// the repair ends it, a second one finds nothing, and the crawl goes on to its
// end with every URL fetched once. On one kind of server each script runs twice,
// as if its reply had been lost.
func TestRepair(t *testing.T) {
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		server := shardtest.Start(t, shardtest.Config{Kind: kind})
		for _, b := range breaks {
			t.Run(b.name, func(t *testing.T) {
				s := made(t, server)
				defer s.do("FLUSHALL")
				sc := setUp(s)
				if kind == shardtest.Valkey {
					s.wire.on = func(script string, _ int, send func() error, again func()) error {
						err := send()
						if script == "mend" || script == "evict" {
							again()
						}
						return err
					}
				}
				b.do(sc)
				s.repairs(b.fault, b.mend)
				sc.finish()
			})
		}
	})
}

// repairs fails unless a check finds a fault and a repair ends it, once.
func (s *stand) repairs(fault, mend string) {
	s.t.Helper()
	c := s.check(true)
	if text := strings.Join(c.Faults, "\n"); !strings.Contains(text, fault) || !strings.HasPrefix(text, "crawl:{") {
		s.t.Errorf("faults:\n%s\nwant %q", text, fault)
	}
	c = s.repair()
	if text := strings.Join(c.Repaired, "\n"); !strings.Contains(text, mend) || c.Faulted > 0 || c.Repairs == 0 {
		s.t.Errorf("mended:\n%s\nwant %q; left:\n%s", text, mend, strings.Join(c.Faults, "\n"))
	}
	before := s.dump()
	if c = s.repair(); c.Repairs != 0 || c.Faulted != 0 || len(c.Notes) != 0 {
		s.t.Errorf("again: %+v", c)
	}
	s.same(before, s.dump())
	s.sound()
}

// TestRepairWhenFull: above maxmemory all is mended but what a filter needs; that
// is reported, and repaired when there is room.
func TestRepairWhenFull(t *testing.T) {
	s := made(t, shardtest.One(t))
	sc := setUp(s)
	s.do("RPUSH", s.keys.Queue("a.example", 0), stored("a.example", 77))
	sc.left[candidate("a.example", 77).URL] = true
	s.do("ZREM", s.keys.Leases(), redis.MemberOf(sc.leased.Lease))
	s.do("CONFIG", "SET", "maxmemory", "1mb")
	c := s.repair()
	if c.Faulted != 1 || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "Redis is full") || c.Repairs == 0 {
		t.Errorf("%+v", c)
	}
	s.do("CONFIG", "SET", "maxmemory", "0")
	if c = s.repair(); c.Faulted != 0 || c.Repairs != 1 {
		t.Errorf("%+v", c)
	}
	sc.finish()
}

// TestRepairTells: what cannot be mended is left as it is, with what to do.
func TestRepairTells(t *testing.T) {
	s := made(t, shardtest.One(t))
	s.admit(candidates("x.example", 5, 6)...)
	v := s.acquire("x.example", 1)
	s.admit(candidates("y.example", 5, 6)...) // the same path: not to be taken for it
	s.do("DEL", s.keys.Site("x.example"))
	s.do("ZREM", s.keys.Leases(), redis.MemberOf(v.Lease))
	visit := s.keys.Visit(v.Token)
	c := s.repair()
	if text := strings.Join(c.Faults, "\n"); c.Faulted != 1 || !strings.HasPrefix(text, visit+": open without a lease") || !strings.Contains(text, "frontier seed --refetch") {
		t.Error(text)
	}
	if n := s.number("HLEN", visit); n != 1 {
		t.Error("the visit is gone")
	}
	s.do("DEL", s.keys.Filter(0))
	c = s.repair()
	if text := strings.Join(c.Faults, "\n"); c.Faulted != 2 || !strings.Contains(text, s.keys.Filter(0)+": ") || !strings.Contains(text, "frontier bloom load") {
		t.Error(text)
	}
}

// TestRepairOfMany: more than a page of entries and URLs to mend in one list.
func TestRepairOfMany(t *testing.T) {
	s := made(t, shardtest.One(t))
	sc := setUp(s)
	for i := range 3 * 200 {
		s.do("RPUSH", s.keys.Queue("a.example", 0), "bad", stored("a.example", 1000+i))
		sc.left[candidate("a.example", 1000+i).URL] = true
	}
	if c := s.repair(); c.Faulted != 0 || c.Repairs < 6*200 {
		t.Errorf("%d repairs, %d faults left", c.Repairs, c.Faulted)
	}
	if n := s.number("LLEN", s.keys.Broken()); n != 3*200 {
		t.Errorf("%d entries moved away", n)
	}
	s.sound()
}

// TestCheckSeesWhatCameBack: a visit that begins and is released while the
// shard is counted leaves all numbers of URLs as they were, and still counts as a
// change.
func TestCheckSeesWhatCameBack(t *testing.T) {
	s := made(t, shardtest.One(t))
	s.admit(candidates("a.example", 0, 5)...)
	s.settle(all(s.acquire("a.example", 3), frontier.Requeue)) // every counter is there
	s.pass(time.Second)
	s.wire.on = func(script string, keys int, send func() error, _ func()) error {
		if script != "check" || keys == 9 { // those of no site only wait
			return send()
		}
		s.wire.on = nil
		v := s.acquire("a.example", 3)
		err := send()
		s.settle(all(v, frontier.Requeue))
		return err
	}
	if c := s.check(false); !c.Moving || c.Faulted != 0 {
		t.Errorf("moving %v, faults %v", c.Moving, c.Faults)
	}
}

// TestRepairCutOff: with an error comes what was mended until then.
func TestRepairCutOff(t *testing.T) {
	s := made(t, shardtest.One(t))
	for _, site := range []string{"a.example", "b.example"} {
		s.admit(candidates(site, 0, 2)...)
		s.do("ZREM", s.keys.Ready(2), site)
	}
	ctx, cut := context.WithCancelCause(t.Context())
	off, repairs := errors.New("cut off"), 0
	s.wire.on = func(script string, _ int, send func() error, _ func()) error {
		if script == "mend" {
			if repairs++; repairs == 2 {
				cut(off)
			}
		}
		return send()
	}
	c, err := audit.Repair(ctx, s.Frontier, 0, false)
	if !errors.Is(err, off) || c == nil || c.Repairs != 1 || !strings.Contains(c.Repaired[0], "a.example") {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestCheckLooksAtEveryURL: of sites with few URLs and with more than one call reads.
func TestCheckLooksAtEveryURL(t *testing.T) {
	s := made(t, shardtest.One(t))
	all := 0
	for i, n := range []int{1, 1, 700, 1, 400, 300, 2, 499, 1, 1, 500, 501, 1} {
		s.admit(candidates(fmt.Sprintf("s%02d.example", i), 0, n)...)
		all += n
	}
	post, err := frontier.NewRequest("POST", nil, []byte("a=1"))
	if err != nil {
		t.Fatal(err)
	}
	form := candidate("form.example", 0) // whose URL alone is in no filter
	form.Request, form.Fingerprint = post, post.Fingerprint(form.Fingerprint)
	s.admit(form)
	all++
	v := s.acquire("s05.example", 3)
	st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
	for _, it := range v.Items {
		st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index, Kind: frontier.Retry, Cause: "timeout", NotBefore: time.Hour})
	}
	s.settle(st)
	if r := s.check(true); r.Faulted != 0 || r.Probed != int64(all) || r.Gauges["waiting"] != 3 {
		t.Errorf("%+v, want that %d URLs are looked for", r, all)
	}
	s.do("DEL", s.keys.Filter(0))
	s.do("BF.RESERVE", s.keys.Filter(0), "0.000001", 20_000, "EXPANSION", 2)
	if r := s.check(true); r.Faulted != int64(all) {
		t.Errorf("%d URLs are missing, want %d", r.Faulted, all)
	}
}
