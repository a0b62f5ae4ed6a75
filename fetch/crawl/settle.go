package crawl

import (
	"context"
	"slices"
	"sync"
	"time"

	"seine/frontier"
)

// requeue gives URLs back that were not tried.
func (v *visit) requeue(urls []lentURL) {
	v.mu.Lock()
	for i := range urls {
		v.outcomes = append(v.outcomes, frontier.Outcome{Index: int(urls[i].index), Kind: frontier.Requeue})
	}
	v.missing -= len(urls)
	all := v.missing <= 0
	v.mu.Unlock()
	v.loop.settler.add(v, all)
}

// settle records what became of one URL.
func (v *visit) settle(o frontier.Outcome) {
	v.mu.Lock()
	v.outcomes = append(v.outcomes, o)
	v.missing--
	all := v.missing <= 0
	v.mu.Unlock()
	v.loop.settler.add(v, all)
}

const (
	// maxSettle bounds the visits of one settle call.
	maxSettle = 64
	// settleHold is how long outcomes wait for further ones of their visit: a
	// settlement costs the shard what six outcomes do. Nobody waits for them; it
	// bounds what a fetcher that is killed has fetched in vain.
	settleHold = 250 * time.Millisecond
)

// settler gathers what became of the URLs of many visits of one shard and
// settles them in groups: while one call is under way the next group grows. A site
// that is free and the last outcomes of a visit go at once, others when more of
// their visit have come or settleHold is over.
type settler struct {
	loop *shardLoop
	wake chan struct{}
	hold time.Duration // settleHold, 0 for a frontier that batches save nothing of

	mu     sync.Mutex
	urgent []*visit
	held   []heldVisit // by since; those that became urgent, or were taken as such, stand here too
}

// heldVisit is a visit whose outcomes wait for more.
type heldVisit struct {
	visit *visit
	since time.Time
}

func newSettler(l *shardLoop) *settler {
	s := &settler{loop: l, wake: make(chan struct{}, 1)}
	if l.crawler.cfg.Linger > 0 {
		s.hold = settleHold
	}
	return s
}

// add puts a visit in line, once; urgent says that it is to wait for nothing more.
func (s *settler) add(v *visit, urgent bool) {
	s.mu.Lock()
	wake := false
	switch urgent = urgent || s.hold == 0; {
	case urgent && !v.urgent:
		v.urgent = true
		s.urgent = append(s.urgent, v)
		wake = true
	case !urgent && !v.urgent && v.held.IsZero():
		v.held = time.Now()
		s.held = append(s.held, heldVisit{v, v.held})
		wake = len(s.held) == 1
	}
	s.mu.Unlock()
	if !wake {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take takes the visits of one call: those that are urgent, then those that waited
// long enough. next is how long until the first of the others has, 0 = there are none.
func (s *settler) take(group []*visit) (_ []*visit, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.urgent), maxSettle)
	group = append(group[:0], s.urgent[:n]...)
	rest := copy(s.urgent, s.urgent[n:])
	clear(s.urgent[rest:])
	s.urgent = s.urgent[:rest]
	for _, v := range group {
		v.urgent, v.held = false, time.Time{}
	}
	now, passed := time.Now(), 0
	for _, h := range s.held {
		if v := h.visit; !v.urgent && v.held.Equal(h.since) {
			if next = s.hold - now.Sub(h.since); next > 0 || len(group) == maxSettle {
				break
			}
			v.held = time.Time{}
			group = append(group, v)
		}
		passed++
	}
	clear(s.held[:passed])
	if s.held = s.held[passed:]; len(s.held) == 0 {
		s.held, next = nil, 0 // its front is not used again
	}
	return group, next
}

// run settles until ctx ends.
func (s *settler) run(ctx context.Context) {
	var (
		group []*visit
		batch []frontier.Settlement
		next  time.Duration
	)
	for {
		if group, next = s.take(group); len(group) == 0 {
			if !s.await(ctx, next) {
				return
			}
			continue
		}
		batch = batch[:0]
		for _, v := range group {
			batch = append(batch, v.settlement())
		}
		settled, err := s.loop.crawler.cfg.Frontier.Settle(ctx, s.loop.shard, batch)
		if err != nil {
			s.loop.crawler.fail(ctx, err)
			return
		}
		s.apply(group, batch, settled)
	}
}

// await waits until a visit came, or for next unless that is 0. It reports whether
// ctx goes on.
func (s *settler) await(ctx context.Context, next time.Duration) bool {
	var ripe <-chan time.Time
	if next > 0 {
		t := time.NewTimer(next)
		defer t.Stop()
		ripe = t.C
	}
	select {
	case <-s.wake:
		sleep(ctx, nil, s.loop.crawler.cfg.Linger)
	case <-ripe:
	case <-ctx.Done():
		return false
	}
	return true
}

// settlement takes what the visit has to say.
func (v *visit) settlement() frontier.Settlement {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := frontier.Settlement{Lease: v.lent.Lease, Outcomes: v.outcomes, Free: v.free}
	if len(s.Outcomes) > 0 || s.Free != nil {
		s.Cookies = v.cookies.take()
	}
	v.outcomes, v.free = nil, nil
	return s
}

// apply forgets visits whose last URL is settled and whose site is free.
func (s *settler) apply(group []*visit, batch []frontier.Settlement, settled []frontier.Settled) {
	c, freed := s.loop.crawler, false
	for i, v := range group {
		if slices.Contains(settled[i], false) && s.loop.holds(v) {
			s.loop.leases.doubt() // or it is a repeat of a call whose reply was lost
			s.loop.notify()
		}
		for j, ok := range settled[i] {
			o := &batch[i].Outcomes[j]
			if ok {
				c.count.outcome(*o)
			} else {
				c.count.gone.Inc()
			}
		}
		v.mu.Lock()
		v.open -= len(batch[i].Outcomes)
		if batch[i].Free != nil {
			v.freed = true
			freed = true
		}
		over := v.open <= 0 && v.freed
		v.mu.Unlock()
		if over {
			s.loop.drop(v)
		}
	}
	if freed {
		s.loop.notify()
	}
}
