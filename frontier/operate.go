package frontier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"seine/frontier/canon"
)

// Operated is a crawl as the programs of an operator see it, wherever it is kept.
type Operated interface {
	Crawl
	Admitter
	Admin
	Counts
	Membership
	Rules
	Insight
	// KnowsSite reports whether a shard has to do with a site: URLs of it are queued, wait or
	// are leased, or it was fetched from within a day.
	KnowsSite(ctx context.Context, shard int, site string) (bool, error)
	// Stopped lists the sites that Alter has paused or blocked, by name; one that is
	// both comes twice.
	Stopped(context.Context) ([]Stop, error)
	// Began is when the crawl was created; zero is not known.
	Began(context.Context) (time.Time, error)
	// Report reads the whole state of the crawl.
	Report(context.Context) (*Report, error)
	io.Closer
}

// ShardOf is the shard of a crawl that owns a site.
func ShardOf(f Crawl, site string) int { return f.Of(canon.FingerprintOf([]byte(site), nil)) }

// EachShard calls do with some shards in turn, nil are all. A shard that does not answer
// in time, or lost its keys, is passed over; the error then is of kind ErrPartial and names it.
func EachShard(ctx context.Context, f Crawl, shards []int, do func(k int) error) error {
	if shards == nil {
		for k := range f.Shards() {
			shards = append(shards, k)
		}
	}
	var silent []error
	for _, k := range shards {
		err := do(k)
		switch {
		case err == nil:
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil, errors.Is(err, ErrLostShard):
			silent = append(silent, err)
		default:
			return err
		}
	}
	if silent == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrPartial, errors.Join(silent...))
}

// EndWalls ends the back-offs of all sites from walls, and returns of how many. A visit that
// is under way may still begin one. Shards that do not answer are passed over, as of EachShard.
// Cost: some calls for each such site.
func EndWalls(ctx context.Context, f Operated) (ended int, err error) {
	err = EachShard(ctx, f, nil, func(k int) error {
		sites, err := f.WalledSites(ctx, k)
		if err != nil {
			return err
		}
		for _, site := range sites {
			if err := f.Alter(ctx, k, site, SiteChange{EndWalls: true}); err != nil {
				return err
			}
			ended++
		}
		return nil
	})
	return ended, err
}

// CauseFeed is the cause under which refused elements of the feed are counted.
const CauseFeed = "feed"

// DeadTotals is the number of dead letters by cause, over all shards, and under
// CauseFeed that of the refused elements of the feed.
func DeadTotals(ctx context.Context, f Operated) (map[string]int64, error) {
	totals, err := DeadTotalsOf(ctx, f, nil)
	if fed, ok := f.(interface {
		DeadFeed(context.Context) (int64, error)
	}); ok && (err == nil || errors.Is(err, ErrPartial)) {
		n, failed := fed.DeadFeed(ctx)
		if n > 0 {
			totals[CauseFeed] = n
		}
		if errors.Is(failed, context.DeadlineExceeded) && ctx.Err() == nil {
			failed = fmt.Errorf("%w: %w", ErrPartial, failed)
		}
		err = errors.Join(err, failed)
	}
	return totals, err
}

// DeadTotalsOf is DeadTotals of some shards, as EachShard has them.
func DeadTotalsOf(ctx context.Context, f Operated, shards []int) (map[string]int64, error) {
	totals := map[string]int64{}
	err := EachShard(ctx, f, shards, func(k int) error {
		counts, err := f.DeadCounts(ctx, k)
		for cause, n := range counts {
			totals[cause] += n
		}
		return err
	})
	return totals, err
}

// So many dead letters are read at once, and given on: taking some out of a list
// passes all of it, so many are taken together.
const (
	deadPage  = 200
	deadBatch = 10_000
)

// WalkDead calls visit with the dead letters that a filter chooses, in batches of
// one shard and cause, the oldest first. visit says how many of a batch it took out of
// their list. Dead letters that are added meanwhile are not seen. It returns how
// many dead letters were visited. Shards that do not answer are passed over, as of EachShard.
func WalkDead(ctx context.Context, f Operated, filter DeadFilter, visit func(k int, batch []DeadLetter) (taken int, err error)) (int64, error) {
	var shards []int
	if filter.Site != "" {
		shards = []int{ShardOf(f, filter.Site)}
	}
	var visited int64
	err := EachShard(ctx, f, shards, func(k int) error {
		counts, err := f.DeadCounts(ctx, k)
		if err != nil {
			return err
		}
		for _, cause := range slices.Sorted(maps.Keys(counts)) {
			if filter.Cause != "" && cause != filter.Cause {
				continue
			}
			if err := walkCause(ctx, f, k, cause, counts[cause], filter, &visited, visit); err != nil {
				return err
			}
		}
		return nil
	})
	return visited, err
}

// walkCause is WalkDead for the first left dead letters of one cause.
func walkCause(ctx context.Context, f Admin, k int, cause string, left int64, filter DeadFilter, visited *int64, visit func(int, []DeadLetter) (int, error)) error {
	var batch []DeadLetter
	for offset, full := int64(0), false; left > 0 && !full; {
		page, err := f.DeadLetters(ctx, k, cause, offset, min(left, deadPage))
		if err != nil {
			return err
		}
		left -= int64(len(page))
		offset += int64(len(page))
		for _, letter := range page {
			if filter.Site == "" || letter.Site == filter.Site {
				batch = append(batch, letter)
			}
		}
		if room := filter.Limit - *visited; filter.Limit > 0 && int64(len(batch)) >= room {
			batch, full = batch[:room], true
		}
		if len(page) == 0 {
			left = 0 // somebody else took the rest
		}
		if len(batch) >= deadBatch || len(batch) > 0 && (left == 0 || full) {
			taken, err := visit(k, batch)
			*visited += int64(len(batch))
			offset -= int64(taken)
			if err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}
