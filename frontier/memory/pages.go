package memory

import (
	"context"
	"sync"

	"seine/frontier"
)

// pages are the books of the page limit. There is one fetcher.
type pages struct {
	mu    sync.Mutex
	begun bool
	taken int64
	held  int64
	seq   int64
}

// HoldPages settles what the fetcher holds of the page limit. The books begin
// with what the crawl settled before.
func (f *Frontier) HoldPages(ctx context.Context, c frontier.PageClaim) (frontier.PageGrant, error) {
	f.pages.mu.Lock()
	defer f.pages.mu.Unlock()
	b := &f.pages
	if !b.begun {
		stats, err := f.Stats(ctx)
		if err != nil {
			return frontier.PageGrant{}, err
		}
		for i := range stats {
			b.taken += stats[i].Done + stats[i].Dead
		}
		b.begun = true
	}
	if c.Seq > b.seq {
		left := max(0, c.Limit-b.taken)
		holds := max(c.Settled, min(c.Want, b.held+left))
		b.taken += holds - b.held
		b.held, b.seq = holds, c.Seq
	}
	return frontier.PageGrant{Held: b.held, Left: max(0, c.Limit-b.taken)}, nil
}
