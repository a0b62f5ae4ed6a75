package crawl

import (
	"container/heap"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// agenda is the visits that wait to make their next request, and the workers that
// make them. A visit is a small record here, not a goroutine: it stands in later
// until its time has come, then in ready until a worker takes it. So the number
// of lent sites costs memory only, and never a worker.
type agenda struct {
	size   int                       // workers at most
	serve  func(w *worker, v *visit) // makes a visit's next request, and puts it back or ends it
	make   func() *worker            // a worker's memory
	onRoom func()                    // called when visits wait for workers no longer
	hungry atomic.Int32              // shard loops that know of due sites and found no room

	mu       sync.Mutex
	later    visitHeap
	alarm    *time.Timer // for the first of later
	alarmAt  time.Time
	ready    []*visit // the first at head
	head     int
	idle     []chan *visit // of workers that wait; the one that waits for least is asked first
	rested   int           // of them, from the first on, that waited since the last sweep
	sweeper  *time.Timer   // while there are workers
	workers  int           // idle and busy
	draining bool          // no visit waits for its time any more
	closed   bool          // no worker waits for work any more
	running  sync.WaitGroup
}

// idleWorker is the time between two sweeps: a worker ends when it had no work for that
// long, or up to twice.
const idleWorker = 5 * time.Second

func newAgenda(size int, serve func(*worker, *visit), mk func() *worker, onRoom func()) *agenda {
	a := &agenda{size: size, serve: serve, make: mk, onRoom: onRoom}
	a.alarm = time.AfterFunc(time.Hour, a.due)
	a.alarm.Stop()
	a.sweeper = time.AfterFunc(time.Hour, a.sweep)
	a.sweeper.Stop()
	return a
}

// put has a visit served at a time; one that is past means now.
func (a *agenda) put(v *visit, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining || at.IsZero() || !at.After(time.Now()) {
		a.dispatch(v)
		return
	}
	v.at = at
	heap.Push(&a.later, v)
	if a.later[0] == v {
		a.setAlarm()
	}
}

// setAlarm rings for the first of later. Called with mu.
func (a *agenda) setAlarm() {
	a.alarmAt = a.later[0].at
	a.alarm.Reset(time.Until(a.alarmAt))
}

// due hands on the visits whose time has come.
func (a *agenda) due() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for len(a.later) > 0 && (a.draining || !a.later[0].at.After(now)) {
		a.dispatch(heap.Pop(&a.later).(*visit))
	}
	if len(a.later) > 0 {
		a.setAlarm()
	}
}

// dispatch gives a visit to a worker, or puts it in line for one. Called with mu.
func (a *agenda) dispatch(v *visit) {
	if n := len(a.idle); n > 0 {
		a.idle[n-1] <- v // it has room for one
		a.idle = a.idle[:n-1]
		a.rested = min(a.rested, n-1)
		return
	}
	if a.workers < a.size {
		if a.workers == 0 {
			a.sweeper.Reset(idleWorker)
		}
		a.workers++
		a.running.Go(func() { a.work(v) })
		return
	}
	a.ready = append(a.ready, v)
}

// work serves visits until there are none for a while.
func (a *agenda) work(v *visit) {
	w, own := a.make(), make(chan *visit, 1)
	for v != nil {
		a.serve(w, v)
		v = a.next(own)
	}
}

// sweep ends the workers that had nothing to do since the last sweep.
func (a *agenda) sweep() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endWorkers(a.rested)
	if a.workers > 0 {
		a.sweeper.Reset(idleWorker)
	}
}

// endWorkers ends the n that wait for longest. Called with mu.
func (a *agenda) endWorkers(n int) {
	for _, own := range a.idle[:n] {
		own <- nil // it has room for one
	}
	a.idle = slices.Delete(a.idle, 0, n)
	a.workers -= n
	a.rested = len(a.idle)
}

// next is the visit that a worker serves next, nil when it is to end.
func (a *agenda) next(own chan *visit) *visit {
	a.mu.Lock()
	if a.head < len(a.ready) {
		v := a.ready[a.head]
		a.ready[a.head] = nil
		if a.head++; a.head > 1024 && a.head > len(a.ready)/2 {
			a.ready = slices.Delete(a.ready, 0, a.head)
			a.head = 0
		}
		room := len(a.ready)-a.head < a.size
		a.mu.Unlock()
		if room {
			a.onRoom()
		}
		return v
	}
	a.ready, a.head = a.ready[:0], 0
	if a.closed {
		a.workers--
		a.mu.Unlock()
		return nil
	}
	a.idle = append(a.idle, own)
	a.mu.Unlock()
	a.onRoom()
	return <-own
}

// drain lets no visit wait for its time any more: all are served, and end.
func (a *agenda) drain() {
	a.mu.Lock()
	a.draining = true
	a.mu.Unlock()
	a.due()
}

// close ends the workers and waits for them; there are no visits any more.
func (a *agenda) close() {
	a.alarm.Stop()
	a.mu.Lock()
	a.closed = true
	a.endWorkers(len(a.idle))
	a.sweeper.Stop()
	a.mu.Unlock()
	a.running.Wait()
}

// busy is the number of workers that serve a visit.
func (a *agenda) busy() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.workers - len(a.idle)
}

// waiting is how many visits wait for their time, and how many for a worker.
func (a *agenda) waiting() (later, ready int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.later), len(a.ready) - a.head
}

// room is how many visits more would find a worker soon: as many as are free,
// and one turn of all of them.
func (a *agenda) room() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	free := a.size - (a.workers - len(a.idle))
	return max(0, free+a.size-(len(a.ready)-a.head))
}

// visitHeap orders visits by the time of their next request.
type visitHeap []*visit

func (h visitHeap) Len() int           { return len(h) }
func (h visitHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h visitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *visitHeap) Push(v any)        { *h = append(*h, v.(*visit)) }
func (h *visitHeap) Pop() any {
	old := *h
	v := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return v
}
