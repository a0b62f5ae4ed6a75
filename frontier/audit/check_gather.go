package audit

import (
	"context"
	"errors"
	"strings"
	"time"

	"seine/frontier"
	"seine/frontier/redis"
	"seine/shard"
)

// gatherTries is how often gather looks for the node that has the shard.
const gatherTries = 50

// gather collects what there is by the names of the shard's keys and the members
// of its zsets. SCAN names no key, so a node that lost the slot does not redirect,
// and one that is losing it shows a part. So a script, which waits while a slot
// moves, runs before and after, and the shard must have stayed where it was.
func (c *checker) gather(ctx context.Context) error {
	for try := range gatherTries {
		if err := c.settled(ctx); err != nil {
			return err
		}
		place := c.client.Epoch(c.k)
		c.forget()
		found, err := c.scan(ctx)
		if err == nil && found {
			err = c.zsets(ctx)
		}
		if err == nil {
			err = c.settled(ctx)
		}
		if err != nil || found && c.client.Epoch(c.k) == place {
			return err
		}
		select {
		case <-ctx.Done():
			return &shard.Error{Shard: c.k, Op: "check", Err: context.Cause(ctx)}
		case <-time.After(time.Duration(try) * 10 * time.Millisecond):
		}
	}
	return &shard.Error{Shard: c.k, Op: "check", Err: errors.New("frontier: the shard keeps moving to other masters; try later")}
}

// settled waits until the shard's slot is not moving.
func (c *checker) settled(ctx context.Context) error {
	_, err := c.f.Call(ctx, c.k, checkScript, nil, nil)
	return err
}

// forget drops what an earlier try gathered.
func (c *checker) forget() {
	c.leases = nil
	clear(c.sites)
	clear(c.visits)
	clear(c.leased)
	clear(c.causes)
}

// scan collects sites, tokens and causes, and says whether the node has the shard.
func (c *checker) scan(ctx context.Context) (found bool, err error) {
	meta := c.keys.Meta()
	prefix := strings.TrimSuffix(meta, "meta")
	err = c.pages(ctx, []any{"SCAN"}, []any{"MATCH", c.keys.Pattern(), "COUNT", 10 * checkPage}, func(page []any) error {
		for _, key := range page {
			found = found || shard.Text(key) == meta
			kind, name, _ := strings.Cut(strings.TrimPrefix(shard.Text(key), prefix), ":")
			switch kind {
			case "s", "w":
				c.site(name)
			case "q":
				c.site(name[:max(0, strings.LastIndexByte(name, ':'))])
			case "v":
				c.visits[name] = true
			case "dead":
				c.causes[name] = 0
			}
		}
		return nil
	})
	return found, err
}

// site notes a site; its name no longer holds on to the key it is part of.
func (c *checker) site(name string) {
	if !c.sites[name] {
		c.sites[strings.Clone(name)] = true
	}
}

// zsets collects the sites of ready, held and leases: one without any key of
// its own is a fault that checkSites finds.
func (c *checker) zsets(ctx context.Context) error {
	seen := make(map[frontier.Lease]bool)
	for z, key := range append([]string{c.keys.Leases()}, c.places()...) {
		err := c.members(ctx, key, func(site string) error {
			if z == 0 {
				l := redis.LeaseOf(site)
				if !seen[l] {
					seen[l], c.leased[l.Token] = true, true
					c.leases = append(c.leases, l)
				}
				site = l.Site
			}
			c.site(site)
			return nil
		})
		if err != nil {
			return err
		}
	}
	c.report.Sites = int64(len(c.sites))
	c.report.Leases = int64(len(c.leases))
	return nil
}

// places are the zsets that a site may stand in: ready:0 to ready:3, held.
func (c *checker) places() []string {
	return []string{c.keys.Ready(0), c.keys.Ready(1), c.keys.Ready(2), c.keys.Ready(3), c.keys.Held()}
}

// members calls each with the members of a zset; some may come twice.
func (c *checker) members(ctx context.Context, key string, each func(member string) error) error {
	return c.pages(ctx, []any{"ZSCAN", key}, []any{"COUNT", checkPage}, func(page []any) error {
		for i := 0; i+1 < len(page); i += 2 {
			if err := each(shard.Text(page[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// do runs a plain command on the master of the shard.
func (c *checker) do(ctx context.Context, args ...any) (any, error) {
	return c.client.Do(ctx, c.k, c.keys.Meta(), args...)
}

// length is the reply of a command that counts.
func (c *checker) length(ctx context.Context, command, key string) (int64, error) {
	raw, err := c.do(ctx, command, key)
	n, _ := raw.(int64)
	return n, err
}

// pages is Frontier.pages for the shard of the check.
func (c *checker) pages(ctx context.Context, head, tail []any, each func(page []any) error) error {
	return c.f.Pages(ctx, c.k, "check", head, tail, each)
}
