package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"seine/frontier"
	"seine/shard"
)

// unlinkBatch is how many keys one UNLINK takes.
const unlinkBatch = 500

// Delete removes a crawl with all its keys, but not a feed under a name of its
// own. It refuses with ErrLive while fetchers or seeders are announced. It
// first takes the crawl's epoch from every shard, so that a fetcher it did not
// know of stops; one that was cut off half way goes on when called again.
// Memory is freed in the background. It returns how many keys there were.
// Cost: O(all keys of each master), in steps of a thousand.
func Delete(ctx context.Context, client *shard.Client, crawl string) (int64, error) {
	if err := frontier.ValidName(crawl); err != nil {
		return 0, err
	}
	r, err := readRoot(ctx, client, crawl)
	if r == nil { // settings that cannot be read need not stay
		return 0, err
	}
	f := attach(client, crawl, r.layout, r.epoch)
	members, err := f.Members(ctx)
	if err != nil {
		return 0, err
	}
	if len(members) > 0 {
		m := members[0]
		return 0, fmt.Errorf("%w: %s has programs at work (%d), such as %s %s on %s; stop them first (a dead one leaves the list within %v)",
			frontier.ErrLive, crawl, len(members), m.Kind, m.ID, m.Host, frontier.LiveFor)
	}
	ours, err := changeRoot(ctx, client, crawl, shard.Fields{"epoch", r.epoch}, shard.Fields{"state", stateDeleting})
	if err != nil {
		return 0, err
	}
	if !ours {
		return 0, fmt.Errorf("%w: %s", frontier.ErrStale, crawl)
	}
	for k := range f.keys {
		if _, err := client.CompareAndSet(ctx, k, f.keys[k].Meta(), shard.Fields{"epoch", f.epoch}, shard.Fields{"epoch", ""}); err != nil {
			return 0, err
		}
	}
	total, err := f.remove(ctx)
	if errors.Is(err, frontier.ErrStale) {
		return total, nil // somebody else deleted it to the end
	}
	if err != nil {
		return total, err
	}
	return total, forget(ctx, client, crawl)
}

// remove removes all keys of the crawl, the root last. ErrStale says that they
// are gone, and may belong to another creation of the crawl by now.
func (f *Frontier) remove(ctx context.Context) (total int64, err error) {
	for n := int64(1); n > 0; { // a slot that moved under the scan may have hidden keys
		if _, err := f.root(ctx); err != nil {
			return total, err
		}
		n, err = f.sweep(ctx)
		total += n
		if err != nil {
			return total, err
		}
	}
	r, err := f.root(ctx)
	if err != nil {
		return total, err
	}
	for _, key := range f.ownKeys() {
		if _, err := f.client.Do(ctx, noShard, key, "UNLINK", key); err != nil {
			return total, err
		}
		total++
	}
	none := shard.Fields{}
	for name := range r.raw {
		none = append(none, name, "")
	}
	_, err = changeRoot(ctx, f.client, f.crawl, shard.Fields{"epoch", f.epoch}, none)
	return total + 1, err
}

// ownKeys are the keys that belong to no shard, but for the root.
func (f *Frontier) ownKeys() []string {
	feed := shard.FeedKey(f.crawl)
	return []string{
		feed, shard.FeedSeqKey(feed), shard.FeedLockKey(feed), shard.FeedLateKey(feed), shard.DeadFeedKey(f.crawl),
		shard.LiveKey(f.crawl), shard.LiveInfoKey(f.crawl), shard.LiveGoneKey(f.crawl), shard.LiveCrowdedKey(f.crawl), shard.LiveRoomKey(f.crawl), shard.RunsKey(f.crawl), shard.RunsInfoKey(f.crawl), shard.PagesKey(f.crawl),
		shard.RecentKey(f.crawl), shard.RecentClaimKey(f.crawl),
	}
}

// sweep scans each master once and removes what it finds of the shards.
func (f *Frontier) sweep(ctx context.Context) (int64, error) {
	seen := map[string]bool{}
	var total int64
	for k := range f.keys {
		owner, err := f.client.Owner(ctx, f.keys[k].Meta())
		if err != nil {
			return total, &shard.Error{Shard: k, Op: "delete", Err: err}
		}
		if seen[owner] {
			continue
		}
		seen[owner] = true
		n, err := f.sweepMaster(ctx, k)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// sweepMaster removes the keys of the crawl's shards that are on the master of
// shard k.
func (f *Frontier) sweepMaster(ctx context.Context, k int) (int64, error) {
	var total int64
	err := f.Pages(ctx, k, "delete", []any{"SCAN"}, []any{"MATCH", f.crawl + ":{*}:*", "COUNT", 1000}, func(page []any) error {
		n, err := f.unlink(ctx, page)
		total += n
		return err
	})
	return total, err
}

// unlink removes keys in batches of one hash tag each. What has no tag of a shard
// is not the crawl's, such as a feed that is named like its keys.
func (f *Frontier) unlink(ctx context.Context, keys []any) (int64, error) {
	tags, byTag := map[string]bool{}, map[string][]any{}
	for k := range f.keys {
		tags[f.shards.Tag(k)] = true
	}
	for _, key := range keys {
		tag, _, _ := strings.Cut(strings.TrimPrefix(shard.Text(key), f.crawl+":{"), "}")
		if tags[tag] {
			byTag[tag] = append(byTag[tag], key)
		}
	}
	var total int64
	for _, list := range byTag {
		for len(list) > 0 {
			n := min(len(list), unlinkBatch)
			reply, err := f.client.Do(ctx, noShard, shard.Text(list[0]), append([]any{"UNLINK"}, list[:n]...)...)
			if err != nil {
				return total, err
			}
			total += shard.Int(reply)
			list = list[n:]
		}
	}
	return total, nil
}
