package crawl

import (
	"context"
	"time"

	"seine/extract/sink"
	"seine/fetch/crawl/internal/flow"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// maxCompare is how many contents one call compares.
const maxCompare = 250

const (
	// comparePatience is how long a call is waited for; then the shard counts as silent
	// for comparePause, and pages whose contents are of it go on as if they were first:
	// every shard has contents of all sites, so a silent one would hold up all.
	comparePatience = 2 * time.Second
	comparePause    = 2 * time.Second
)

// comparison is a page whose content is compared with those of other URLs. It holds what
// its record needs, for no worker does.
type comparison struct {
	page    *page
	record  sink.Record
	content frontier.Content
	skip    bool  // the links of a duplicate are not followed
	size    int64 // bytes, which the page counts meanwhile
}

// comparisonOverhead is what a comparison takes beside the texts of its record.
const comparisonOverhead = 2 << 10

// sizeOf is about what a record that waits takes.
func sizeOf(r *sink.Record) int64 {
	n := comparisonOverhead + len(r.Body) + len(r.Text) + len(r.Title) + len(r.Fields) + len(r.Meta)
	if e := r.Exchange; e != nil {
		n += cap(e.Request) + cap(e.Response)
	}
	for i := range r.Items {
		n += len(r.Items[i].Value)
	}
	for _, l := range r.LinksOut {
		n += len(l) + 16
	}
	for _, h := range r.Headers {
		n += len(h[0]) + len(h[1]) + 32
	}
	return int64(n)
}

// compared goes on with the page.
func (q *comparison) compared(duplicate bool) {
	p, c := q.page, q.page.visit.loop.crawler
	p.bytes -= q.size
	c.gate.Add(-q.size)
	if duplicate {
		c.count.Duplicates.Inc()
		q.record.Duplicate = true
	}
	if duplicate && q.skip {
		links := len(p.candidates) - p.added
		p.candidates = append([]work.Candidate(nil), p.candidates[links:]...)
		p.facts.Refused[work.RefusedDuplicate] += uint32(links)
		c.count.Refusals[work.RefusedDuplicate].Add(links)
	}
	p.write(&q.record)
}

// deduper compares the contents of pages of many sites with those that one shard has.
type deduper struct {
	loop  *shardLoop
	batch *flow.Batcher[*comparison]

	// Of the goroutine that runs it:
	silentUntil time.Time
	contents    []frontier.Content
	duplicate   []bool
}

func newDeduper(l *shardLoop) *deduper {
	return &deduper{loop: l, batch: flow.NewBatcher[*comparison](maxCompare, l.crawler.cfg.Linger)}
}

// run compares contents until ctx ends.
func (d *deduper) run(ctx context.Context) {
	err := d.batch.Run(ctx, func(ctx context.Context, group []*comparison) error {
		duplicate, err := d.compare(ctx, group)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		for i, q := range group {
			q.compared(duplicate != nil && duplicate[i])
		}
		return nil
	})
	if err != nil {
		d.loop.crawler.fail(ctx, err)
	}
}

// compare sends a group of contents. Without answers the shard is silent.
func (d *deduper) compare(ctx context.Context, group []*comparison) (duplicate []bool, err error) {
	now := time.Now()
	if now.Before(d.silentUntil) || d.loop.silentFor(now) >= comparePatience {
		d.loop.crawler.count.Uncompared.Add(len(group))
		return nil, nil
	}
	d.contents, d.duplicate = d.contents[:0], append(d.duplicate[:0], make([]bool, len(group))...)
	for _, q := range group {
		d.contents = append(d.contents, q.content)
	}
	short, cancel := context.WithTimeout(ctx, comparePatience)
	defer cancel()
	err = d.loop.crawler.cfg.Frontier.Duplicates(short, d.loop.shard, d.contents, d.duplicate)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		d.silentUntil = time.Now().Add(comparePause)
		d.loop.crawler.count.Uncompared.Add(len(group))
		return nil, nil
	}
	return d.duplicate, err
}
