package crawl

import (
	"context"
	"sync"

	"seine/frontier"
)

// maxSettle bounds the visits of one settle call.
const maxSettle = 64

// settler gathers what became of the URLs of many visits of one shard and
// settles them in groups: while one call is under way the next group grows.
type settler struct {
	lane *lane
	wake chan struct{}

	mu    sync.Mutex
	dirty []*loan
}

func newSettler(l *lane) *settler { return &settler{lane: l, wake: make(chan struct{}, 1)} }

// add puts a loan in line, once.
func (s *settler) add(l *loan) {
	s.mu.Lock()
	if !l.dirty {
		l.dirty = true
		s.dirty = append(s.dirty, l)
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *settler) take(group []*loan) []*loan {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.dirty), maxSettle)
	group = append(group[:0], s.dirty[:n]...)
	rest := copy(s.dirty, s.dirty[n:])
	clear(s.dirty[rest:])
	s.dirty = s.dirty[:rest]
	for _, l := range group {
		l.dirty = false
	}
	return group
}

// run settles until ctx ends.
func (s *settler) run(ctx context.Context) {
	var (
		group []*loan
		batch []frontier.Settlement
	)
	for {
		if group = s.take(group); len(group) == 0 {
			select {
			case <-s.wake:
				sleep(ctx, nil, s.lane.w.cfg.Linger)
				continue
			case <-ctx.Done():
				return
			}
		}
		batch = batch[:0]
		for _, l := range group {
			batch = append(batch, l.settlement())
		}
		settled, err := s.lane.w.cfg.Frontier.Settle(ctx, s.lane.shard, batch)
		if err != nil {
			s.lane.w.fail(ctx, err)
			return
		}
		s.apply(group, batch, settled)
	}
}

// settlement takes what the loan has to say.
func (l *loan) settlement() frontier.Settlement {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := frontier.Settlement{Lease: l.visit.Lease, Outcomes: l.outcomes, Free: l.free}
	l.outcomes, l.free = nil, nil
	return s
}

// apply forgets loans whose last URL is settled and whose site is free.
func (s *settler) apply(group []*loan, batch []frontier.Settlement, settled []frontier.Settled) {
	w, freed, ended := s.lane.w, false, int64(0)
	for i, l := range group {
		for j, ok := range settled[i] {
			o := &batch[i].Outcomes[j]
			if o.Kind == frontier.Done || o.Kind == frontier.Dead {
				ended++
			}
			if ok {
				w.count.outcome(*o)
			} else {
				w.count.gone.Inc()
			}
		}
		l.mu.Lock()
		l.open -= len(batch[i].Outcomes)
		if batch[i].Free != nil {
			l.freed = true
			freed = true
		}
		over := l.open <= 0 && l.freed
		l.mu.Unlock()
		if over {
			s.lane.drop(l)
		}
	}
	w.budget.end(ended)
	if freed {
		s.lane.stir()
	}
}
