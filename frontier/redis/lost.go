package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"seine/frontier"
	"seine/shard"
)

// A master may come back without its data: it was not persistent, or its disk was
// replaced. Its shards have no epoch then, while the root of the crawl, or another shard,
// still names this creation. A deletion takes the epochs first as well, but the root says
// so. Whoever needs such a shard waits for it, as for a silent master.

// attempt calls run, which runs a script of shard k. Where the shard lost its keys it is
// called again until they are back; a client that gives up fails with ErrLostShard.
func (f *Frontier) attempt(ctx context.Context, k int, op string, run func(context.Context) error) error {
	err := run(ctx)
	if !isEmpty(err) {
		return err
	}
	waited := f.client.Await(ctx, k, op, f.keys[k].Meta(), func(ctx context.Context) error {
		if err = run(ctx); isEmpty(err) {
			err = f.emptied(ctx, k)
		}
		if errors.Is(err, shard.ErrEmpty) {
			return err
		}
		return nil
	})
	return cmp.Or(waited, err)
}

// isEmpty reports whether a script found no epoch.
func isEmpty(err error) bool {
	code, _ := shard.Code(err)
	return code == "EMPTY"
}

// emptied is why shard k has no epoch: ErrStale where the crawl is deleted, else
// ErrLostShard, which says what to do. Cost: a call, and without a root one a shard.
func (f *Frontier) emptied(ctx context.Context, k int) error {
	r, err := f.root(ctx)
	if err != nil {
		return err
	}
	if r.state == stateDeleting {
		return fmt.Errorf("%w: %s", frontier.ErrStale, f.crawl)
	}
	return f.lostShard(ctx, k)
}

// lostShard is the error of shard k, whose keys are gone.
func (f *Frontier) lostShard(ctx context.Context, k int) error {
	return loss(f.LossOf(ctx, k))
}

// loss is an error of kind ErrLostShard, for which calls wait.
type loss string

func (l loss) Error() string   { return "frontier: " + string(l) }
func (l loss) Unwrap() []error { return []error{frontier.ErrLostShard, shard.ErrEmpty} }

// LossOf says what happened to shard k, whose keys are gone, and what to do.
func (f *Frontier) LossOf(ctx context.Context, k int) string {
	master, err := f.client.Owner(ctx, f.keys[k].Meta())
	if err != nil {
		master = "its master"
	}
	return fmt.Sprintf("%s lost the keys of shard %d, other shards have theirs; the way back: `frontier bloom load DIR --shard %d` if there is a dump, `frontier check --repair`, then `frontier seed --refetch --file EXPORT` or the seeds", master, k, k)
}

// lostRoot is the error of a crawl without a root: ErrLostShard where a shard still has
// the epoch of this creation, and ErrStale where none has.
func (f *Frontier) lostRoot(ctx context.Context) error {
	epoch, _, err := survivors(ctx, f)
	if err != nil {
		return err
	}
	if f.epoch == "" || epoch != f.epoch {
		return fmt.Errorf("%w: %s", frontier.ErrStale, f.crawl)
	}
	return loss(rootLoss(ctx, f.client, f.crawl))
}

// rootLoss says that the root of a crawl is gone, and what to do.
func rootLoss(ctx context.Context, client *shard.Client, crawl string) string {
	master, err := client.Owner(ctx, shard.RootKey(crawl))
	if err != nil {
		master = "its master"
	}
	return fmt.Sprintf("%s lost the root of %s, its shards are there; `frontier create` with the same layout and settings (see FILE.yaml of an export) makes it again", master, crawl)
}

// survivors reads the epoch and the highest revision of the shards that have one. Two
// epochs are the remains of two crawls. A shard that does not answer is passed over.
func survivors(ctx context.Context, f *Frontier) (epoch string, rev int64, err error) {
	for k := range f.keys {
		h, err := f.client.Hash(ctx, k, f.keys[k].Meta())
		switch {
		case isLate(ctx, err):
			continue
		case err != nil:
			return "", 0, err
		case h["epoch"] == "":
			continue
		case epoch != "" && epoch != h["epoch"]:
			return "", 0, &shard.Error{Shard: k, Op: "create", Err: errors.New("frontier: shards of two crawls of this name are there; remove their keys")}
		}
		if f.epoch == "" { // of a creation
			var has frontier.Layout
			if err := json.Unmarshal([]byte(h["layout"]), &has); err != nil {
				return "", 0, &shard.Error{Shard: k, Op: "create", Err: fmt.Errorf("frontier: keys of an older crawl %s are there, with no layout; remove them: %w", f.crawl, err)}
			}
			if err := has.Check(f.layout); err != nil {
				return "", 0, &shard.Error{Shard: k, Op: "create", Err: fmt.Errorf("frontier: shards of %s are there, their root is not: %w", f.crawl, err)}
			}
		}
		epoch, rev = h["epoch"], max(rev, shard.Int(h["rev"]))
	}
	return epoch, rev, nil
}
