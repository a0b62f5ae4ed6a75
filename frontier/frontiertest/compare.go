package frontiertest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"seine/frontier"
)

// Compare takes the same random steps on two backends and fails where they
// answer differently. Tokens, tickets and dead letters may have other names, times
// may differ by the rounding of a millisecond.
func Compare(t *testing.T, a, b func(testing.TB) Backend) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &pair{a: newKit(t, a(t)), b: newKit(t, b(t)), tokens: map[string]string{}}
		actions := p.actions()
		for range rapid.IntRange(1, 150).Draw(rt, "steps") {
			rapid.SampledFrom(actions).Draw(rt, "step").run(rt)
			p.check(rt)
		}
		p.a.f.Close()
		p.b.f.Close()
	})
}

// action is one kind of step.
type action struct {
	name string
	run  func(*rapid.T)
}

func (a action) String() string { return a.name }

// actions lists the kinds of steps, the frequent ones more than once.
func (p *pair) actions() []action {
	acquire := action{"acquire", p.acquire}
	finish := action{"finish", p.finish}
	admit := action{"admit", p.admit}
	return []action{
		admit, admit, admit, {"refetch", p.refetch},
		acquire, acquire, acquire, acquire, finish, finish, {"settle", p.settle}, {"settle", p.settle},
		{"tick", p.tick}, {"visit", p.visit}, {"renew", p.renew}, {"reap", p.reap}, {"expire", p.expire}, {"expire", p.expire},
		{"letters", p.deadLetters}, {"alter", p.alter}, {"reserve", p.reserve}, {"set", p.changeSettings}, {"pause", p.pause},
		{"advance", p.advance}, {"advance", p.advance},
	}
}

// sites is where the steps of Compare take place: few, so that steps meet.
var sites = []string{"a.example", "b.example", "c.example", "d.example"}

// both is one thing under the names that the two backends give it.
type both[T any] struct{ a, b T }

// pair is two backends and what is known of them.
type pair struct {
	a, b    *kit
	tokens  map[string]string // of a -> of b
	tickets []both[frontier.Ticket]
	visits  []both[frontier.Visit]
	expired []both[frontier.Expired]
	made    int // numbers what must be unlike all else
}

// agree fails unless both answered the same.
func agree[T any](rt *rapid.T, what string, a, b T, errA, errB error) {
	if (errA == nil) != (errB == nil) {
		rt.Fatalf("%s: errors %v and %v", what, errA, errB)
	}
	if !reflect.DeepEqual(a, b) {
		rt.Fatalf("%s:\n%+v\n%+v", what, a, b)
	}
}

// pick draws one of what is there; false when nothing is.
func pick[T any](rt *rapid.T, name string, from []T) (T, bool) {
	var none T
	if len(from) == 0 {
		return none, false
	}
	// The newest are the most interesting; small numbers are drawn most.
	return from[len(from)-1-rapid.IntRange(0, min(len(from), 12)-1).Draw(rt, name)], true
}

func (p *pair) site(rt *rapid.T) string { return rapid.SampledFrom(sites).Draw(rt, "site") }

// candidate draws a URL of a site.
func (p *pair) candidate(rt *rapid.T, site string) frontier.Candidate {
	c := urlOf(site, fmt.Sprint(rapid.IntRange(0, 60).Draw(rt, "url")))
	if rapid.IntRange(0, 3).Draw(rt, "is a request") == 0 {
		c.Request = request(rapid.SampledFrom([]string{"GET", "POST"}).Draw(rt, "method"), rapid.SampledFrom([]string{"", "a"}).Draw(rt, "body"))
		c.Fingerprint = c.Request.Fingerprint(c.Fingerprint)
	}
	c.Priority = rapid.Uint8Range(0, 3).Draw(rt, "class")
	p.made++
	c.Depth = uint32(p.made)
	return c
}

