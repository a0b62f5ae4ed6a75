package site

import (
	"slices"
	"sync"
	"time"
)

// Agenda is the visits that wait to make their next request, and the workers that
// make them. A visit is a small record here, not a goroutine: it waits in later
// until its time has come, then in ready until a worker takes it. So the number
// of leased sites costs memory only, and never a worker.
type Agenda[V any] struct {
	size   int             // workers at most
	start  func() func(*V) // begins a worker, which makes a visit's next request, and puts it back or ends it
	onRoom func()          // called when visits wait for workers no longer

	mu       sync.Mutex
	later    visitHeap[V]
	alarm    *time.Timer // for the first of later
	alarmAt  time.Time
	ready    []*V // the first at head
	head     int
	idle     []chan *V   // of workers that wait; the one that waits for least is asked first
	rested   int         // of them, from the first on, that waited since the last sweep
	sweeper  *time.Timer // while there are workers
	workers  int         // idle and busy
	draining bool        // no visit waits for its time any more
	closed   bool        // no worker waits for work any more
	running  sync.WaitGroup
}

// idleWorker is the time between two sweeps: a worker ends when it had no work for that
// long, or up to twice.
const idleWorker = 5 * time.Second

// NewAgenda returns an agenda of up to size workers.
func NewAgenda[V any](size int, start func() func(*V), onRoom func()) *Agenda[V] {
	a := &Agenda[V]{size: size, start: start, onRoom: onRoom}
	a.alarm = time.AfterFunc(time.Hour, a.due)
	a.alarm.Stop()
	a.sweeper = time.AfterFunc(time.Hour, a.sweep)
	a.sweeper.Stop()
	return a
}

// Schedule has a visit served at a time; one that is past means now.
func (a *Agenda[V]) Schedule(v *V, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.draining || at.IsZero() || !at.After(time.Now()) {
		a.dispatch(v)
		return
	}
	a.later.push(appointment[V]{v, at})
	if a.later[0].visit == v {
		a.setAlarm()
	}
}

// setAlarm rings for the first of later. Called with mu.
func (a *Agenda[V]) setAlarm() {
	a.alarmAt = a.later[0].at
	a.alarm.Reset(time.Until(a.alarmAt))
}

// due hands on the visits whose time has come.
func (a *Agenda[V]) due() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for len(a.later) > 0 && (a.draining || !a.later[0].at.After(now)) {
		a.dispatch(a.later.pop())
	}
	if len(a.later) > 0 {
		a.setAlarm()
	}
}

// dispatch gives a visit to a worker, or puts it in line for one. Called with mu.
func (a *Agenda[V]) dispatch(v *V) {
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
func (a *Agenda[V]) work(v *V) {
	serve, own := a.start(), make(chan *V, 1)
	for v != nil {
		serve(v)
		v = a.next(own)
	}
}

// sweep ends the workers that had nothing to do since the last sweep.
func (a *Agenda[V]) sweep() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endWorkers(a.rested)
	if a.workers > 0 {
		a.sweeper.Reset(idleWorker)
	}
}

// endWorkers ends the n that wait for longest. Called with mu.
func (a *Agenda[V]) endWorkers(n int) {
	for _, own := range a.idle[:n] {
		own <- nil // it has room for one
	}
	a.idle = slices.Delete(a.idle, 0, n)
	a.workers -= n
	a.rested = len(a.idle)
}

// next is the visit that a worker serves next, nil when it is to end.
func (a *Agenda[V]) next(own chan *V) *V {
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

// Drain lets no visit wait for its time any more: all are served, and end.
func (a *Agenda[V]) Drain() {
	a.mu.Lock()
	a.draining = true
	a.mu.Unlock()
	a.due()
}

// Close ends the workers and waits for them; there are no visits any more.
func (a *Agenda[V]) Close() {
	a.alarm.Stop()
	a.mu.Lock()
	a.closed = true
	a.endWorkers(len(a.idle))
	a.sweeper.Stop()
	a.mu.Unlock()
	a.running.Wait()
}

// Size is the number of workers at most.
func (a *Agenda[V]) Size() int { return a.size }

// Busy is the number of workers that serve a visit.
func (a *Agenda[V]) Busy() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.workers - len(a.idle)
}

// Waiting is how many visits wait for their time, and how many for a worker.
func (a *Agenda[V]) Waiting() (later, ready int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.later), len(a.ready) - a.head
}

// Room is how many visits more would find a worker soon: as many as are free,
// and one visit more for each.
func (a *Agenda[V]) Room() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	free := a.size - (a.workers - len(a.idle))
	return max(0, free+a.size-(len(a.ready)-a.head))
}

// appointment is a visit that waits for its time.
type appointment[V any] struct {
	visit *V
	at    time.Time
}

// visitHeap orders visits by the time of their next request. It is container/heap
// without boxing, for each request passes here.
type visitHeap[V any] []appointment[V]

// push adds a visit.
func (h *visitHeap[V]) push(a appointment[V]) {
	*h = append(*h, a)
	all := *h
	for at := len(all) - 1; at > 0; {
		above := (at - 1) / 2
		if !all[at].at.Before(all[above].at) {
			return
		}
		all[at], all[above] = all[above], all[at]
		at = above
	}
}

// pop takes the visit whose time comes first.
func (h *visitHeap[V]) pop() *V {
	all := *h
	first, last := all[0].visit, len(all)-1
	all[0] = all[last]
	all[last] = appointment[V]{}
	all = all[:last]
	*h = all
	for at := 0; ; {
		least := at
		for below := 2*at + 1; below <= 2*at+2 && below < last; below++ {
			if all[below].at.Before(all[least].at) {
				least = below
			}
		}
		if least == at {
			return first
		}
		all[at], all[least] = all[least], all[at]
		at = least
	}
}
