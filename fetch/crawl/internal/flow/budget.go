package flow

import (
	"sync"

	"seine/frontier"
)

// Budget is how many pages may still be fetched under the crawl's page limit,
// Settings.MaxPages. The fetchers of a crawl hold pieces of the limit (frontier.Pages):
// a page takes one of this fetcher's when its request is about to start, and gives it
// back when it is to be fetched again later. So a fleet never starts more than the
// limit, and nobody reads all shards for it.
type Budget struct {
	mu      sync.Mutex
	limit   int64 // 0 = none
	granted int64 // to this fetcher, settled ones among them
	left    int64 // granted to nobody, as last answered
	open    int64 // started and not settled
	settled int64 // since there is a limit
	seq     int64 // of the last claim
	granter int64 // seq of the claim that granted and left are the answer to
	need    chan struct{}
}

// NewBudget returns a budget without a limit.
func NewBudget() *Budget { return &Budget{need: make(chan struct{}, 1)} }

// Need receives when a further piece of the limit is to be claimed.
func (b *Budget) Need() <-chan struct{} { return b.need }

// StartPage takes one page of the limit, whose request is about to start; false when none is left of the grant.
func (b *Budget) StartPage() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit > 0 && b.settled+b.open >= b.granted {
		b.askMore()
		return false
	}
	b.open++
	if b.limit > 0 && b.granted-b.settled-b.open < b.open/2 && b.left > 0 {
		b.askMore() // before they run out
	}
	return true
}

// askMore has a further piece claimed. Called with mu.
func (b *Budget) askMore() {
	select {
	case b.need <- struct{}{}:
	default:
	}
}

// ReturnPage returns one page: it was not fetched, or will be fetched again.
func (b *Budget) ReturnPage() {
	b.mu.Lock()
	b.open--
	b.mu.Unlock()
}

// SettlePage notes that a page was fetched, for good.
func (b *Budget) SettlePage() {
	b.mu.Lock()
	b.open--
	b.settled++
	b.mu.Unlock()
}

// NextClaim is what this fetcher would hold: what it settled and has open, and so many
// more; ok is false when there is no limit.
func (b *Budget) NextClaim(limit, more int64) (c frontier.PageClaim, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit == 0 {
		b.settled = 0 // the books begin with what was settled before
	}
	if b.limit = limit; limit <= 0 {
		return c, false
	}
	b.seq++
	return frontier.PageClaim{Limit: limit, Seq: b.seq, Settled: b.settled, Want: b.settled + b.open + more}, true
}

// ApplyGrant takes in what came of a claim, unless a later one was answered before it.
func (b *Budget) ApplyGrant(c frontier.PageClaim, g frontier.PageGrant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.Seq > b.granter {
		b.granter, b.granted, b.left = c.Seq, g.Granted, g.Left
	}
}

// MayStart reports whether pages may start, or a further piece may be had.
func (b *Budget) MayStart() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit <= 0 || b.settled+b.open < b.granted {
		return true
	}
	if b.left > 0 {
		b.askMore()
	}
	return false
}

// IsSpent reports whether no page may start now, and none is left for anybody.
func (b *Budget) IsSpent() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit > 0 && b.settled+b.open >= b.granted && b.left == 0
}

// HasSpare reports whether this fetcher holds pages that it does not need now.
func (b *Budget) HasSpare() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit > 0 && b.granted > b.settled+b.open
}
