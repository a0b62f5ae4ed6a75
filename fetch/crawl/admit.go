package crawl

import (
	"context"
	"sync"
	"time"

	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// admission waits for the verdicts on candidates that are on no page.
type admission struct {
	mu   sync.Mutex
	late []bool // by candidate: there was no room, or no verdict yet
	left int
	done chan struct{} // closed when all have a verdict
}

// admissionOf is one of its candidates.
type admissionOf struct {
	*admission
	at int
}

// Answered implements flow.Acknowledger.
func (a admissionOf) Answered(v frontier.Verdict) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.late[a.at] = v == frontier.Full
	if a.left--; a.left == 0 {
		close(a.done)
	}
}

// admitOnce admits candidates that are on no page, through the admitters of a running
// crawler, and waits for the verdicts, with patience no longer than that. It returns the
// places of those that are late: there was no room, or no answer. Whoever named them has to
// keep them.
//
// With patience, a candidate of a shard that owed an answer for so long before is late at
// once, so what is on its way is bounded. One that was sent and called late is sent once
// more by whoever kept it, with the effect of once.
func (c *Crawler) admitOnce(ctx context.Context, candidates []frontier.Candidate, patience time.Duration) (late []int, err error) {
	a := &admission{late: make([]bool, len(candidates)), done: make(chan struct{})}
	now := time.Now()
	sent := make([]int, 0, len(candidates))
	for i := range candidates {
		a.late[i] = true
		if patience == 0 || c.shardOf(candidates[i].Fingerprint).SilentFor(now) < patience {
			sent = append(sent, i)
		}
	}
	if a.left = len(sent); a.left == 0 {
		close(a.done)
	}
	for _, i := range sent {
		f := candidates[i].Fingerprint
		c.shardOf(f).admitter.AddCandidates(admissionOf{a, i}, true, []work.Candidate{work.CandidateOf(candidates[i])})
	}
	var over <-chan time.Time
	if patience > 0 {
		t := time.NewTimer(patience)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-a.done:
	case <-over:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, is := range a.late {
		if is {
			late = append(late, i)
		}
	}
	return late, nil
}
