package frontiertest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"seine/frontier"
)

// outcome draws what became of an item of a visit.
func (p *pair) outcome(rt *rapid.T, v frontier.Visit, index int) frontier.Outcome {
	o := frontier.Outcome{Index: index, Kind: rapid.SampledFrom([]frontier.Kind{frontier.Done, frontier.Retry, frontier.Dead, frontier.Requeue, frontier.Recrawl}).Draw(rt, "kind")}
	switch o.Kind {
	case frontier.Recrawl:
		o = recrawlOutcome(v, index-1, time.Duration(rapid.IntRange(0, 300).Draw(rt, "in"))*100*time.Millisecond)
	case frontier.Retry:
		p.made++ // two retries never become due at once: their order is open
		o.NotBefore = time.Duration(100*rapid.IntRange(0, 300).Draw(rt, "not before")+p.made%97) * time.Millisecond
		o.Cause, o.Blameless = "timeout", rapid.Bool().Draw(rt, "blameless")
	case frontier.Dead:
		o.Cause = rapid.SampledFrom([]string{"dns", "timeout"}).Draw(rt, "cause")
		o.Text, o.Tries = fmt.Sprint("error ", p.made), rapid.Uint8Range(0, 1).Draw(rt, "tries")
		o.Unasked = rapid.Bool().Draw(rt, "unasked")
	}
	return o
}

// settle settles some outcomes of a visit, old ones too, and may free its site.
func (p *pair) settle(rt *rapid.T) {
	v, ok := pick(rt, "visit", p.visits)
	if !ok {
		return
	}
	var outcomes []frontier.Outcome
	for range rapid.IntRange(0, 4).Draw(rt, "outcomes") {
		outcomes = append(outcomes, p.outcome(rt, v.a, rapid.IntRange(1, len(v.a.Items)).Draw(rt, "index")))
	}
	var free *frontier.Release
	if rapid.Bool().Draw(rt, "free") {
		free = p.release(rt)
	}
	p.settleBoth(rt, v, outcomes, free)
}

func (p *pair) release(rt *rapid.T) *frontier.Release {
	return &frontier.Release{
		Remain:   time.Duration(rapid.IntRange(0, 20).Draw(rt, "remain")) * 100 * time.Millisecond,
		Delay:    time.Duration(rapid.IntRange(0, 20).Draw(rt, "delay")) * 100 * time.Millisecond,
		Why:      rapid.SampledFrom([]string{"", "robots"}).Draw(rt, "why"),
		Failures: rapid.IntRange(0, 3).Draw(rt, "failures"),
		Keep:     rapid.Bool().Draw(rt, "keep"),
	}
}

// finish settles all of a visit and frees its site.
func (p *pair) finish(rt *rapid.T) {
	v, ok := pick(rt, "visit", p.visits)
	if !ok {
		return
	}
	var outcomes []frontier.Outcome
	for _, it := range v.a.Items {
		outcomes = append(outcomes, p.outcome(rt, v.a, it.Index))
	}
	p.settleBoth(rt, v, outcomes, p.release(rt))
}

func (p *pair) settleBoth(rt *rapid.T, v both[frontier.Visit], outcomes []frontier.Outcome, free *frontier.Release) {
	var cookies *string
	if text := rapid.SampledFrom([]string{"nil", "nil", "", "a", "b"}).Draw(rt, "cookies"); text != "nil" {
		cookies = &text
	}
	var walls *frontier.Walls
	if rapid.IntRange(0, 3).Draw(rt, "walls") == 0 {
		walls = &frontier.Walls{Count: rapid.IntRange(0, 4).Draw(rt, "in a row"), Vendor: rapid.SampledFrom([]string{"acme", "own"}).Draw(rt, "vendor")}
		walls.Pause = time.Duration(100*rapid.IntRange(0, 40).Draw(rt, "pause")+50) * time.Millisecond
	}
	sa, errA := p.a.f.Settle(p.a.ctx, v.a.Shard, []frontier.Settlement{{Lease: v.a.Lease, Outcomes: outcomes, Release: free, Cookies: cookies, Walls: walls}})
	sb, errB := p.b.f.Settle(p.b.ctx, v.b.Shard, []frontier.Settlement{{Lease: v.b.Lease, Outcomes: outcomes, Release: free, Cookies: cookies, Walls: walls}})
	agree(rt, fmt.Sprintf("settle %s: %+v", v.a.Site, outcomes), len(sa), len(sb), errA, errB)
	if len(sa) == 0 {
		return
	}
	agree(rt, fmt.Sprintf("settle %s: %+v", v.a.Site, outcomes), sa[0].Outcomes, sb[0].Outcomes, nil, nil)
	a, b := sa[0].Kept, sb[0].Kept
	if a.Site != "" {
		p.tickets = append(p.tickets, both[frontier.Ticket]{a, b})
	}
	a.Score, b.Score = "", ""
	agree(rt, "settle "+v.a.Site+": kept", a, b, nil, nil)
	if d := sa[0].Due - sb[0].Due; d < -time.Millisecond || d > time.Millisecond {
		rt.Fatalf("settle %s: kept for %v and %v", v.a.Site, sa[0].Due, sb[0].Due)
	}
}

