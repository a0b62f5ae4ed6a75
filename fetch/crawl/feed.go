package crawl

import (
	"context"
	"time"

	"seine/fetch/crawl/internal/flow"
	"seine/frontier"
	"seine/frontier/canon"
)

// feeder is a frontier that takes URLs pushed from outside while the crawl runs.
type feeder interface {
	DrainFeed(ctx context.Context, admit func(context.Context, []frontier.FeedItem) (late []int, err error)) (int, error)
	FeedRefused() int64 // elements so far that are none
}

const (
	// feedPause is how long the crawler does not look at a feed that has nothing, or
	// nothing that its shards take.
	feedPause = 500 * time.Millisecond
	// feedPatience is how long elements wait for their shards before they are late.
	feedPatience = 2 * time.Second
)

// drainFeed drains the crawl's feed until ctx ends or the crawler stops.
func (c *Crawler) drainFeed(ctx context.Context) {
	f, ok := c.cfg.Frontier.(feeder)
	if !ok {
		return
	}
	parser := canon.NewParser(c.cfg.Canon)
	for ctx.Err() == nil && !c.isStopping() {
		n, err := f.DrainFeed(ctx, func(ctx context.Context, items []frontier.FeedItem) ([]int, error) {
			return c.admitFeed(ctx, parser, items)
		})
		c.count.FeedRefused.Set(uint64(f.FeedRefused()))
		if err != nil {
			c.fail(ctx, err)
			return
		}
		if n == 0 {
			flow.Sleep(ctx, c.stopping, feedPause)
		}
	}
}

// admitFeed admits elements of the feed, in the class that the crawl's rules name where an
// element names none. It returns the places of those that are late.
func (c *Crawler) admitFeed(ctx context.Context, parser *canon.Parser, items []frontier.FeedItem) (late []int, err error) {
	candidates := make([]frontier.Candidate, len(items))
	pol := c.policy.Load()
	var u canon.URL
	for i, it := range items {
		candidates[i] = it.Candidate
		if !it.HasPriority && parser.Parse(&u, []byte(it.URL)) == nil {
			candidates[i].Priority = pol.Class(&u)
		}
	}
	return c.admitOnce(ctx, candidates, feedPatience)
}
