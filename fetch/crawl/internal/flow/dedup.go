package flow

import (
	"context"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/frontier"
)

const (
	// maxCompare is how many contents one call compares.
	maxCompare = 250
	// comparePatience is how long a call is waited for. Then the shard counts as silent for
	// comparePause, and pages whose contents are of it go on as if they were first: every
	// shard has contents of all sites, so a silent one would hold up all.
	comparePatience = 2 * time.Second
	comparePause    = 2 * time.Second
)

// Comparison is a content that is compared with those of other URLs.
type Comparison struct {
	Content frontier.Content
	Done    func(duplicate bool) // called once, unless the crawl is cut short
}

// Deduper compares the contents of pages of many sites with those that one shard has.
type Deduper struct {
	shard      *Shard
	compare    func(ctx context.Context, shard int, contents []frontier.Content, duplicate []bool) error
	batch      *Batcher[Comparison]
	uncompared *metrics.Counter
}

// NewDeduper returns a Deduper that calls compare. It counts contents that it did not
// compare, since the shard is silent.
func NewDeduper(s *Shard, compare func(context.Context, int, []frontier.Content, []bool) error, linger time.Duration, uncompared *metrics.Counter) *Deduper {
	return &Deduper{shard: s, compare: compare, batch: NewBatcher[Comparison](maxCompare, linger), uncompared: uncompared}
}

// AddContent adds a content.
func (d *Deduper) AddContent(c Comparison) { d.batch.Add(c) }

// Run compares contents until ctx ends. Its error ends the crawl.
func (d *Deduper) Run(ctx context.Context) error {
	var silentUntil time.Time
	var contents []frontier.Content
	var duplicate []bool
	return d.batch.Run(ctx, func(ctx context.Context, group []Comparison) error {
		contents, duplicate = contents[:0], append(duplicate[:0], make([]bool, len(group))...)
		for i := range group {
			contents = append(contents, group[i].Content)
		}
		silent := true
		if now := time.Now(); !now.Before(silentUntil) && d.shard.SilentFor(now) < comparePatience {
			var err error
			if silent, err = d.call(ctx, contents, duplicate); err != nil {
				return err
			}
			if silent {
				silentUntil = time.Now().Add(comparePause)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if silent {
			d.uncompared.Add(len(group))
		}
		for i := range group {
			group[i].Done(!silent && duplicate[i])
		}
		return nil
	})
}

// call makes one call, and reports whether the shard did not answer it.
func (d *Deduper) call(ctx context.Context, contents []frontier.Content, duplicate []bool) (silent bool, err error) {
	short, cancel := context.WithTimeout(ctx, comparePatience)
	defer cancel()
	err = d.compare(short, d.shard.Index, contents, duplicate)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		return true, nil
	}
	return false, err
}
