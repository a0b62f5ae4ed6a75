package redis

import (
	"context"

	"seine/frontier"
	"seine/shard"
)

// ClaimPages settles what a fetcher holds of the crawl's page limit. What fetchers
// held that were killed comes back when nothing is leased any more and all others
// settled what they hold; the grant says so at once. Cost: one script call; three more
// and one a shard where the limit is reached, or the crawl had none before.
func (f *Frontier) ClaimPages(ctx context.Context, c frontier.PageClaim) (frontier.PageGrant, error) {
	grant, taken, quiet, err := f.callClaim(ctx, c)
	if err != nil || grant.Left > 0 || !quiet {
		return grant, err
	}
	if back, err := f.rebook(ctx, taken); err != nil || !back {
		return grant, err
	}
	grant, _, _, err = f.callClaim(ctx, c) // which changes nothing, as it is not above the last
	return grant, err
}

// callClaim makes a claim, and returns how many pages are taken, and whether all
// fetchers at work settled what they hold.
func (f *Frontier) callClaim(ctx context.Context, c frontier.PageClaim) (grant frontier.PageGrant, taken int64, quiet bool, err error) {
	raw, err := f.runPages(ctx, c, "")
	if code, _ := shard.Code(err); code == "UNSET" {
		var settled int64
		if settled, _, err = f.settledPages(ctx); err == nil {
			raw, err = f.runPages(ctx, c, settled)
		}
	}
	if err != nil {
		return grant, 0, false, err
	}
	reply := shard.Array(raw)
	if len(reply) != 4 {
		return grant, 0, false, Malformed(noShard, "pages", raw)
	}
	return frontier.PageGrant{Granted: shard.Int(reply[0]), Left: shard.Int(reply[1])}, shard.Int(reply[2]), shard.Int(reply[3]) == 1, nil
}

func (f *Frontier) runPages(ctx context.Context, c frontier.PageClaim, before any) (any, error) {
	return f.client.Run(ctx, noShard, pagesScript, []string{shard.PagesKey(f.crawl), shard.LiveKey(f.crawl)},
		c.Limit, c.Fetcher, c.Seq, c.Settled, c.Want, before)
}

// rebook gives back what fetchers took that are gone, if nothing is leased, and says
// whether it did.
func (f *Frontier) rebook(ctx context.Context, taken int64) (bool, error) {
	settled, leased, err := f.settledPages(ctx)
	if err != nil || leased || settled >= taken {
		return false, err
	}
	raw, err := f.client.Run(ctx, noShard, rebookScript, []string{shard.PagesKey(f.crawl), shard.LiveKey(f.crawl)}, taken, settled)
	return raw == int64(1), err
}

// settledPages is how many URLs the shards settled, and whether some are leased.
func (f *Frontier) settledPages(ctx context.Context) (settled int64, leased bool, err error) {
	stats, err := f.Stats(ctx)
	for i := range stats {
		settled += stats[i].Pages()
		leased = leased || stats[i].Leases > 0
	}
	return settled, leased, err
}
