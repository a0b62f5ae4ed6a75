package simulate

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// queue is the order in which things happen. Calls of fetchers arrive at any time; run
// takes them when every goroutine of the simulation waits for something, in the order of
// their names. So the order of one moment does not depend on the scheduler.
type queue struct {
	seed  uint64
	began time.Time
	wake  chan struct{}

	mu      sync.Mutex
	arrived []*call
	ended   bool

	// Of the goroutine that runs the queue.
	events eventHeap
	count  map[string]int // calls by name
	order  int            // of events of one moment and name
	steps  []byte         // what happened, a line each
	replay map[string]replayed
}

// call is what a fetcher asks of a shard or of the web.
type call struct {
	from  *fetcher
	name  string // equal for what is asked over and over
	start func(*call)
	end   chan struct{} // closed when answered

	id string // name, with the number of the call
}

// event is what happens at a time.
type event struct {
	at    time.Duration
	name  string
	order int
	do    func() string // returns what came of it, for the steps
}

type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if a.at != b.at {
		return a.at < b.at
	}
	return a.order < b.order
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(e any)   { *h = append(*h, e.(*event)) }
func (h *eventHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

// replayed is when a step happened in the run that is replayed.
type replayed struct {
	at    time.Duration
	order int
}

func newQueue(seed uint64) *queue {
	return &queue{seed: seed, began: time.Now(), wake: make(chan struct{}, 1), count: make(map[string]int)}
}

// now is the virtual time since the start.
func (q *queue) now() time.Duration { return time.Since(q.began) }

// ask hands a call to the queue.
func (q *queue) ask(c *call) {
	q.mu.Lock()
	q.arrived = append(q.arrived, c)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// at has something happen at a time, or now where that is over. Names are unique.
func (q *queue) at(t time.Duration, name string, do func() string) {
	q.order++
	e := &event{at: max(t, q.now()), name: name, order: q.order, do: do}
	if r, ok := q.replay[name]; ok {
		e.at, e.order = max(r.at, q.now()), r.order-len(q.replay)
	}
	heap.Push(&q.events, e)
}

// after is at, counted from now.
func (q *queue) after(d time.Duration, name string, do func() string) { q.at(q.now()+d, name, do) }

// random is what chance decides about something that has a name.
func (q *queue) random(name string) *rand.Rand {
	return rand.New(rand.NewPCG(q.seed, hash(name)))
}

func hash(s string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a, which is the same in each process
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// end ends run, which lets what waits be.
func (q *queue) end() {
	q.ended = true
}

// run lets things happen until the end. It is the one goroutine that touches the shards,
// the web and what is checked.
func (q *queue) run() {
	for !q.ended {
		synctest.Wait()
		q.takeArrived()
		for !q.ended && len(q.events) > 0 && q.events[0].at <= q.now() {
			e := heap.Pop(&q.events).(*event)
			if what := e.do(); what != "" {
				q.steps = fmt.Appendf(q.steps, "%d %s: %s\n", e.at, e.name, what)
			}
		}
		if q.ended {
			return
		}
		var timer <-chan time.Time
		if len(q.events) > 0 {
			d := q.events[0].at - q.now()
			if d <= 0 {
				continue
			}
			t := time.NewTimer(d)
			timer = t.C
			select {
			case <-timer:
			case <-q.wake:
				t.Stop()
			}
			continue
		}
		<-q.wake
	}
}

// takeArrived starts the calls that arrived, in the order of their names.
func (q *queue) takeArrived() {
	q.mu.Lock()
	calls := q.arrived
	q.arrived = nil
	q.mu.Unlock()
	slices.SortStableFunc(calls, func(a, b *call) int {
		return cmp.Or(strings.Compare(a.from.id, b.from.id), strings.Compare(a.name, b.name))
	})
	for _, c := range calls {
		name := c.from.id + " " + c.name
		q.count[name]++
		c.id = fmt.Sprintf("%s #%d", name, q.count[name])
		c.start(c)
	}
}