func (p *pair) admitBoth(rt *rapid.T, shard int, batch []frontier.Candidate) {
	va, vb := make([]frontier.Verdict, len(batch)), make([]frontier.Verdict, len(batch))
	errA, errB := p.a.f.Admit(p.a.ctx, shard, batch, va), p.b.f.Admit(p.b.ctx, shard, batch, vb)
	agree(rt, fmt.Sprintf("admit %+v", batch), va, vb, errA, errB)
}

func (p *pair) admit(rt *rapid.T) {
	byShard := make(map[int][]frontier.Candidate)
	for range rapid.IntRange(1, 12).Draw(rt, "n") {
		c := p.candidate(rt, p.site(rt))
		byShard[p.a.f.Of(c.Fingerprint)] = append(byShard[p.a.f.Of(c.Fingerprint)], c)
	}
	for shard := range p.a.f.Shards() {
		if batch := byShard[shard]; batch != nil {
			p.admitBoth(rt, shard, batch)
		}
	}
}

func (p *pair) refetch(rt *rapid.T) {
	c := p.candidate(rt, p.site(rt))
	c.Refetch = rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "request")
	batch := []frontier.Candidate{c}
	if rapid.Bool().Draw(rt, "with plain") {
		plain := c
		plain.Refetch = ""
		batch = append(batch, plain)
	}
	if rapid.Bool().Draw(rt, "with another") {
		c.Refetch = rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "other")
		p.made++
		c.Depth = uint32(p.made) // of two equal entries that are retried Redis keeps one
		batch = append(batch, c)
	}
	p.admitBoth(rt, p.a.f.Of(c.Fingerprint), batch)
}

func (p *pair) tick(rt *rapid.T) {
	shard := p.a.shard(p.site(rt))
	req := frontier.TickRequest{Want: rapid.IntRange(0, 5).Draw(rt, "want"), MaxExpired: 100}
	p.tickWith(rt, shard, req, rapid.IntRange(0, 2).Draw(rt, "extend"))
}

// tickWith ticks both and extends up to extend visits.
func (p *pair) tickWith(rt *rapid.T, shard int, req frontier.TickRequest, extend int) {
	reqA, reqB := req, req
	for range extend {
		if v, ok := pick(rt, "lease", p.visits); ok && v.a.Shard == shard {
			reqA.Extend = append(reqA.Extend, v.a.Lease)
			reqB.Extend = append(reqB.Extend, v.b.Lease)
		}
	}
	ra, errA := p.a.f.Tick(p.a.ctx, shard, reqA)
	rb, errB := p.b.f.Tick(p.b.ctx, shard, reqB)
	agree(rt, "tick: paused", ra.Paused, rb.Paused, errA, errB)
	agree(rt, "tick: gone", p.leases(ra.Gone), rb.Gone, nil, nil)
	if d := ra.Next - rb.Next; d < -time.Millisecond || d > time.Millisecond {
		rt.Fatalf("tick: next is %v and %v", ra.Next, rb.Next)
	}
	agree(rt, "tick: due", dueOf(ra), dueOf(rb), nil, nil)
	for i := range ra.Due {
		p.tickets = append(p.tickets, both[frontier.Ticket]{ra.Due[i], rb.Due[i]})
	}
	p.matchExpired(rt, ra.Expired, rb.Expired)
}

// dueOf is the sites of a reply and their classes, in order.
func dueOf(r frontier.TickReply) []string {
	out := []string{}
	for _, t := range r.Due {
		out = append(out, fmt.Sprint(t.Site, " in ", t.Class))
	}
	return out
}

// leases renames leases of a to those of b.
func (p *pair) leases(a []frontier.Lease) []frontier.Lease {
	var out []frontier.Lease
	for _, l := range a {
		out = append(out, frontier.Lease{Token: p.tokens[l.Token], Site: l.Site})
	}
	return out
}

func (p *pair) matchExpired(rt *rapid.T, a, b []frontier.Expired) {
	names := func(list []frontier.Expired, name func(string) string) []string {
		out := []string{}
		for _, e := range list {
			out = append(out, name(e.Token)+" "+e.Site)
		}
		slices.Sort(out)
		return out
	}
	agree(rt, "tick: expired", names(a, func(t string) string { return p.tokens[t] }), names(b, func(t string) string { return t }), nil, nil)
	for _, ea := range a {
		for _, eb := range b {
			if p.tokens[ea.Token] == eb.Token {
				p.expired = append(p.expired, both[frontier.Expired]{ea, eb})
			}
		}
	}
}

