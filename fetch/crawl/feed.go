package crawl

import (
	"context"
	"sync"
	"time"

	"seine/fetch/crawl/internal/flow"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
	"seine/frontier/canon"
)

// feeder is a frontier that takes URLs pushed from outside while the crawl runs.
type feeder interface {
	DrainFeed(ctx context.Context, admit func(context.Context, []frontier.FeedItem) (late []int, err error)) (int, error)
	FeedRefused() int64 // elements so far that are none
}

const (
	// feedPause is how long a feed is left alone that has nothing, or nothing that
	// its shards take.
	feedPause = 500 * time.Millisecond
	// feedPatience is how long elements wait for their shards before they are put
	// aside.
	feedPatience = 2 * time.Second
)

// drainFeed drains the crawl's feed until ctx ends or the crawler stops.
func (c *Crawler) drainFeed(ctx context.Context) {
	f, ok := c.cfg.Frontier.(feeder)
	if !ok {
		return
	}
	parser := canon.NewParser(c.cfg.Canon)
	for ctx.Err() == nil && !c.isStopping() {
		n, err := f.DrainFeed(ctx, func(ctx context.Context, items []frontier.FeedItem) ([]int, error) {
			return c.admitFeed(ctx, parser, items)
		})
		c.count.FeedRefused.Set(uint64(f.FeedRefused()))
		if err != nil {
			c.fail(ctx, err)
			return
		}
		if n == 0 {
			flow.Sleep(ctx, c.stopping, feedPause)
		}
	}
}

// feedRequest waits for the verdicts on elements of the feed.
type feedRequest struct {
	mu   sync.Mutex
	late []bool // by element: its shard has not taken it
	left int
	done chan struct{} // closed when all are answered
}

// feedElement is one of them.
type feedElement struct {
	request *feedRequest
	at      int
}

func (e feedElement) Answered(v frontier.Verdict) {
	q := e.request
	q.mu.Lock()
	defer q.mu.Unlock()
	q.late[e.at] = v == frontier.Full
	if q.left--; q.left == 0 {
		close(q.done)
	}
}

// admitFeed admits elements of the feed, in the class that the crawl's rules
// name where an element names none. It returns the places of those that are
// late: their shards are silent, or have no room.
//
// An element of a shard that owed an answer before is not sent there, so what is
// on its way is bounded; one that was sent is sent once more after it was called
// late, with the effect of once.
func (c *Crawler) admitFeed(ctx context.Context, parser *canon.Parser, items []frontier.FeedItem) (late []int, err error) {
	q := &feedRequest{late: make([]bool, len(items)), left: 1, done: make(chan struct{})}
	pol, now := c.policy.Load(), time.Now()
	var u canon.URL
	for i, it := range items {
		q.late[i] = true
		s := c.shardOf(it.Fingerprint)
		if s.SilentFor(now) >= feedPatience {
			continue
		}
		if !it.HasPriority && parser.Parse(&u, []byte(it.URL)) == nil {
			it.Priority = pol.Class(&u)
		}
		q.mu.Lock()
		q.left++
		q.mu.Unlock()
		s.admitter.Add(feedElement{q, i}, true, []work.Candidate{work.CandidateOf(it.Candidate)})
	}
	q.sent()
	t := time.NewTimer(feedPatience)
	defer t.Stop()
	select {
	case <-q.done:
	case <-t.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, is := range q.late {
		if is {
			late = append(late, i)
		}
	}
	return late, nil
}

// sent says that all elements are on their way.
func (q *feedRequest) sent() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left--; q.left == 0 {
		close(q.done)
	}
}
