package memory

import (
	"context"
	"strings"

	"seine/frontier"
)

// Alter changes what the shard keeps for one site. A blocked site loses its
// queue and its visits.
func (f *Frontier) Alter(ctx context.Context, k int, name string, change frontier.SiteChange) error {
	p, err := f.shard(ctx, k, "alter")
	if err != nil {
		return err
	}
	p.lock()
	p.alter(name, &change)
	return p.unlock(ctx, "alter")
}

func (p *shardState) alter(name string, change *frontier.SiteChange) {
	s := p.site(name)
	if change.Paused != nil {
		s.paused = *change.Paused
		p.stop(s, 0, s.paused, change.Reason)
	}
	if change.Cap != nil {
		s.more().cap = max(0, *change.Cap)
	}
	if change.Override != nil {
		s.more().override = strings.Clone(*change.Override)
	}
	if change.Credentials != nil {
		s.more().auth = strings.Clone(*change.Credentials)
	}
	if change.EndWalls {
		p.endWalls(s, p.now+1+roundUp(s.delay))
	}
	if change.Blocked != nil {
		s.blocked = *change.Blocked
		p.stop(s, 1, s.blocked, change.Reason)
		if before := p.stats.Blocked; s.blocked {
			if p.clear(s); p.stats.Blocked > before {
				p.dropped(s, frontier.DropBlock)
			}
		}
	}
	p.changed(s)
	p.place(s)
}

// stop notes since when and why a site is paused or blocked, or no more. One that
// is already keeps its time.
func (p *shardState) stop(s *site, which int, on bool, reason string) {
	if !on {
		if s.extra != nil {
			s.extra.stops[which] = stop{}
		}
		return
	}
	why := &s.more().stops[which]
	if why.since == 0 {
		why.since = p.now
	}
	why.reason = strings.Clone(reason)
}

// dropped notes which verb dropped URLs of a site.
func (p *shardState) dropped(s *site, verb string) { s.more().stops[2] = stop{p.now, verb} }

// clear drops all work of a site, and counts the URLs.
func (p *shardState) clear(s *site) {
	for class, q := range s.queues {
		if q != nil {
			p.stats.Queued -= int64(q.n)
			p.stats.Blocked += int64(q.n)
			s.queues[class] = nil
		}
	}
	p.stats.Waiting -= int64(len(s.waits))
	p.stats.Blocked += int64(len(s.waits))
	s.waits = nil
	if s.recrawl != nil {
		p.stats.Recrawls -= int64(len(s.recrawl.due))
		s.recrawl = nil
	}
	p.dropWork(s)
	delete(p.walled, s.name)
	if s.leased != nil { // a fetcher may be at it still
		s.clock = max(s.clock, p.now+1+roundUp(s.delay))
	}
	if s.open == 0 {
		return
	}
	for _, l := range p.leases {
		if l.site == s {
			p.stats.Blocked += int64(l.left)
			p.drop(l)
		}
	}
}
