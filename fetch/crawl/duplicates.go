package crawl

import (
	"context"
	"sync"
	"time"

	"seine/extract/sink"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// maxAsk is how many contents one call asks for.
const maxAsk = 250

const (
	// askPatience is how long a call is waited for; then the shard counts as silent
	// for askPause, and pages whose contents are of it go on as if they were first:
	// every shard has contents of all sites, so a silent one would hold up all.
	askPatience = 2 * time.Second
	askPause    = 2 * time.Second
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
	c.flow.add(-q.size)
	if duplicate {
		c.count.duplicates.Inc()
		q.record.Duplicate = true
	}
	if duplicate && q.skip {
		links := len(p.candidates) - p.added
		p.candidates = append([]work.Candidate(nil), p.candidates[links:]...)
		p.facts.Refused[work.RefusedDuplicate] += uint32(links)
		c.count.refusals[work.RefusedDuplicate].Add(links)
	}
	p.write(&q.record)
}

// deduper gathers the contents of pages of many sites for one shard and asks for them
// in groups: while one call is under way the next group grows.
type deduper struct {
	loop *shardLoop
	wake chan struct{}

	mu      sync.Mutex
	waiting []*comparison

	// Of the goroutine that asks:
	silentUntil time.Time
	contents    []frontier.Content
	duplicate   []bool
}

func newDeduper(l *shardLoop) *deduper { return &deduper{loop: l, wake: make(chan struct{}, 1)} }

func (a *deduper) add(q *comparison) {
	a.mu.Lock()
	a.waiting = append(a.waiting, q)
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *deduper) take(group []*comparison) []*comparison {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(len(a.waiting), maxAsk)
	group = append(group[:0], a.waiting[:n]...)
	rest := copy(a.waiting, a.waiting[n:])
	clear(a.waiting[rest:])
	a.waiting = a.waiting[:rest]
	return group
}

// run asks until ctx ends.
func (a *deduper) run(ctx context.Context) {
	var group []*comparison
	for {
		clear(group)
		if group = a.take(group); len(group) == 0 {
			select {
			case <-a.wake:
				sleep(ctx, nil, a.loop.crawler.cfg.Linger)
				continue
			case <-ctx.Done():
				return
			}
		}
		answers, err := a.call(ctx, group)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			a.loop.crawler.fail(ctx, err)
			return
		}
		for i, q := range group {
			q.compared(answers != nil && answers[i])
		}
	}
}

// call asks for a group. Without answers the shard is silent.
func (a *deduper) call(ctx context.Context, group []*comparison) (answers []bool, err error) {
	now := time.Now()
	if now.Before(a.silentUntil) || a.loop.silentFor(now) >= askPatience {
		a.loop.crawler.count.unasked.Add(len(group))
		return nil, nil
	}
	a.contents, a.duplicate = a.contents[:0], append(a.duplicate[:0], make([]bool, len(group))...)
	for _, q := range group {
		a.contents = append(a.contents, q.content)
	}
	short, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	err = a.loop.crawler.cfg.Frontier.Duplicates(short, a.loop.shard, a.contents, a.duplicate)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		a.silentUntil = time.Now().Add(askPause)
		a.loop.crawler.count.unasked.Add(len(group))
		return nil, nil
	}
	return a.duplicate, err
}
