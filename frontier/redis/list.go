package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"seine/frontier"
	"seine/shard"
)

// List names the crawls of a Redis in order. A crawl whose root
// is on a master that does not answer is unreadable. Cost: one call a crawl.
func List(ctx context.Context, client *shard.Client) ([]frontier.Listed, error) {
	reply, err := client.Do(ctx, noShard, shard.CrawlsKey(), "SMEMBERS", shard.CrawlsKey())
	if err != nil {
		return nil, fmt.Errorf("frontier: reading %s: %w", shard.CrawlsKey(), err)
	}
	var names []string
	members, _ := reply.([]any)
	for _, m := range members {
		names = append(names, shard.Text(m))
	}
	slices.Sort(names)
	list := make([]frontier.Listed, 0, len(names))
	for _, name := range names {
		short, cancel := context.WithTimeout(ctx, reportWait)
		r, err := readRoot(short, client, name)
		cancel()
		if errors.Is(err, frontier.ErrNoCrawl) {
			continue // a deletion that died before its last step
		}
		if isLate(ctx, err) {
			list = append(list, frontier.Listed{Crawl: name, State: "unreadable", Fault: "the master of " + shard.RootKey(name) + " does not answer"})
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

// register puts a crawl on the list, forget takes it off.
func register(ctx context.Context, client *shard.Client, crawl string) error {
	_, err := client.Do(ctx, noShard, shard.CrawlsKey(), "SADD", shard.CrawlsKey(), crawl)
	return err
}

func forget(ctx context.Context, client *shard.Client, crawl string) error {
	_, err := client.Do(ctx, noShard, shard.CrawlsKey(), "SREM", shard.CrawlsKey(), crawl)
	return err
}
