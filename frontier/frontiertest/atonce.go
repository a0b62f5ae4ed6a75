package frontiertest

import (
	"fmt"
	"sync"
	"sync/atomic"

	"seine/frontier"
)

// crawlAtOnce: many fetchers that work at the same time do each URL once and
// never share a site.
func crawlAtOnce(k *kit) {
	const fetchers, hosts, pages = 6, 20, 30
	for i := range hosts {
		k.fill(fmt.Sprintf("s%d.example", i), "p", uint8(i%4), pages)
	}
	var mu sync.Mutex
	done, leased := map[string]int{}, map[string]bool{}
	note := func(f func()) {
		mu.Lock()
		defer mu.Unlock()
		f()
	}
	var left atomic.Int64
	left.Store(hosts * pages)
	var wg sync.WaitGroup
	for range fetchers {
		wg.Go(func() {
			for round := 0; left.Load() > 0 && round < 10_000; round++ {
				if err := k.fetchOnce(note, done, leased, &left); err != nil {
					k.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	same(k, "URLs left", left.Load(), 0)
	for url, n := range done {
		same(k, url, n, 1)
	}
	s := k.stats()
	same(k, "done", s.Done, hosts*pages)
	same(k, "left over", s.Queued+s.Open+s.Leases, 0)
}

// fetchOnce is one round of a fetcher in all shards.
func (k *kit) fetchOnce(note func(func()), done map[string]int, leased map[string]bool, left *atomic.Int64) error {
	k.advance(claimed)
	for shard := range k.f.Shards() {
		reply, err := k.f.Tick(k.ctx, shard, frontier.TickRequest{Want: 3})
		if err != nil {
			return err
		}
		if len(reply.Due) == 0 {
			continue
		}
		visits, err := k.f.Visit(k.ctx, shard, reply.Due, frontier.VisitLimits{URLs: 4})
		if err != nil {
			return err
		}
		var settle []frontier.Settlement
		for _, v := range visits {
			note(func() {
				if leased[v.Site] {
					k.Errorf("%s is leased to two", v.Site)
				}
				leased[v.Site] = true
				for _, it := range v.Items {
					done[it.URL]++
				}
			})
			settle = append(settle, frontier.Settlement{Lease: v.Lease, Outcomes: all(v, frontier.Done), Release: &frontier.Release{}})
			left.Add(-int64(len(v.Items)))
		}
		note(func() {
			for _, v := range visits {
				delete(leased, v.Site) // before the settlement that frees it
			}
		})
		if _, err := k.f.Settle(k.ctx, shard, settle); err != nil {
			return err
		}
	}
	return nil
}
