package crawl

import (
	"context"
	"slices"
	"sync"

	"seine/frontier"
)

// requeue gives URLs back that were not tried.
func (v *visit) requeue(urls []lentURL) {
	v.mu.Lock()
	for i := range urls {
		v.outcomes = append(v.outcomes, frontier.Outcome{Index: int(urls[i].index), Kind: frontier.Requeue})
	}
	v.mu.Unlock()
	v.loop.settler.add(v)
}

// settle records what became of one URL.
func (v *visit) settle(o frontier.Outcome) {
	v.mu.Lock()
	v.outcomes = append(v.outcomes, o)
	v.mu.Unlock()
	v.loop.settler.add(v)
}

// maxSettle bounds the visits of one settle call.
const maxSettle = 64

// settler gathers what became of the URLs of many visits of one shard and
// settles them in groups: while one call is under way the next group grows.
type settler struct {
	loop *shardLoop
	wake chan struct{}

	mu    sync.Mutex
	dirty []*visit
}

func newSettler(l *shardLoop) *settler { return &settler{loop: l, wake: make(chan struct{}, 1)} }

// add puts a visit in line, once.
func (s *settler) add(v *visit) {
	s.mu.Lock()
	if !v.dirty {
		v.dirty = true
		s.dirty = append(s.dirty, v)
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *settler) take(group []*visit) []*visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.dirty), maxSettle)
	group = append(group[:0], s.dirty[:n]...)
	rest := copy(s.dirty, s.dirty[n:])
	clear(s.dirty[rest:])
	s.dirty = s.dirty[:rest]
	for _, v := range group {
		v.dirty = false
	}
	return group
}

// run settles until ctx ends.
func (s *settler) run(ctx context.Context) {
	var (
		group []*visit
		batch []frontier.Settlement
	)
	for {
		if group = s.take(group); len(group) == 0 {
			select {
			case <-s.wake:
				sleep(ctx, nil, s.loop.crawler.cfg.Linger)
				continue
			case <-ctx.Done():
				return
			}
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

// settlement takes what the visit has to say.
func (v *visit) settlement() frontier.Settlement {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := frontier.Settlement{Lease: v.lent.Lease, Outcomes: v.outcomes, Free: v.free}
	if len(s.Outcomes) > 0 || s.Free != nil {
		s.Cookies = v.cookies.Changed()
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
