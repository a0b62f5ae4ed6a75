package simulate

import (
	"time"

	"seine/frontier"
)

// pages are the books of the crawl's page limit, by the rules of frontier/redis.
type pages struct {
	w     *world
	taken int64
	freed int64 // how often pages were
	by    map[string]*share
}

// share is a fetcher's part of the limit.
type share struct{ granted, settled, seq int64 }

// claimed is the answer to a claim.
type claimed struct {
	grant frontier.PageGrant
	taken int64
	freed int64
	quiet bool // all granted pages are settled, or granted to fetchers that are gone
}

func (p *pages) claim(c frontier.PageClaim) claimed {
	b := p.by[c.Fetcher]
	if b == nil {
		b = &share{}
	}
	live, left := p.w.live(), max(0, c.Limit-p.taken)
	if c.Seq > b.seq {
		n := int64(max(1, len(live)))
		piece := (left + 2*n - 1) / (2 * n)
		granted := max(c.Settled, min(c.Want, b.granted+min(piece, left)))
		p.taken += granted - b.granted
		b.granted, b.settled, b.seq = granted, c.Settled, c.Seq
		p.by[c.Fetcher] = b
	}
	quiet := p.taken >= c.Limit
	for id, b := range p.by {
		quiet = quiet && (b.granted <= b.settled || !live[id])
	}
	return claimed{frontier.PageGrant{Granted: b.granted, Left: max(0, c.Limit-p.taken)}, p.taken, p.freed, quiet}
}

func (p *pages) rebook(seen claimed, settled int64) bool {
	if p.taken != seen.taken || p.freed != seen.freed {
		return false
	}
	p.freed++
	live := p.w.live()
	p.taken = min(p.taken, settled)
	for id := range p.by {
		if !live[id] {
			delete(p.by, id)
		}
	}
	return true
}

// live are the fetchers that are at work, or were until lately.
func (w *world) live() map[string]bool {
	live := make(map[string]bool)
	for id, until := range w.present {
		if w.q.now() < until {
			live[id] = true
		}
	}
	return live
}

// announce has a fetcher be among those at work.
func (w *world) announce(f *fetcher) { w.present[f.id] = w.q.now() + liveFor }

// liveFor is how long a fetcher is there after its last word.
const liveFor = 20 * time.Second
