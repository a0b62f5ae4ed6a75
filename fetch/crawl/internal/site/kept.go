package site

import (
	"sync"
	"sync/atomic"
	"time"

	"seine/frontier"
)

// Kept is the tickets of released sites that a shard keeps for this fetcher.
type Kept struct {
	mu      sync.Mutex
	tickets visitHeap[frontier.Ticket] // by when they may be used
	n       atomic.Int64
}

// Add adds a ticket that may be used at a time.
func (k *Kept) Add(t frontier.Ticket, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tickets.push(appointment[frontier.Ticket]{&t, at})
	k.n.Store(int64(len(k.tickets)))
}

// Take takes up to n tickets that may be used, and drops those of sites that others may
// have been named meanwhile.
func (k *Kept) Take(now time.Time, n int) (due []frontier.Ticket) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.tickets) > 0 && !k.tickets[0].at.After(now) {
		isLate := now.Sub(k.tickets[0].at) >= frontier.KeptFor
		if !isLate && len(due) == n {
			break
		}
		if t := k.tickets.pop(); !isLate {
			due = append(due, *t)
		}
	}
	k.n.Store(int64(len(k.tickets)))
	return due
}

// Until is the time until a ticket may be used, false where there is none.
func (k *Kept) Until(now time.Time) (d time.Duration, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.tickets) == 0 {
		return 0, false
	}
	return k.tickets[0].at.Sub(now), true
}

// Len is the number of tickets.
func (k *Kept) Len() int64 { return k.n.Load() }
