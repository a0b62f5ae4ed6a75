package crawl

import (
	"context"
	"math"
	"slices"
	"time"

	"seine/fetch/crawl/internal/flow"
	"seine/fetch/crawl/internal/watch"
	"seine/frontier"
)

const (
	// look is how often the crawler looks at itself.
	look = 50 * time.Millisecond
	// pollEvery is how often the counters of all shards are read.
	pollEvery = time.Second
	// maxDoneCheck is how often an idle crawler asks at least whether the crawl has
	// ended; it begins with look.
	maxDoneCheck = time.Second
)

// watch ends the crawler when the crawl has nothing left, when it is at its page
// limit or when nothing happened for too long, and keeps its metrics and
// reports current.
func (c *Crawler) watch(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	lastWork := time.Now()
	polled, judged, reported, asked := lastWork, lastWork, lastWork, lastWork
	var troubles watch.Troubles
	limitLogged := false
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if !c.quiet() {
				lastWork = now
			}
			if now.Sub(polled) >= c.pollPause() {
				polled = now
				c.pollCounters(ctx)
			}
			if now.Sub(judged) >= pollEvery {
				judged = now
				c.findLimit(now)
				troubles.Log(c.cfg.Log, c.situation(now))
				limitLogged = c.logPageLimit(limitLogged)
				c.backOffs.Log(c.cfg.Log, now)
				c.rate.Update(c.count.Done.Get()+c.count.Dead.Get(), c.found(), now)
			}
			if c.cfg.Report != nil && now.Sub(reported) >= c.cfg.ReportEvery {
				reported = now
				c.cfg.Report(c.Progress())
			}
			idle := now.Sub(lastWork)
			if !c.isStopping() && now.Sub(asked) >= min(idle/4, maxDoneCheck) {
				asked = now
				if end := c.mayEnd(ctx, idle); end != "" {
					c.ended.Store(&end)
					c.stop()
				}
			}
		}
	}
}

// pollTime bounds how long the watch waits for an answer: it has others to
// look after while a shard is silent.
const pollTime = 2 * time.Second

// pollCounters reads the counters of all shards as somebody counted them lately.
func (c *Crawler) pollCounters(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	if err := c.readCounters(short); err != nil {
		c.fail(short, err) // a bounded ctx that ran out is no failure
	}
}

func (c *Crawler) readCounters(ctx context.Context) error {
	stats, err := c.cfg.Frontier.RecentStats(ctx)
	if err != nil {
		return err
	}
	t := frontier.Total(stats)
	c.totals.Store(&t)
	c.stats.Store(&stats)
	c.leased.Store(max(t.Leases, c.leased.Load()*9/10)) // what they held before loses weight, for many visits may end together
	return nil
}

// pollPause is how often the counters are read: less by idle fetchers of a large
// fleet.
func (c *Crawler) pollPause() time.Duration {
	if c.visits.Load() > 0 {
		return pollEvery
	}
	return c.idlePause()
}

// holdAhead is how many pages of the limit are claimed before they are needed, in
// times of Config.Concurrency.
const holdAhead = 4

// claimPages claims what this fetcher needs of the page limit, and gives back what
// it does not. While no answer comes it goes on with what it holds.
func (c *Crawler) claimPages(ctx context.Context) {
	more := int64(holdAhead * c.cfg.Concurrency)
	if c.cfg.Exact {
		more = math.MaxInt32 // there is nobody to share with
	} else if c.isStopping() || c.visits.Load() == 0 && c.budget.IsSpent() {
		more = 0
	}
	claim, ok := c.budget.NextClaim(c.policy.Load().Settings.MaxPages, more)
	if !ok {
		return
	}
	claim.Fetcher = c.cfg.ID
	short, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	could := c.budget.MayStart()
	grant, err := c.cfg.Frontier.ClaimPages(short, claim)
	if err != nil {
		c.fail(short, err)
		return
	}
	c.budget.ApplyGrant(claim, grant)
	if !could && c.budget.MayStart() {
		c.notifyHungry()
	}
}

// keepPages holds pages of the limit until ctx ends, and then gives back what was
// not used.
func (c *Crawler) keepPages(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.budget.Need():
			c.claimPages(ctx)
			flow.Sleep(ctx, nil, c.cfg.Linger) // those that ask together are answered together
		case <-tick.C:
			if limit := c.policy.Load().Settings.MaxPages; limit > 0 || c.budget.HasSpare() {
				c.claimPages(ctx)
			}
		case <-ctx.Done():
			if c.budget.HasSpare() {
				c.claimPages(context.WithoutCancel(ctx))
			}
			return
		}
	}
}

// quiet reports whether this crawler has nothing open.
func (c *Crawler) quiet() bool {
	if c.visits.Load() > 0 {
		return false
	}
	return !c.anyShard(func(s *shard) bool { return !s.admitter.IsEmpty() })
}

// mayEnd decides whether to end, and returns why, "" = not yet; idle is for how long
// nothing was open.
func (c *Crawler) mayEnd(ctx context.Context, idle time.Duration) string {
	if !c.quiet() {
		return ""
	}
	if c.budget.IsSpent() && (c.cfg.Exact || c.cfg.ExitWhenDone) && c.limitReached(ctx) {
		return EndMaxPages
	}
	if c.cfg.IdleTimeout > 0 && idle >= c.cfg.IdleTimeout {
		return EndIdle
	}
	if !c.cfg.ExitWhenDone || c.seeding.Load() {
		return ""
	}
	short, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	done, err := c.cfg.Frontier.Finished(short)
	if err != nil {
		c.fail(short, err)
		return ""
	}
	if !done {
		return ""
	}
	return EndFinished
}

// logPageLimit logs that the page limit is reached, or that there is room below it again,
// unless the last call logged it. It reports whether the limit is reached.
func (c *Crawler) logPageLimit(logged bool) bool {
	limit := c.policy.Load().Settings.MaxPages
	spent := c.budget.IsSpent() && c.quiet() && c.settledPages() >= limit
	if spent == logged {
		return spent
	}
	if !spent {
		c.cfg.Log.Info("pages are fetched again: the crawl is below its --max-pages", "max_pages", limit)
		return false
	}
	left := int64(0)
	if t := c.totals.Load(); t != nil {
		left = t.Queued + t.Waiting
	}
	c.cfg.Log.Info("the crawl has fetched its --max-pages: nothing more is fetched until `frontier set --max-pages` allows it", "max_pages", limit, "left", left)
	return true
}

// settledPages is how many pages the crawl settled, as counted last; 0 while that is
// not known or a shard was silent.
func (c *Crawler) settledPages() int64 {
	stats := c.stats.Load()
	if stats == nil || slices.ContainsFunc(*stats, func(s frontier.ShardStats) bool { return s.Silent }) {
		return 0
	}
	t := frontier.Total(*stats)
	return t.Pages()
}

// limitReached reports whether no page is left under the limit, whoever ends now. The
// shards count as many pages as the limit: what fetchers hold that died, or that may
// still come back from others, is not fetched. Nobody has sites leased any more.
func (c *Crawler) limitReached(ctx context.Context) bool {
	if c.cfg.Exact {
		return c.quiet() && c.budget.IsSpent()
	}
	c.pollCounters(ctx)
	if t := c.totals.Load(); t == nil || t.Leases > 0 || c.settledPages() < c.policy.Load().Settings.MaxPages {
		return false
	}
	c.claimPages(ctx)
	return c.quiet() && c.budget.IsSpent()
}
