package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"seine/frontier"
	"seine/shard"
)

// Names are those of the crawls of a Redis in order. Cost: one call.
func Names(ctx context.Context, client *shard.Client) ([]string, error) {
	short, cancel := context.WithTimeout(ctx, reportWait)
	defer cancel()
	reply, err := client.Do(short, noShard, shard.CrawlsKey(), "SMEMBERS", shard.CrawlsKey())
	if err != nil {
		return nil, fmt.Errorf("frontier: reading %s: %w", shard.CrawlsKey(), err)
	}
	var names []string
	for _, m := range shard.Array(reply) {
		names = append(names, shard.Text(m))
	}
	slices.Sort(names)
	return names, nil
}

// List describes the crawls of a Redis in order. A crawl whose root is on a master that
// does not answer is unreadable; of one that this user may not read there is the name
// alone. Cost: one call a crawl.
func List(ctx context.Context, client *shard.Client) ([]frontier.Listed, error) {
	names, err := Names(ctx, client)
	if err != nil {
		return nil, err
	}
	roots, errs := make([]*root, len(names)), make([]error, len(names))
	asking := errgroup.Group{}
	asking.SetLimit(atOnce)
	for i, name := range names {
		asking.Go(func() error {
			short, cancel := context.WithTimeout(ctx, reportWait)
			defer cancel()
			roots[i], errs[i] = readRoot(short, client, name)
			return nil
		})
	}
	asking.Wait()
	list := make([]frontier.Listed, 0, len(names))
	for i, name := range names {
		r, err := roots[i], errs[i]
		if errors.Is(err, frontier.ErrNoCrawl) {
			continue // a deletion that died before its last step
		}
		if isLate(ctx, err) {
			list = append(list, frontier.Listed{Crawl: name, State: "unreadable", Fault: "the master of " + shard.RootKey(name) + " does not answer"})
			continue
		}
		if errors.Is(err, shard.ErrForbidden) {
			list = append(list, frontier.Listed{Crawl: name, State: "forbidden", Fault: "this user of Redis may not read it"})
			continue
		}
		if errors.Is(err, errRoot) || errors.Is(err, frontier.ErrLayout) {
			list = append(list, frontier.Listed{Crawl: name, State: "unreadable", Fault: err.Error()})
			continue
		}
		if err != nil {
			return nil, err
		}
		state := r.state
		if state == stateReady && r.paused == "all" {
			state = "paused"
		}
		created, _ := time.Parse(time.RFC3339, r.raw["created"])
		list = append(list, frontier.Listed{Crawl: name, State: state, Layout: r.layout, Created: created})
	}
	return list, nil
}

// atOnce is how many calls List and others make side by side.
const atOnce = 16

// register puts a crawl on the list, forget takes it off.
func register(ctx context.Context, client *shard.Client, crawl string) error {
	_, err := client.Do(ctx, noShard, shard.CrawlsKey(), "SADD", shard.CrawlsKey(), crawl)
	return err
}

func forget(ctx context.Context, client *shard.Client, crawl string) error {
	_, err := client.Do(ctx, noShard, shard.CrawlsKey(), "SREM", shard.CrawlsKey(), crawl)
	return err
}
