package crawl

import (
	"context"
	"time"

	"seine/frontier"
)

const (
	// look is how often the crawler looks at itself.
	look = 50 * time.Millisecond
	// pollEvery is how often the counters of all shards are read, pollNear when
	// the page limit is near.
	pollEvery = time.Second
	pollNear  = 100 * time.Millisecond
	// maxDoneCheck is how often an idle crawler asks at least whether the crawl has
	// ended; it begins with look.
	maxDoneCheck = time.Second
)

// watch ends the crawler when the crawl has nothing left, when it is at its page
// limit or when nothing happened for too long, and keeps what is shown about it
// current.
func (c *Crawler) watch(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	lastWork := time.Now()
	polled, judged, reported, asked := lastWork, lastWork, lastWork, lastWork
	var told troubleLog
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
				c.pollBriefly(ctx)
			}
			if now.Sub(judged) >= pollEvery {
				judged = now
				c.findBottleneck()
				told.report(c.cfg.Log, c.situation(now))
				c.rate.update(c.count.done.Get()+c.count.dead.Get(), now)
			}
			if c.cfg.Report != nil && now.Sub(reported) >= c.cfg.ReportEvery {
				reported = now
				c.cfg.Report(c.Progress())
			}
			idle := now.Sub(lastWork)
			if !c.isStopping() && now.Sub(asked) >= min(idle/4, maxDoneCheck) {
				asked = now
				if c.mayEnd(ctx, idle) {
					c.Stop()
				}
			}
		}
	}
}

// pollPause is how long the counters are good for.
func (c *Crawler) pollPause() time.Duration {
	if c.nearLimit() {
		return pollNear
	}
	return pollEvery
}

// nearLimit reports whether a fleet may reach the page limit before the next
// reading.
func (c *Crawler) nearLimit() bool {
	left, ok := c.budget.left()
	return ok && !c.cfg.Exact && left < 100*int64(c.cfg.Concurrency)
}

// pollTime bounds how long the watch waits for an answer: it has others to
// look after while a shard is silent.
const pollTime = 2 * time.Second

// pollBriefly is poll that gives up when no answer comes in time; the old reading
// stands.
func (c *Crawler) pollBriefly(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	c.pollCounters(short)
}

// pollCounters reads the counters of all shards and sets the budget from them.
func (c *Crawler) pollCounters(ctx context.Context) {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.readCounters(ctx)
}

// pollAgain is poll before borrowing close to the page limit, where an old
// reading will not do; one that began meanwhile for another shard loop will.
func (c *Crawler) pollAgain(ctx context.Context) {
	since := time.Now()
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.readAt.Before(since) {
		c.readCounters(ctx)
	}
}

// readCounters is poll under the lock.
func (c *Crawler) readCounters(ctx context.Context) {
	c.readAt = time.Now()
	mark := c.budget.mark()
	stats, err := c.cfg.Frontier.Stats(ctx)
	if err != nil && ctx.Err() != nil && c.ctx.Err() == nil {
		stats, err = c.cfg.Frontier.RecentStats(c.ctx) // of a silent shard what was known, or nothing
	}
	if err != nil {
		c.fail(ctx, err) // a bounded ctx that ran out is no failure
		return
	}
	var t frontier.ShardStats
	for i := range stats {
		s := &stats[i]
		t.Queued += s.Queued
		t.Waiting += s.Waiting
		t.Known += s.Known
		t.Open += s.Open
		t.Done += s.Done
		t.Dead += s.Dead
	}
	c.totals.Store(&t)
	c.stats.Store(&stats)
	could := c.budget.mayBorrow()
	c.budget.update(c.policy.Load().settings.MaxPages, t.Done+t.Dead, t.Open, mark)
	if !could && c.budget.mayBorrow() {
		c.notifyHungry()
	}
}

// quiet reports whether this crawler has nothing open.
func (c *Crawler) quiet() bool {
	if c.visits.Load() > 0 {
		return false
	}
	for _, l := range c.loops {
		if !l.admitter.empty() {
			return false
		}
	}
	return true
}

// mayEnd decides whether to end; idle is for how long nothing was open.
func (c *Crawler) mayEnd(ctx context.Context, idle time.Duration) bool {
	if !c.quiet() {
		return false
	}
	if c.budget.spent() && (c.cfg.Exact || c.cfg.ExitWhenDone) {
		c.pollBriefly(ctx) // what ended while the counters were read may have counted twice
		return c.quiet() && c.budget.spent()
	}
	if c.cfg.IdleTimeout > 0 && idle >= c.cfg.IdleTimeout {
		return true
	}
	if !c.cfg.ExitWhenDone {
		return false
	}
	short, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	done, err := c.cfg.Frontier.Finished(short)
	if err != nil {
		c.fail(short, err)
		return false
	}
	return done
}
