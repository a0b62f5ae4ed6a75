package crawl

import (
	"context"
	"sync"
	"sync/atomic"
)

// slots bounds the requests under way. A visit holds a slot while it has a
// request to make now and gives it back while it waits for its site's clock,
// so the number of lent sites may be far above the number of slots.
type slots struct {
	size   int
	demand atomic.Int64 // slots held, waited for or reserved by a lane
	hungry atomic.Int32 // lanes that know of due sites and found no slot
	tokens chan struct{}
	onIdle func() // called when a slot became free
	mu     sync.Mutex
	hands  []*hand
	make   func() *hand
}

func newSlots(size int, mk func() *hand, onIdle func()) *slots {
	s := &slots{size: size, tokens: make(chan struct{}, size), make: mk, onIdle: onIdle}
	for range size {
		s.tokens <- struct{}{}
	}
	return s
}

// reserve takes up to half of the idle slots for visits about to be lent; a
// lane that gets its whole wish asks again.
func (s *slots) reserve() int {
	for {
		d := s.demand.Load()
		idle := int64(s.size) - d
		if idle <= 0 {
			return 0
		}
		n := (idle + 1) / 2
		if s.demand.CompareAndSwap(d, d+n) {
			return int(n)
		}
	}
}

// unreserve gives back what reserve gave and no visit took.
func (s *slots) unreserve(n int) {
	if n > 0 {
		s.demand.Add(int64(-n))
		s.onIdle()
	}
}

// acquire waits for a slot. reserved says that the demand is counted already.
func (s *slots) acquire(ctx context.Context, reserved bool) (*hand, error) {
	if !reserved {
		s.demand.Add(1)
	}
	select {
	case <-s.tokens:
	default:
		select {
		case <-s.tokens:
		case <-ctx.Done():
			s.demand.Add(-1)
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.hands); n > 0 {
		w := s.hands[n-1]
		s.hands = s.hands[:n-1]
		return w, nil
	}
	return s.make(), nil
}

// release gives a slot and its worker back.
func (s *slots) release(w *hand) {
	s.mu.Lock()
	s.hands = append(s.hands, w)
	s.mu.Unlock()
	s.tokens <- struct{}{}
	s.demand.Add(-1)
	s.onIdle()
}

// busy is the number of slots in use.
func (s *slots) busy() int { return s.size - len(s.tokens) }

// idle is the number of slots that nothing asks for.
func (s *slots) idle() int { return s.size - int(s.demand.Load()) }
