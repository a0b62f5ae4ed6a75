package memory

import (
	"context"
	"sync"

	"seine/frontier"
)

// pages are the books of the page limit.
type pages struct {
	mu    sync.Mutex
	begun bool
	taken int64
	by    map[string]grant // fetcher
}

type grant struct{ granted, seq int64 }

// ClaimPages settles what a fetcher holds of the page limit. The books begin with
// what the crawl settled before, and end with this process.
func (f *Frontier) ClaimPages(ctx context.Context, c frontier.PageClaim) (frontier.PageGrant, error) {
	f.pages.mu.Lock()
	defer f.pages.mu.Unlock()
	b := &f.pages
	if !b.begun {
		stats, err := f.Stats(ctx)
		if err != nil {
			return frontier.PageGrant{}, err
		}
		t := frontier.Total(stats)
		b.begun, b.taken, b.by = true, t.Pages(), make(map[string]grant)
	}
	h := b.by[c.Fetcher]
	if c.Seq > h.seq {
		left := max(0, c.Limit-b.taken)
		holds := max(c.Settled, min(c.Want, h.granted+left))
		b.taken += holds - h.granted
		h = grant{holds, c.Seq}
		b.by[c.Fetcher] = h
	}
	return frontier.PageGrant{Granted: h.granted, Left: max(0, c.Limit-b.taken)}, nil
}
