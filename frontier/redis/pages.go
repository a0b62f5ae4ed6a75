package redis

import (
	"context"

	"seine/frontier"
	"seine/shard"
)

// HoldPages settles what a fetcher holds of the crawl's page limit. What fetchers
// held that were killed comes back when nothing is lent any more and all others
// settled what they hold. Cost: one script call; two more and one a shard where
// the limit is reached, or the crawl had none before.
func (f *Frontier) HoldPages(ctx context.Context, c frontier.PageClaim) (frontier.PageGrant, error) {
	raw, err := f.claimPages(ctx, c, "")
	if err == nil && raw == "!unset" {
		var settled int64
		if settled, _, err = f.settledPages(ctx); err == nil {
			raw, err = f.claimPages(ctx, c, settled)
		}
	}
	if err != nil {
		return frontier.PageGrant{}, err
	}
	reply := shard.Array(raw)
	if len(reply) != 4 {
		return frontier.PageGrant{}, Malformed(noShard, "pages", raw)
	}
	grant := frontier.PageGrant{Held: shard.Int(reply[0]), Left: shard.Int(reply[1])}
	taken, quiet := shard.Int(reply[2]), shard.Int(reply[3]) == 1
	if grant.Left > 0 || !quiet {
		return grant, nil
	}
	return grant, f.rebook(ctx, taken)
}

func (f *Frontier) claimPages(ctx context.Context, c frontier.PageClaim, before any) (any, error) {
	return f.client.Run(ctx, noShard, pagesScript, []string{shard.PagesKey(f.crawl), shard.LiveKey(f.crawl)},
		c.Limit, c.Fetcher, c.Seq, c.Settled, c.Want, before)
}

// rebook gives back what fetchers took that are gone, if nothing is lent.
func (f *Frontier) rebook(ctx context.Context, taken int64) error {
	settled, lent, err := f.settledPages(ctx)
	if err != nil || lent || settled >= taken {
		return err
	}
	_, err = f.client.Run(ctx, noShard, rebookScript, []string{shard.PagesKey(f.crawl), shard.LiveKey(f.crawl)}, taken, settled)
	return err
}

// settledPages is how many URLs the shards settled, and whether some are lent.
func (f *Frontier) settledPages(ctx context.Context) (settled int64, lent bool, err error) {
	stats, err := f.Stats(ctx)
	for i := range stats {
		settled += stats[i].Done + stats[i].Dead
		lent = lent || stats[i].Leases > 0
	}
	return settled, lent, err
}