// acquire leases what is due in a shard.
func (p *pair) acquire(rt *rapid.T) {
	from := len(p.tickets)
	p.tickWith(rt, p.a.shard(p.site(rt)), frontier.TickRequest{Want: rapid.IntRange(1, 5).Draw(rt, "want")}, 0)
	for _, t := range p.tickets[from:] {
		p.visitWith(rt, t)
	}
}

// visit uses some ticket, old ones too.
func (p *pair) visit(rt *rapid.T) {
	if t, ok := pick(rt, "ticket", p.tickets); ok {
		p.visitWith(rt, t)
	}
}

func (p *pair) visitWith(rt *rapid.T, t both[frontier.Ticket]) {
	limits := frontier.VisitLimits{
		URLs:      rapid.IntRange(1, 20).Draw(rt, "urls"),
		Undelayed: rapid.IntRange(0, 40).Draw(rt, "undelayed"),
		Span:      time.Duration(rapid.SampledFrom([]int{0, 0, 1, 5, 20}).Draw(rt, "span")) * time.Second,
		Delay:     time.Duration(rapid.IntRange(0, 1).Draw(rt, "delay")) * time.Second,
		Safe:      rapid.Bool().Draw(rt, "safe"),
		Share:     rapid.SampledFrom([]int{0, 0, 30, 100}).Draw(rt, "share"),
	}
	shard := p.a.shard(t.a.Site)
	va, errA := p.a.f.Visit(p.a.ctx, shard, []frontier.Ticket{t.a}, limits)
	vb, errB := p.b.f.Visit(p.b.ctx, shard, []frontier.Ticket{t.b}, limits)
	agree(rt, "visit "+t.a.Site+": granted", len(va), len(vb), errA, errB)
	for i := range va {
		a, b := va[i], vb[i]
		p.tokens[a.Token] = b.Token
		p.visits = append(p.visits, both[frontier.Visit]{a, b})
		a.Token, a.Deadline, b.Deadline = b.Token, time.Time{}, time.Time{}
		agree(rt, "visit", a, b, nil, nil)
	}
}

// advance lets less than a day pass: what is forgotten then is not compared.
func (p *pair) advance(rt *rapid.T) {
	d := time.Duration(rapid.SampledFrom([]int{100, 1000, 2000, 19_900, 60_000}).Draw(rt, "ms")) * time.Millisecond
	p.a.advance(d)
	p.b.advance(d)
}

// check compares what can be seen without changing anything.
func (p *pair) check(rt *rapid.T) {
	sa, errA := p.a.f.Stats(p.a.ctx)
	sb, errB := p.b.f.Stats(p.b.ctx)
	agree(rt, "stats", gauges(sa), gauges(sb), errA, errB)
	fa, errA := p.a.f.Finished(p.a.ctx)
	fb, errB := p.b.f.Finished(p.b.ctx)
	for old := time.Now().Add(10 * time.Second); errB == nil && fa && !fb && time.Now().Before(old); {
		time.Sleep(50 * time.Millisecond) // it may go by a reading of a second ago, which had work
		fb, errB = p.b.f.Finished(p.b.ctx)
	}
	agree(rt, "finished", fa, fb, errA, errB)
}

// gauges is stats without what may differ.
func gauges(stats []frontier.ShardStats) []frontier.ShardStats {
	out := slices.Clone(stats)
	for i := range out {
		out[i].Blocked, out[i].Merged, out[i].Missing = 0, 0, 0
		out[i].Admits, out[i].Slot, out[i].Master, out[i].Memory = 0, 0, "", frontier.Memory{}
	}
	slices.SortFunc(out, func(a, b frontier.ShardStats) int { return cmp.Compare(a.Shard, b.Shard) })
	return out
}
