package ask

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"seine/frontier"
)

const (
	// sitesListed is how many sites are shown unless more are asked for.
	sitesListed = 20
	// sitesLooked is how many sites are looked at in all shards together, and in each
	// at least a page of a call.
	sitesLooked = 4000
	// shardWait is how long a shard may take to answer.
	shardWait = 3 * time.Second
)

// Sites shows sites in an order. Where more have work than may be looked at, it is
// that of a sample: the sites of each shard's lists of the first (by queue as
// Settle met it, by pages and by dead), whose counts are read anew, and others
// drawn by lot. Cost: for each shard a dozen calls, and one for each SitesMost
// sites that are looked at.
func Sites(ctx context.Context, f frontier.Operated, q SitesQuery) (*SiteList, error) {
	order, err := orderOf(q.By)
	if err != nil {
		return nil, err
	}
	settings, err := f.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	list := &SiteList{By: cmp.Or(q.By, ByQueued), Exact: true, Sites: []Site{}}
	now := time.Now()
	if q.Site != "" {
		site, err := f.Layout().SiteOf(q.Site)
		if err != nil {
			return nil, err
		}
		k := frontier.ShardOf(f, site)
		states, err := f.SiteStates(ctx, k, []string{site})
		if err != nil {
			return nil, err
		}
		list.Looked, list.Known = 1, 1
		list.Sites = append(list.Sites, siteOf(k, &states[0], settings, now))
		return list, nil
	}
	each := max(frontier.SitesMost, sitesLooked/f.Shards())
	var mu sync.Mutex
	list.Unread = eachShard(ctx, f.Shards(), func(ctx context.Context, k int) error {
		stats, states, all, err := sampleOf(ctx, f, k, each, q.By)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		list.Exact = list.Exact && all
		list.Known += stats.Ready + stats.PausedReady + stats.Leases
		list.Looked += len(states)
		for i := range states {
			list.Sites = append(list.Sites, siteOf(k, &states[i], settings, now))
		}
		return nil
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if q.By == ByWalls {
		list.Sites = slices.DeleteFunc(list.Sites, func(s Site) bool { return s.Walls == nil })
	}
	slices.SortFunc(list.Sites, func(a, b Site) int { return cmp.Or(cmp.Compare(order(&b), order(&a)), cmp.Compare(a.Site, b.Site)) })
	list.Sites = list.Sites[:min(len(list.Sites), cmp.Or(q.Limit, sitesListed))]
	return list, nil
}

// orderOf is what sites are ordered by, the largest first.
func orderOf(by string) (func(*Site) float64, error) {
	switch by {
	case "", ByQueued:
		return func(s *Site) float64 { return float64(s.Queued + s.Waiting) }, nil
	case ByRate:
		return func(s *Site) float64 { return s.Rate }, nil
	case ByDead:
		return func(s *Site) float64 { return float64(s.Dead) }, nil
	case ByDelay:
		return func(s *Site) float64 { return float64(s.Delay) }, nil
	case ByAge:
		return func(s *Site) float64 { return float64(s.Age) }, nil
	case ByWalls:
		return func(s *Site) float64 { return float64(s.Walls.Count) }, nil
	}
	return nil, fmt.Errorf("ask: sites by %q: must be one of %s", by, strings.Join(Orders, ", "))
}

// eachShard calls do for all shards side by side, and says why some have no answer.
func eachShard(ctx context.Context, shards int, do func(ctx context.Context, k int) error) (unread []string) {
	short, cancel := context.WithTimeout(ctx, shardWait)
	defer cancel()
	errs := make([]error, shards)
	var wg sync.WaitGroup
	for k := range shards {
		wg.Go(func() { errs[k] = do(short, k) })
	}
	wg.Wait()
	var faults []frontier.ShardFault
	for k, err := range errs {
		if err != nil {
			faults = append(faults, frontier.ShardFault{Shard: k, Cause: strings.TrimPrefix(err.Error(), fmt.Sprintf("shard %d: ", k))})
		}
	}
	if faults == nil {
		return nil
	}
	return frontier.FaultTexts(faults)
}

// sampleOf reads up to n sites of a shard, and those of its lists.
func sampleOf(ctx context.Context, f frontier.Operated, k, n int, by string) (stats frontier.ShardStats, states []frontier.SiteState, all bool, err error) {
	if stats, err = f.ShardStats(ctx, k); err != nil {
		return stats, nil, false, err
	}
	names, all, err := namesOf(ctx, f, k, n, by)
	if err != nil {
		return stats, nil, false, err
	}
	states, err = statesOf(ctx, f, k, names)
	return stats, states, all, err
}

// statesOf reads what shard k keeps of some sites, each once, in the order of their names.
func statesOf(ctx context.Context, f frontier.Operated, k int, names []string) (states []frontier.SiteState, err error) {
	slices.Sort(names)
	for part := range slices.Chunk(slices.Compact(names), frontier.SitesMost) {
		page, err := f.SiteStates(ctx, k, part)
		if err != nil {
			return nil, err
		}
		states = append(states, page...)
	}
	return states, nil
}

// namesOf names the sites of a shard that are looked at.
func namesOf(ctx context.Context, f frontier.Operated, k, n int, by string) (names []string, all bool, err error) {
	if by == ByWalls {
		names, err = f.WalledSites(ctx, k)
		return names[:min(len(names), n)], len(names) <= n, err
	}
	if names, all, err = f.SampleSites(ctx, k, n); err != nil {
		return nil, false, err
	}
	counters, err := f.Counters(ctx, k)
	if err != nil {
		return nil, false, err
	}
	for _, top := range [][]frontier.TopSite{counters.Pages, counters.Dead} {
		for _, t := range top {
			names = append(names, t.Site)
		}
	}
	return names, all, nil
}

// siteOf is a site as it is shown.
func siteOf(k int, s *frontier.SiteState, set *frontier.Settings, now time.Time) Site {
	site := Site{
		Site: s.Site, Shard: k, Place: string(s.Place), Queued: queued(s), Waiting: s.Waiting, Open: s.Open,
		Pages: s.Totals.Pages, Dead: s.Totals.Dead, Failures: s.Failures, Walls: wallsOf(s), Last: s.Totals.Last,
	}
	if s.Place == frontier.PlaceReady || s.Place == frontier.PlacePaused {
		due := Span(s.Due)
		site.Due = &due
	}
	site.Delay, site.Reason = delayOf(s, set)
	if !s.Totals.Since.IsZero() {
		site.Age = Span(max(now.Sub(s.Totals.Since), 0))
		site.Rate = float64(site.Pages) / max(time.Duration(site.Age).Seconds(), 1)
	}
	site.Left = Span(time.Duration(site.Queued+site.Waiting+site.Open) * time.Duration(site.Delay))
	return site
}
