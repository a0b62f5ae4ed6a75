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
	b, err := f.callClaim(ctx, c)
	if err != nil || b.grant.Left > 0 || !b.quiet {
		return b.grant, err
	}
	if back, err := f.rebook(ctx, b); err != nil || !back {
		return b.grant, err
	}
	b, err = f.callClaim(ctx, c) // which changes nothing, as it is not above the last
	return b.grant, err
}

// books are the books of the page limit, as an answer to a claim shows them.
type books struct {
	grant   frontier.PageGrant
	taken   int64
	quiet   bool  // all fetchers at work settled what they hold
	rebooks int64 // how often pages were freed
}

func (f *Frontier) callClaim(ctx context.Context, c frontier.PageClaim) (b books, err error) {
	raw, err := f.runPages(ctx, c, "")
	if code, _ := shard.Code(err); code == "UNSET" {
		var settled int64
		if settled, _, err = f.settledPages(ctx); err == nil {
			raw, err = f.runPages(ctx, c, settled)
		}
	}
	if err != nil {
		return b, err
	}
	reply := shard.Array(raw)
	if len(reply) != 5 {
		return b, Malformed(noShard, "pages", raw)
	}
	b.grant = frontier.PageGrant{Granted: shard.Int(reply[0]), Left: shard.Int(reply[1])}
	b.taken, b.quiet, b.rebooks = shard.Int(reply[2]), shard.Int(reply[3]) == 1, shard.Int(reply[4])
	return b, nil
}

func (f *Frontier) runPages(ctx context.Context, c frontier.PageClaim, before any) (any, error) {
	return f.client.Run(ctx, noShard, pagesScript, []string{shard.PagesKey(f.crawl), shard.LiveKey(f.crawl)},
		c.Limit, c.Fetcher, c.Seq, c.Settled, c.Want, before)
}

// rebook gives back what fetchers took that are gone, if nothing is leased, and says
// whether it did.
func (f *Frontier) rebook(ctx context.Context, seen books) (bool, error) {
	settled, leased, err := f.settledPages(ctx)
	if err != nil || leased || settled >= seen.taken {
		return false, err
	}
	raw, err := f.client.Run(ctx, noShard, rebookScript, []string{shard.PagesKey(f.crawl), shard.LiveKey(f.crawl)}, seen.taken, seen.rebooks, settled)
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
