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
	workers  int           // idle and busy
	draining bool          // no visit waits for its time any more
	running  sync.WaitGroup
}

// idleWorker is how long a worker waits for work before it ends.
const idleWorker = 10 * time.Second

func newAgenda(size int, serve func(*worker, *visit), mk func() *worker, onRoom func()) *agenda {
	a := &agenda{size: size, serve: serve, make: mk, onRoom: onRoom}
	a.alarm = time.AfterFunc(time.Hour, a.due)
	a.alarm.Stop()
	return a
}

// put has a visit served at a time; one that is past means now.
func (a *agenda) put(v *visit, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining || !at.After(time.Now()) {
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
		return
	}
	if a.workers < a.size {
		a.workers++
		a.running.Go(func() { a.work(v) })
		return
	}
	a.ready = append(a.ready, v)
}

// work serves visits until there are none for a while.
func (a *agenda) work(v *visit) {
	w, own := a.make(), make(chan *visit, 1)
	timer := time.NewTimer(idleWorker)
	defer timer.Stop()
	for v != nil {
		a.serve(w, v)
		v = a.next(own, timer)
	}
}

// next is the visit that a worker serves next, nil when it is to end.
func (a *agenda) next(own chan *visit, timer *time.Timer) *visit {
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
	a.idle = append(a.idle, own)
	a.mu.Unlock()
	a.onRoom()
	timer.Reset(idleWorker)
	select {
	case v := <-own:
		return v
	case <-timer.C:
	}
	a.mu.Lock()
	at := slices.Index(a.idle, own)
	if at >= 0 {
		a.idle = slices.Delete(a.idle, at, at+1)
		a.workers--
	}
	a.mu.Unlock()
	if at < 0 {
		return <-own // given at the last moment
	}
	return nil
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
	idle := a.idle
	a.idle = nil
	a.workers -= len(idle)
	a.mu.Unlock()
	for _, own := range idle {
		own <- nil
	}
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
