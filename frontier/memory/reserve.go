package memory

import (
	"context"
	"time"

	"seine/frontier"
)

// reserved is what a site remembers of times that it gave to those who work on
// other sites. Nothing of it is kept on disk but the site's clock.
type reserved struct {
	until int64 // milliseconds: when the last of those who were sent away asks again
	visit uint8 // site.round when times were given last
	times int   // since then
}

// Reserve asks the clock of a site for a time at which one request may be made to
// it, by whoever works on another site. What is refused names when to ask again:
// those who wait are spread over the times that the site has.
func (f *Frontier) Reserve(ctx context.Context, k int, req frontier.ReserveRequest) (frontier.Reservation, error) {
	p, err := f.shard(ctx, k, "reserve")
	if err != nil {
		return frontier.Reservation{}, err
	}
	p.lock()
	r := p.reserve(p.site(req.Site), req)
	return r, p.unlock(ctx, "reserve")
}

func (p *shardState) reserve(s *site, req frontier.ReserveRequest) frontier.Reservation {
	if s.paused || s.blocked {
		return frontier.Reservation{Stopped: true, Wait: frontier.ReserveRetry}
	}
	if s.reserved == nil {
		s.reserved = &reserved{}
	}
	r := s.reserved
	if r.visit != s.round {
		r.visit, r.times = s.round, 0
	}
	delay := s.delay
	if delay <= 0 {
		delay = req.Delay
	}
	due, each := max(s.clock, p.now), roundUp(req.Slack)+roundUp(delay)
	granted := s.leased == nil && due <= p.now+roundUp(req.Ahead) && (r.times < frontier.ReservedMost || !p.waits(s))
	if granted {
		s.clock = due + each
		r.times++
		p.changed(s)
		p.place(s)
	} else {
		due = min(max(r.until, due, p.now+frontier.ReserveRetry.Milliseconds()), p.now+frontier.ReserveMaxWait.Milliseconds())
		r.until = due + each
		if s.place == nowhere { // it may be new
			p.place(s)
		}
	}
	return frontier.Reservation{Granted: granted, Wait: time.Duration(due-p.now) * time.Millisecond}
}

// waits reports whether the site has URLs that could be asked for.
func (p *shardState) waits(s *site) bool {
	return s.best() < 4 || s.firstWait() <= p.now
}
