package crawl

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"seine/extract/sink"
	"seine/fetch"
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

// question is a page that waits to be told whether another URL brought its content
// before. It holds what its record needs, for no worker does.
type question struct {
	page    *page
	record  sink.Record
	content frontier.Content
	skip    bool  // the links of a duplicate are not followed
	size    int64 // bytes, which the page counts meanwhile
}

// questionOverhead is what a question takes beside the texts of its record.
const questionOverhead = 2 << 10

// takesPart reports whether the content of the page at hand is compared with those of
// others: a whole text with status 200, no list of links to pages.
func (w *worker) takesPart() bool {
	if !w.policy.looks || !w.scan || w.listing {
		return false
	}
	o, r := &w.page.outcome, &w.resp
	return (o.Kind == frontier.Done || o.Kind == frontier.Again) && r.Status == 200 && !r.Truncated && r.Bytes > 0 && isText(r)
}

// isText reports whether a body is of a type of text.
func isText(r *fetch.Response) bool {
	return strings.HasPrefix(r.Type, "text/") || strings.Contains(r.Type, "xml") || r.Type == ""
}

// compare sends the page at hand to the shard of its content, with its record. What that
// shows of the worker's own memory goes along.
func (w *worker) compare() {
	skips := w.policy.settings.DuplicatesRule() == frontier.DuplicatesSkip
	q := &question{page: w.page, record: w.rec, skip: skips && !w.item.Seed,
		content: frontier.NewContent(w.contentDigest(skips), w.url.Key())}
	if e := w.rec.Exchange; e != nil {
		own := *e
		q.record.Exchange = &own
		w.wire = fetch.Wire{}
	}
	q.size = sizeOf(&q.record) - w.page.text // that the page counts already
	p := w.page
	p.size += q.size
	p.charge(0)
	w.crawler.loopOf(q.content.Digest).asker.add(q)
}

// contentDigest is what the content of the page at hand is known by. Where links of
// duplicates are skipped, pages that differ in which links the crawl follows are no
// duplicates: one at the greatest depth must not hide the links of another.
func (w *worker) contentDigest(skips bool) []byte {
	digest := w.digest.bytes()
	if !skips || w.unfollowed == 0 {
		return digest
	}
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(digest, w.unfollowed))
	return sum[:]
}

// sizeOf is about what a record that waits takes.
func sizeOf(r *sink.Record) int64 {
	n := questionOverhead + len(r.Body) + len(r.Text) + len(r.Title) + len(r.Fields) + len(r.Meta)
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

// answered goes on with a page that was asked for.
func (q *question) answered(duplicate bool) {
	p, c := q.page, q.page.visit.loop.crawler
	p.size -= q.size
	p.bytes -= q.size
	c.flow.add(-q.size)
	if duplicate {
		c.count.duplicates.Inc()
		q.record.Duplicate = true
	}
	if duplicate && q.skip {
		links := len(p.candidates) - p.added
		p.candidates = append([]candidate(nil), p.candidates[links:]...)
		p.facts.Refused[refusedDuplicate] += uint32(links)
		c.count.refusals[refusedDuplicate].Add(links)
	}
	p.write(&q.record)
}

// asker gathers the contents of pages of many sites for one shard and asks for them
// in groups: while one call is under way the next group grows.
type asker struct {
	loop *shardLoop
	wake chan struct{}

	mu      sync.Mutex
	waiting []*question

	// Of the goroutine that asks:
	silentUntil time.Time
	contents    []frontier.Content
	duplicate   []bool
}

func newAsker(l *shardLoop) *asker { return &asker{loop: l, wake: make(chan struct{}, 1)} }

func (a *asker) add(q *question) {
	a.mu.Lock()
	a.waiting = append(a.waiting, q)
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *asker) take(group []*question) []*question {
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
func (a *asker) run(ctx context.Context) {
	var group []*question
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
			q.answered(answers != nil && answers[i])
		}
	}
}

// call asks for a group. Without answers the shard is silent.
func (a *asker) call(ctx context.Context, group []*question) (answers []bool, err error) {
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
