package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"seine/frontier"
	"seine/shard"
)

// Refresh reads the settings again. Call it when Tick answers another
// revision. Cost: one HGETALL.
func (f *Frontier) Refresh(ctx context.Context) (*frontier.Settings, error) {
	r, err := f.root(ctx)
	if err != nil {
		return nil, err
	}
	f.settings.Store(&r.settings)
	return &r.settings, nil
}

// root reads the root of this creation of the crawl; another one, or none, is
// ErrStale.
func (f *Frontier) root(ctx context.Context) (*root, error) {
	r, err := readRoot(ctx, f.client, f.crawl)
	if errors.Is(err, frontier.ErrNoCrawl) {
		return nil, f.lostRoot(ctx)
	}
	if err != nil {
		return nil, err
	}
	if r.epoch != f.epoch {
		return nil, fmt.Errorf("%w: %s", frontier.ErrStale, f.crawl)
	}
	return r, nil
}

// Set applies change to the settings, stores them under a new revision and
// copies the revision to every shard, where running fetchers see it with their
// next tick; one that does not answer follows later. change may run more than once. Cost:
// two calls a shard, side by side.
func (f *Frontier) Set(ctx context.Context, change func(*frontier.Settings) error) (before, after *frontier.Settings, err error) {
	err = f.alterRoot(ctx, func(r *root) (shard.Fields, error) {
		old := r.settings
		before = &old
		if err := change(&r.settings); err != nil {
			return nil, err
		}
		if err := r.settings.Validate(); err != nil {
			return nil, err
		}
		was, err := json.Marshal(old)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(r.settings)
		if err != nil || string(was) == string(text) {
			return nil, err
		}
		return shard.Fields{"settings", string(text)}, nil
	})
	if err != nil {
		return nil, nil, err
	}
	return before, f.Settings(), nil
}

// Pause stops or resumes leasing: of one shard, or of the whole crawl when k is
// negative. Resuming the crawl resumes its shards too. What is leased goes on to
// its end; admission goes on. It takes effect with the next tick of each fetcher.
func (f *Frontier) Pause(ctx context.Context, k int, paused bool) error {
	if k >= f.layout.Shards {
		return fmt.Errorf("frontier: %s has shards 0 to %d, there is no shard %d", f.crawl, f.layout.Shards-1, k)
	}
	return f.alterRoot(ctx, func(r *root) (shard.Fields, error) {
		next := pausedWith(r, k, paused)
		if next == r.paused {
			return nil, nil
		}
		return shard.Fields{"paused", next}, nil
	})
}

// pausedWith is the field paused of a root after shard k (all: negative) was
// paused or resumed.
func pausedWith(r *root, k int, paused bool) string {
	switch {
	case k < 0 && paused:
		return "all"
	case k < 0:
		return ""
	}
	var list []string
	for i := range r.layout.Shards {
		if i == k && paused || i != k && r.pausedIn(i) {
			list = append(list, strconv.Itoa(i))
		}
	}
	if len(list) == r.layout.Shards {
		return "all"
	}
	return strings.Join(list, ",")
}

// alterRoot changes the root under its revision until nobody was faster, then
// publishes the revision. A change of no fields still publishes: what an
// earlier, broken call left undone is done then.
func (f *Frontier) alterRoot(ctx context.Context, change func(*root) (shard.Fields, error)) error {
	r, err := f.root(ctx)
	for err == nil {
		var set shard.Fields
		if set, err = change(r); err != nil {
			return err
		}
		if set == nil {
			break
		}
		rev := strconv.FormatInt(r.rev, 10)
		set = append(set, "rev", strconv.FormatInt(r.rev+1, 10))
		var done bool
		if done, err = changeRoot(ctx, f.client, f.crawl, shard.Fields{"epoch", f.epoch, "rev", rev, "state", r.state}, set); err != nil {
			return err
		}
		// A refusal may be that of a repeat whose first reply was lost.
		if r, err = f.root(ctx); err == nil && (done || r.holds(set)) {
			break
		}
	}
	if err != nil {
		return err
	}
	f.settings.Store(&r.settings)
	return f.publish(ctx, r)
}

// publishWait is how long a change waits for shards that do not answer. They
// follow with the first tick of any fetcher that they answer.
const publishWait = 6 * time.Second

// publish copies revision and pause of the root to every shard that has an
// older revision, side by side.
func (f *Frontier) publish(ctx context.Context, r *root) error {
	short, cancel := context.WithTimeout(ctx, publishWait)
	defer cancel()
	errs := make([]error, len(f.keys))
	var wg sync.WaitGroup
	for k := range f.keys {
		wg.Go(func() { errs[k] = f.publishTo(short, k, r) })
	}
	wg.Wait()
	for k, err := range errs {
		if isLate(ctx, err) {
			errs[k] = nil // silent, which the client reported
		}
	}
	return errors.Join(errs...)
}

// publishTo is publish to shard k.
func (f *Frontier) publishTo(ctx context.Context, k int, r *root) error {
	for {
		h, err := f.client.Hash(ctx, k, f.keys[k].Meta())
		if err != nil {
			return err
		}
		if h["epoch"] == "" {
			return nil // a shard that lost its keys: a repair copies the root
		}
		if h["epoch"] != f.epoch {
			return &shard.Error{Shard: k, Op: "publish", Err: frontier.ErrStale}
		}
		if has, err := strconv.ParseInt(h["rev"], 10, 64); err == nil && has >= r.rev {
			return nil
		}
		paused := ""
		if r.pausedIn(k) {
			paused = "1"
		}
		if _, err := f.client.CompareAndSet(ctx, k, f.keys[k].Meta(),
			shard.Fields{"epoch", h["epoch"], "rev", h["rev"]},
			shard.Fields{"rev", strconv.FormatInt(r.rev, 10), "paused", paused}); err != nil {
			return err
		}
	}
}

// catchUp publishes the root to shard k, which answered an older revision: it
// was silent when that changed, or whoever changed it died.
func (f *Frontier) catchUp(ctx context.Context, k int) error {
	r, err := f.root(ctx)
	if err != nil {
		return err
	}
	return f.publishTo(ctx, k, r)
}

// Close ends the work on the crawl. The client stays open; it is the caller's.
func (f *Frontier) Close() error { return nil }

// PausedShards names the shards that are paused.
func (f *Frontier) PausedShards(ctx context.Context) ([]int, error) {
	r, err := f.root(ctx)
	if err != nil {
		return nil, err
	}
	var list []int
	for k := range f.layout.Shards {
		if r.pausedIn(k) {
			list = append(list, k)
		}
	}
	return list, nil
}
