package memory

import (
	"context"
	"strings"

	"seine/frontier"
)

// Alter changes what the shard keeps for one site. A blocked site loses its
// queue and its visits.
func (f *Frontier) Alter(ctx context.Context, k int, name string, change frontier.SiteChange) error {
	p, err := f.part(ctx, k, "alter")
	if err != nil {
		return err
	}
	p.lock()
	p.alter(name, &change)
	return p.unlock("alter")
}

func (p *part) alter(name string, change *frontier.SiteChange) {
	s := p.site(name)
	if change.Paused != nil {
		s.paused = *change.Paused
	}
	if change.Cap != nil {
		s.more().cap = max(0, *change.Cap)
	}
	if change.Override != nil {
		s.more().override = strings.Clone(*change.Override)
	}
	if change.Blocked != nil {
		s.blocked = *change.Blocked
		if s.blocked {
			p.clear(s)
		}
	}
	p.changed(s)
	p.place(s)
}

// clear drops all work of a site.
func (p *part) clear(s *site) {
	for class, q := range s.queues {
		if q != nil {
			p.stats.Queued -= int64(q.n)
			s.queues[class] = nil
		}
	}
	p.stats.Waiting -= int64(len(s.waits))
	s.waits = nil
	p.dropWork(s)
	if s.lent != nil { // a fetcher may be at it still
		s.clock = max(s.clock, p.now+1+roundUp(s.delay))
	}
	if s.open == 0 {
		return
	}
	for _, l := range p.leases {
		if l.site == s {
			p.drop(l)
		}
	}
}
