package audit

import (
	"cmp"
	"context"
	"slices"

	"seine/frontier"
	"seine/frontier/redis"
	"seine/shard"
)

// checkLeases finds leases that lease nothing and visits without a lease.
func (c *checker) checkLeases(ctx context.Context) error {
	suspects, err := c.idle(ctx, c.leases, func(open int64) { c.report.Gauges["open"] += open })
	if err != nil {
		return err
	}
	orphans, err := c.orphans(ctx, func(open int64) { c.report.Gauges["open"] += open })
	if err != nil || len(suspects)+len(orphans) == 0 {
		return err
	}
	if err := c.awaitSecondLook(ctx); err != nil {
		return err
	}
	if suspects, err = c.idle(ctx, suspects, func(int64) {}); err != nil {
		return err
	}
	for _, l := range suspects {
		c.report.fault(c.keys.Leases(), "%s of %s holds no URL", l.Token, l.Site)
		c.todo.site(l.Site).leased(l.Token)
	}
	if len(orphans) == 0 {
		return nil
	}
	clear(c.leased) // the first look at them was before
	err = c.members(ctx, c.keys.Leases(), func(m string) error {
		c.leased[redis.LeaseOf(m).Token] = true
		return nil
	})
	if err != nil {
		return err
	}
	clear(c.visits)
	for _, token := range orphans {
		c.visits[token] = true
	}
	if orphans, err = c.orphans(ctx, func(int64) {}); err != nil {
		return err
	}
	c.reportOrphans(orphans)
	return nil
}

// idle are those of some leases that lease nothing; counted gets what the others
// have open.
func (c *checker) idle(ctx context.Context, leases []frontier.Lease, counted func(open int64)) (idle []frontier.Lease, err error) {
	for page := range slices.Chunk(leases, checkPage) {
		var keys []string
		var args []any
		for _, l := range page {
			keys = append(keys, c.keys.Site(l.Site), c.keys.Visit(l.Token))
			args = append(args, redis.MemberOf(l))
		}
		raw, err := c.f.Call(ctx, c.k, leasesScript, keys, args)
		if err != nil {
			return nil, err
		}
		reply := shard.Array(raw)
		if len(reply) != len(page) {
			return nil, redis.Malformed(c.k, "check", raw)
		}
		for i, l := range page {
			r := shard.Array(reply[i])
			if len(r) != 3 {
				return nil, redis.Malformed(c.k, "check", raw)
			}
			open, _ := r[2].(int64)
			counted(open)
			if shard.Text(r[0]) != "" && open == 0 && shard.Text(r[1]) != l.Token {
				idle = append(idle, l)
			}
		}
	}
	return idle, nil
}

// orphans are the visits that have URLs open and no lease.
func (c *checker) orphans(ctx context.Context, counted func(open int64)) (orphans []string, err error) {
	for token := range c.visits {
		if c.leased[token] {
			continue
		}
		n, err := c.length(ctx, "HLEN", c.keys.Visit(token))
		if err != nil {
			return nil, err
		}
		counted(n)
		if n > 0 {
			orphans = append(orphans, token)
		}
	}
	slices.Sort(orphans)
	return orphans, nil
}

// reportOrphans tells of visits without a lease and finds the sites they are of:
// those that name them or else, in one pass over all, those whose suffix they bear.
func (c *checker) reportOrphans(tokens []string) {
	bySuffix := make(map[string]string) // the site of each
	for _, token := range tokens {
		if c.holders[token] == "" {
			bySuffix[redis.SuffixOf(token)] = ""
		}
	}
	if len(bySuffix) > 0 {
		for site := range c.sites {
			suffix := redis.SiteSuffix(site)
			if _, ok := bySuffix[suffix]; ok {
				bySuffix[suffix] = site
			}
		}
	}
	for _, token := range tokens {
		key, site := c.keys.Visit(token), cmp.Or(c.holders[token], bySuffix[redis.SuffixOf(token)])
		if site == "" {
			c.report.fault(key, "open without a lease, of a site that nothing names any more: queue what it holds with frontier seed --refetch, then delete the key")
			continue
		}
		c.report.fault(key, "open without a lease, of %s", site)
		c.todo.site(site).leased(token)
	}
}

// checkDead counts the dead letters.
func (c *checker) checkDead(ctx context.Context) error {
	for cause := range c.causes {
		n, err := c.length(ctx, "LLEN", c.keys.Dead(cause))
		if err != nil {
			return err
		}
		c.causes[cause] = n
		c.report.Gauges["dead"] += n
	}
	return nil
}
