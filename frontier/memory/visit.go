package memory

import (
	"context"
	"slices"
	"time"

	"seine/frontier"
)

// Visit turns tickets into visits and returns those that were granted. A
// ticket is good while its site is in its class with exactly its score.
// Cost: about a hundred ns a URL.
func (f *Frontier) Visit(ctx context.Context, k int, tickets []frontier.Ticket, limits frontier.VisitLimits) ([]frontier.Visit, error) {
	p, err := f.shard(ctx, k, "visit")
	if err != nil {
		return nil, err
	}
	start := f.cfg.Now()
	p.lock()
	var out []frontier.Visit
	safe := limits.Safe
	for i := range tickets {
		s := p.claimed(&tickets[i])
		if s == nil {
			continue
		}
		most := visitURLs(s, limits)
		if safe && s.lastChance() {
			p.move(s, s.place, 2*(p.now+1000)) // its ticket is void
			continue
		}
		l := p.grantVisit(s, f.token(), most, limits.Share)
		if l == nil {
			continue
		}
		v := visitOf(p, l, start.Add(f.cfg.Lease))
		safe = safe || v.LastChance()
		out = append(out, v)
	}
	return out, p.unlock(ctx, "visit")
}

// claimed returns the site of a ticket that is good.
func (p *shardState) claimed(t *frontier.Ticket) *site {
	s := p.sites[t.Site]
	if s == nil || t.Class > 3 || s.place != int8(t.Class) {
		return nil
	}
	if score, ok := parseScore(t.Score); !ok || score != s.score {
		return nil
	}
	p.age(s)
	if s.clock > p.now {
		return nil
	}
	return s
}

// lastChance reports whether a visit of the site may get a URL that dies if it is
// lost once more.
func (s *site) lastChance() bool {
	for _, q := range s.queues {
		if q == nil {
			continue
		}
		if _, rec := numberOf(q.peek()); entryLost(rec) >= 2 {
			return true
		}
	}
	return false
}

// visitURLs is how many URLs a visit of the site may take.
func visitURLs(s *site, limits frontier.VisitLimits) int {
	delay := s.delay
	if delay <= 0 {
		delay = limits.Delay
	}
	most := max(1, limits.URLs)
	switch {
	case delay <= 0:
		return max(most, limits.Undelayed)
	case limits.Span > 0:
		return max(1, min(most, int(limits.Span/delay)))
	}
	return most
}

// grantVisit takes up to most entries of a site, share per cent of them
// recrawls, and leases it under a token; nil when it has none that is due.
func (p *shardState) grantVisit(s *site, token string, most, share int) *lease {
	for n := 0; n < most && len(s.waits) > 0 && s.waits[0].until <= p.now; n++ {
		w := s.waits[0]
		s.waits.remove(0)
		p.dropRetry(s, w)
		p.stats.Waiting--
		p.pushBack(s, &w.entry)
	}
	l := &lease{token: token, site: s, deadline: p.now + p.f.cfg.Lease.Milliseconds()}
	if queued := most - p.reserved(s, most, share); queued > 0 {
		p.pick(l, queued)
	}
	if len(l.records) == 0 || entryLost(l.records[0]) == 0 {
		p.renew(l, most-len(l.records))
	}
	if len(l.records) == 0 {
		p.place(s)
		return nil
	}
	l.left = len(l.records)
	l.open = make([]bool, l.left)
	for i := range l.open {
		l.open[i] = true
	}
	s.round = (s.round + 1) % 8
	s.leased = l
	p.changed(s)
	p.enlist(l)
	p.place(s)
	return l
}

// enlist makes a lease known.
func (p *shardState) enlist(l *lease) {
	l.site.open++
	p.leases[l.token] = l
	p.expiry.push(l)
	p.stats.Open += int64(l.left)
}

// pick takes entries from the best class on; every eighth visit of a site
// starts with its last class.
func (p *shardState) pick(l *lease, most int) {
	s := l.site
	if s.round == 7 {
		for class := 3; class >= 0; class-- {
			if s.queues[class] != nil {
				if !p.take(l, class, max(1, most/8)) {
					return
				}
				break
			}
		}
	}
	for class := range 4 {
		if s.queues[class] != nil && !p.take(l, class, most-len(l.records)) {
			return
		}
	}
}

// take takes up to most entries of one class. An entry marked lost goes alone:
// false means that nothing may follow.
func (p *shardState) take(l *lease, class, most int) bool {
	q := l.site.queues[class]
	l.records = slices.Grow(l.records, min(most, q.n))
	l.positions = slices.Grow(l.positions, min(most, q.n))
	for n := 0; n < most && q.n > 0; n++ {
		seq, rec := numberOf(q.peek())
		lost := entryLost(rec) > 0
		if lost && len(l.records) > 0 {
			return false
		}
		l.records = append(l.records, string(rec))
		l.positions = append(l.positions, position{uint8(class), seq})
		q.pop()
		p.popped(l.site, class)
		if lost {
			return false
		}
	}
	return true
}

// visitOf is what the fetcher gets of a lease.
func visitOf(p *shardState, l *lease, deadline time.Time) frontier.Visit {
	s := l.site
	v := frontier.Visit{
		Lease: frontier.Lease{Token: l.token, Site: s.name},
		Shard: p.k, Deadline: deadline,
		Delay: s.delay, Why: s.why(), Failures: int(s.failures), First: s.clock == 0,
		Items: make([]frontier.Item, len(l.records)),
	}
	if s.extra != nil {
		v.Override, v.Cookies, v.Credentials = s.extra.override, s.extra.cookies, s.extra.auth
	}
	if row := s.wallRow(); row != nil {
		v.Walls = row.count
	}
	for i := range l.records {
		v.Items[i] = frontier.Item{Index: i + 1, Entry: l.entry(i)}
	}
	return v
}
