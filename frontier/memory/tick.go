package memory

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"seine/frontier"
)

// lease is one visit that is out.
type lease struct {
	token     string
	site      *site
	deadline  int64 // milliseconds
	pos       int
	records   []string   // entries in stored form, by index - 1: there are many visits, and few entries are asked for again
	positions []position // where they are in the store
	open      []bool     // not yet settled
	left      int        // number of them
}

// entry reads one of the lease.
func (l *lease) entry(at int) frontier.Entry { return decodeEntry(l.records[at], l.site.name) }

func (l *lease) before(x *lease) bool {
	return l.deadline < x.deadline || l.deadline == x.deadline && l.token < x.token
}
func (l *lease) moved(i int) { l.pos = i }

// Tick extends leases, names due sites and expired leases. Cost: O(log sites)
// for each ticket, O(log leases) for each extension.
func (f *Frontier) Tick(ctx context.Context, k int, req frontier.TickRequest) (frontier.TickReply, error) {
	p, err := f.shard(ctx, k, "tick")
	if err != nil {
		return frontier.TickReply{}, err
	}
	p.lock()
	defer p.mu.Unlock()
	leased := f.cfg.Lease.Milliseconds()
	jumped := p.skipClock(req)
	if p.now-p.tick > leased/3 {
		p.quiet = p.now + leased // fetchers may have been cut off: let them come back first
	}
	p.tick = p.now
	reply := frontier.TickReply{Rev: f.settings.Load().Rev, Paused: p.stats.Paused, ClockJump: jumped, Now: p.now}
	for _, l := range req.Extend {
		if mine := p.lease(l); mine != nil {
			mine.deadline = p.now + leased
			p.expiry.fix(mine.pos)
		} else {
			reply.Gone = append(reply.Gone, l)
		}
	}
	if p.now >= p.quiet {
		reply.Expired = p.expired(req.MaxExpired)
	}
	if !reply.Paused {
		reply.Due = p.due(req.Want, roundUp(req.Patience))
	}
	reply.Next = p.next(roundUp(req.Patience))
	p.forget(1000)
	return reply, nil
}

// skipClock takes back what the clock was set forward by since anyone's last tick, as
// the caller's clock tells. Clocks may differ by a hundredth.
func (p *shardState) skipClock(req frontier.TickRequest) time.Duration {
	if req.MaxLag <= 0 || req.LastNow <= 0 {
		return 0
	}
	step := p.now - max(p.tick, req.LastNow+roundUp(req.Elapsed))
	if step <= roundUp(req.MaxLag)+roundUp(req.Elapsed)/100 {
		return 0
	}
	p.clockJump += step
	p.now -= step
	longest := p.now + p.f.cfg.Lease.Milliseconds()
	for _, l := range p.leases {
		if l.deadline > longest {
			l.deadline = longest
			p.expiry.fix(l.pos)
		}
	}
	return time.Duration(step) * time.Millisecond
}

// lease finds the lease of that token and site.
func (p *shardState) lease(l frontier.Lease) *lease {
	if found := p.leases[l.Token]; found != nil && found.site.name == l.Site {
		return found
	}
	return nil
}

// expired names up to most leases past their deadline, the oldest first.
func (p *shardState) expired(most int) []frontier.Expired {
	if most <= 0 {
		return nil
	}
	var late []*lease
	p.expiry.each(0, func(l *lease) bool { return l.deadline < p.now }, func(l *lease) { late = append(late, l) })
	slices.SortFunc(late, func(a, b *lease) int {
		if a.deadline != b.deadline {
			return int(a.deadline - b.deadline)
		}
		return strings.Compare(a.token, b.token)
	})
	var out []frontier.Expired
	for _, l := range late[:min(most, len(late))] {
		out = append(out, frontier.Expired{Lease: frontier.Lease{Token: l.token, Site: l.site.name}, Deadline: l.deadline})
	}
	return out
}

// due claims up to want sites that have been due for ripe ms: half of them from the best class that has
// any, the rest by time, so that no class starves. The odd one is by turns of
// the one half and the other.
func (p *shardState) due(want int, ripe int64) []frontier.Ticket {
	if want <= 0 {
		return nil
	}
	var out []frontier.Ticket
	claim := 2*(p.now+p.f.cfg.Claim.Milliseconds()) + 1
	text := formatScore(claim)
	take := func(class int) {
		s := p.heaps[class][0]
		p.move(s, int8(class), claim)
		out = append(out, frontier.Ticket{Site: s.name, Class: uint8(class), Score: text})
	}
	half := (want + p.round%2) / 2
	for class := range 4 {
		if !p.isDue(class, ripe) {
			continue
		}
		for len(out) < half && p.isDue(class, ripe) {
			take(class)
		}
		break
	}
	for len(out) < want {
		first := -1
		for class := range 4 {
			if p.isDue(class, ripe) && (first < 0 || p.heaps[class][0].score < p.heaps[first][0].score) {
				first = class
			}
		}
		if first < 0 {
			break
		}
		take(first)
	}
	if len(out) > 0 {
		p.round++
	}
	return out
}

// isDue reports whether a site of a class has been due for ripe ms.
func (p *shardState) isDue(class int, ripe int64) bool {
	h := p.heaps[class]
	return len(h) > 0 && h[0].score <= 2*(p.now-ripe)
}

// next is the time until the first site has been due for ripe ms, rounded up, negative when none waits.
func (p *shardState) next(ripe int64) time.Duration {
	first := int64(-1)
	for class := range 4 {
		if h := p.heaps[class]; len(h) > 0 && (first < 0 || h[0].score < first) {
			first = h[0].score
		}
	}
	if first < 0 {
		return -1
	}
	return max(0, time.Duration((first-2*(p.now-ripe)+1)/2)*time.Millisecond)
}

// formatScore and parseScore turn half milliseconds into the text of a ticket
// and back.
func formatScore(score int64) string {
	return strconv.FormatFloat(float64(score)/2, 'f', 1, 64)
}

func parseScore(text string) (int64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return int64(v * 2), err == nil
}
