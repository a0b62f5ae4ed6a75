package crawl

import (
	"context"
	"errors"
	"sync"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
)

// batch waits for the verdicts on candidates that stand on no page.
type batch struct {
	mu   sync.Mutex
	full bool // for one of them there was no room
	left int
	done chan struct{} // closed when all are answered
}

func (b *batch) acknowledge(v frontier.Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.full = b.full || v == frontier.Full
	if b.left--; b.left == 0 {
		close(b.done)
	}
}

// admit admits candidates from outside through the lanes of a running worker
// and waits for all verdicts. It fails with frontier.ErrFull when there was no
// room for all, with once at the first try, else until the worker stopped:
// whoever named them has to keep them.
func (w *Worker) admit(ctx context.Context, candidates []frontier.Candidate, once bool) error {
	if len(candidates) == 0 {
		return nil
	}
	b := &batch{left: len(candidates), done: make(chan struct{})}
	for _, c := range candidates {
		w.laneOf(c.Fingerprint).admits.add([]link{{Candidate: c, from: b, once: once}})
	}
	select {
	case <-b.done:
		if b.full {
			return frontier.ErrFull
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// feeder is a frontier that takes URLs pushed from outside while the crawl runs.
type feeder interface {
	DrainFeed(ctx context.Context, admit func(context.Context, []frontier.FeedItem) error) (int, error)
}

// feedPause is how long an empty feed is left alone.
const feedPause = 500 * time.Millisecond

// feed drains the crawl's feed until ctx ends.
func (w *Worker) feed(ctx context.Context) {
	f, ok := w.cfg.Frontier.(feeder)
	if !ok {
		return
	}
	parser := canon.NewParser(w.cfg.Canon)
	for ctx.Err() == nil && !w.isStopping() {
		n, err := f.DrainFeed(ctx, func(ctx context.Context, items []frontier.FeedItem) error {
			return w.admitFeed(ctx, parser, items)
		})
		if errors.Is(err, frontier.ErrFull) {
			return // the worker stops; what was not admitted stays in the feed
		}
		if err != nil {
			w.fail(ctx, err)
			return
		}
		if n == 0 {
			sleep(ctx, w.stopping, feedPause)
		}
	}
}

// admitFeed admits elements of the feed, in the class that the crawl's rules
// name where an element names none.
func (w *Worker) admitFeed(ctx context.Context, parser *canon.Parser, items []frontier.FeedItem) error {
	p := w.policy.Load()
	candidates := make([]frontier.Candidate, 0, len(items))
	var u canon.URL
	for _, it := range items {
		if !it.HasPriority && parser.Parse(&u, []byte(it.URL)) == nil {
			it.Priority = p.class(&u)
		}
		candidates = append(candidates, it.Candidate)
	}
	return w.admit(ctx, candidates, false)
}
