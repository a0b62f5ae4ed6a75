package crawl

import (
	"context"
	"sync"

	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// admitRequest waits for the verdicts on candidates that are on no page.
type admitRequest struct {
	mu   sync.Mutex
	full bool // for one of them there was no room
	left int
	done chan struct{} // closed when all are answered
}

func (q *admitRequest) Answered(v frontier.Verdict) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.full = q.full || v == frontier.Full
	if q.left--; q.left == 0 {
		close(q.done)
	}
}

// admitAll admits candidates that are on no page, through the admitters of
// a running crawler, and waits for all verdicts. It fails with frontier.ErrFull
// when there was no room for all, with once at the first try, else until the
// crawler stopped: whoever named them has to keep them.
func (c *Crawler) admitAll(ctx context.Context, candidates []frontier.Candidate, once bool) error {
	if len(candidates) == 0 {
		return nil
	}
	q := &admitRequest{left: len(candidates), done: make(chan struct{})}
	for _, cand := range candidates {
		c.shardOf(cand.Fingerprint).admitter.Add(q, once, []work.Candidate{work.CandidateOf(cand)})
	}
	select {
	case <-q.done:
		if q.full {
			return frontier.ErrFull
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