// renew brings URLs forward, or tries to.
func (p *pair) renew(rt *rapid.T) {
	site := p.site(rt)
	var list []frontier.Renewal
	for range rapid.IntRange(1, 5).Draw(rt, "n") {
		c := urlOf(site, fmt.Sprint(rapid.IntRange(0, 60).Draw(rt, "url")))
		list = append(list, frontier.Renewal{Site: site, Key: c.Fingerprint.Key, Within: time.Duration(rapid.IntRange(0, 20).Draw(rt, "within")) * time.Second})
	}
	shard := p.a.shard(site)
	agree(rt, "renew", true, true, p.a.f.Renew(p.a.ctx, shard, list), p.b.f.Renew(p.b.ctx, shard, list))
}

// expire lets leases run out that nobody extends.
func (p *pair) expire(rt *rapid.T) {
	shard := p.a.shard(p.site(rt))
	for range 7 {
		p.a.advance(lease / 6)
		p.b.advance(lease / 6)
		p.tickWith(rt, shard, frontier.TickRequest{MaxExpired: 100}, 0)
	}
	p.reap(rt)
}

func (p *pair) reap(rt *rapid.T) {
	for _, e := range p.expired {
		shard := p.a.shard(e.a.Site)
		na, errA := p.a.f.Reap(p.a.ctx, shard, []frontier.Expired{e.a})
		nb, errB := p.b.f.Reap(p.b.ctx, shard, []frontier.Expired{e.b})
		agree(rt, "reap", na, nb, errA, errB)
	}
	p.expired = p.expired[max(0, len(p.expired)-3):] // to be reaped again
}

// deadLetters compares dead letters and retries or drops one.
func (p *pair) deadLetters(rt *rapid.T) {
	shard := p.a.shard(p.site(rt))
	cause := rapid.SampledFrom([]string{"dns", "timeout", "lost"}).Draw(rt, "cause")
	la, errA := p.a.f.DeadLetters(p.a.ctx, shard, cause, 0, 100)
	lb, errB := p.b.f.DeadLetters(p.b.ctx, shard, cause, 0, 100)
	agree(rt, "letters of "+cause, plain(la), plain(lb), errA, errB)
	if len(la) == 0 {
		return
	}
	i := rapid.IntRange(0, len(la)-1).Draw(rt, "letter")
	use := rapid.SampledFrom([]func(*kit, []frontier.DeadLetter) (int, error){
		func(k *kit, d []frontier.DeadLetter) (int, error) { return k.f.RetryDead(k.ctx, shard, d) },
		func(k *kit, d []frontier.DeadLetter) (int, error) { return k.f.DropDead(k.ctx, shard, d) },
	}).Draw(rt, "use")
	for range 2 {
		na, errA := use(p.a, la[i:i+1])
		nb, errB := use(p.b, lb[i:i+1])
		agree(rt, "retried or dropped", na, nb, errA, errB)
	}
}

// plain is dead letters without their names.
func plain(letters []frontier.DeadLetter) []frontier.DeadLetter {
	out := []frontier.DeadLetter{}
	for _, l := range letters {
		l.Raw = ""
		out = append(out, l)
	}
	return out
}
