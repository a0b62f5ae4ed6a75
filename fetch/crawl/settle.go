package crawl

import (
	"context"
	"slices"
	"time"

	"seine/fetch/crawl/internal/site"
	"seine/frontier"
)

// settleURL has the outcome of one URL settled.
func (c *Crawler) settleURL(v *site.Visit, o frontier.Outcome) {
	v.AddOutcome(o)
	c.shards[v.Shard].settleSoon(v)
}

// finishVisit is called by the owner of a visit when no further request starts: URLs that
// were not asked for go back, and the site is released when its last request ended.
func (c *Crawler) finishVisit(v *site.Visit) {
	requeued, last := v.Finish()
	if requeued {
		c.shards[v.Shard].settleSoon(v)
	}
	if last {
		c.releaseSite(v)
	}
}

// releaseSite releases the site of a visit: its last request has ended.
func (c *Crawler) releaseSite(v *site.Visit) {
	v.Release(time.Now())
	c.shards[v.Shard].settleSoon(v)
	c.visiting.Done()
}

// settleVisits settles visits of a shard until ctx ends.
func (c *Crawler) settleVisits(ctx context.Context, s *shard) {
	var batch []frontier.Settlement
	c.fail(ctx, s.settlements.Run(ctx, func(ctx context.Context, group []*site.Visit) error {
		batch = batch[:0]
		for _, v := range group {
			st := v.Settlement()
			if st.Release != nil {
				st.Release.Keep = !v.IsLeft() && c.keepsSites()
			}
			batch = append(batch, st)
		}
		settled, err := c.cfg.Frontier.Settle(ctx, s.Index, batch)
		if err == nil {
			c.applySettled(s, group, batch, settled)
		}
		return err
	}))
}

// applySettled drops visits whose last URL is settled and whose site is released.
func (c *Crawler) applySettled(s *shard, group []*site.Visit, batch []frontier.Settlement, settled []frontier.Settled) {
	released := false
	for i, v := range group {
		if slices.Contains(settled[i].Outcomes, false) && s.holds(v) {
			s.leases.Doubt() // or it is a repeat of a call whose reply was lost
			s.notify()
		}
		for j, ok := range settled[i].Outcomes {
			if ok {
				c.count.CountOutcome(&batch[i].Outcomes[j])
			} else {
				c.count.Gone.Inc()
			}
		}
		released = released || batch[i].Release != nil
		if kept := settled[i].Kept; kept.Site != "" {
			s.kept.Add(kept, time.Now().Add(settled[i].Due))
		}
		if v.Settled(&batch[i]) {
			c.dropVisit(v)
		}
	}
	if released {
		s.notify()
	}
}

// keepRules gives a shard rules of robots.txt until ctx ends, and then what is left,
// unless the crawler was cut short or the shard does not take it soon. What it does not
// come to, the next run asks the sites for.
func (c *Crawler) keepRules(ctx context.Context, s *shard) {
	send := func(ctx context.Context, group []frontier.OriginRules) error {
		return c.cfg.Frontier.SetRules(ctx, s.Index, group)
	}
	for ctx.Err() == nil {
		c.fail(ctx, s.rules.Run(ctx, send))
	}
	if c.ctx.Err() == nil {
		last, cancel := context.WithTimeout(c.ctx, cutTime)
		defer cancel()
		s.rules.Flush(last, send) //nolint:errcheck // the next run asks the sites
	}
}
