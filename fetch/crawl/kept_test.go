package crawl

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seine/frontier"
)

// homes notes which fetcher visited each site last.
type homes struct {
	mu              sync.Mutex
	last            map[string]int
	at              map[string]time.Time
	visits, returns [16]int // by fetcher: visits of sites that were visited before, and of those by the same
}

// homeTap is the frontier of one fetcher.
type homeTap struct {
	Frontier
	*homes
	fetcher int
	busy    atomic.Bool // it acquires no site any more
}

func (h *homeTap) Tick(ctx context.Context, k int, req frontier.TickRequest) (frontier.TickReply, error) {
	if h.busy.Load() {
		req.Want = 0
	}
	return h.Frontier.Tick(ctx, k, req)
}

func (h *homeTap) Visit(ctx context.Context, k int, tickets []frontier.Ticket, limits frontier.VisitLimits) ([]frontier.Visit, error) {
	if h.busy.Load() {
		return nil, nil
	}
	visits, err := h.Frontier.Visit(ctx, k, tickets, limits)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range visits {
		if before, ok := h.last[v.Site]; ok {
			h.homes.visits[h.fetcher]++
			if before == h.fetcher {
				h.returns[h.fetcher]++
			}
		}
		h.last[v.Site], h.at[v.Site] = h.fetcher, time.Now()
	}
	return visits, err
}

// count is how many visits there were and how many of them returned, and starts anew.
func (h *homes) count() (visits, returns int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.visits {
		visits, returns = visits+h.visits[i], returns+h.returns[i]
	}
	h.visits, h.returns = [16]int{}, [16]int{}
	return visits, returns
}

// TestSitesReturn: of six fetchers that all have room, sites return to that which had
// them. What one had that takes none any more, or that is gone, others visit.
func TestSitesReturn(t *testing.T) {
	const sites, fetchers = 60, 6
	onBoth(t, func(s *frontier.Settings) { s.Delay, s.VisitURLs = 200*time.Millisecond, 2 }, func(t *testing.T, w *web, r *rig) {
		r.cfg.Exact, r.cfg.ExitWhenDone, r.cfg.Concurrency = false, false, 50
		for i := range sites {
			w.tree(fmt.Sprintf("s%d.example", i), 3000)
			r.seed(fmt.Sprintf("http://s%d.example/p0", i))
		}
		h := &homes{last: make(map[string]int), at: make(map[string]time.Time)}
		var crawlers []*Crawler
		var taps []*homeTap
		var waits []func() error
		for i := range fetchers {
			taps = append(taps, &homeTap{Frontier: r.queue, homes: h, fetcher: i})
			r.cfg.Frontier = taps[i]
			crawlers = append(crawlers, r.crawler())
		}
		meet(crawlers)
		for _, c := range crawlers {
			waits = append(waits, r.start(c))
		}
		until(t, "nine visits of ten return", func() bool {
			h.count()
			for range 40 {
				meet(crawlers)
				time.Sleep(50 * time.Millisecond) // of two seconds that are looked at
			}
			visits, returns := h.count()
			t.Logf("%d of %d visits returned", returns, visits)
			return visits > 2*sites && 10*returns >= 9*visits
		})
		taps[0].busy.Store(true)
		crawlers[1].Stop()
		if err := waits[1](); err != nil {
			t.Fatal(err)
		}
		since := time.Now()
		until(t, "others visit the sites of those that are busy or gone", func() bool {
			meet(crawlers)
			h.mu.Lock()
			defer h.mu.Unlock()
			for site, at := range h.at {
				if at.Before(since) || h.last[site] < 2 {
					return false
				}
			}
			return len(h.at) == sites
		})
		t.Logf("after %v all sites go on elsewhere", time.Since(since).Round(time.Millisecond))
		for i, c := range crawlers {
			c.Stop()
			if err := waits[i](); err != nil {
				t.Fatal(err)
			}
		}
		w.checkGaps(t, 200*time.Millisecond)
	})
}
