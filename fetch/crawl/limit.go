package crawl

import (
	"math"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// What bounds a worker's rate, as seine_crawl_limited_by names it.
const (
	limitEmpty      = "empty"
	limitPoliteness = "politeness"
	limitNetwork    = "network"
	limitCPU        = "cpu"
	limitRedis      = "redis"
	limitSink       = "sink"
)

var limitNames = []string{limitEmpty, limitPoliteness, limitNetwork, limitCPU, limitRedis, limitSink}

// limit judges once a second what bounds the rate.
type limit struct {
	now     atomic.Pointer[string]
	lastCPU time.Duration
	lastAt  time.Time
	late    []int64 // of each lane, as last read
	lateAt  time.Time
}

func (l *limit) get() string {
	if s := l.now.Load(); s != nil {
		return *s
	}
	return limitEmpty
}

// Busy reports whether processors or Redis bound the crawl as it was judged last,
// so that work that can wait should.
func (w *Worker) Busy() bool {
	bound := w.limit.get()
	return bound == limitCPU || bound == limitRedis
}

// judge looks from the back of the path to its front: whoever holds up the rest
// is named.
func (w *Worker) judge() {
	busyCPU, late := w.limit.cpuBusy(), w.anyLate()
	name := limitEmpty
	switch {
	case w.sinkStalls():
		name = limitSink
	case w.flow.blocked(), w.anyFull(), w.anySlow():
		name = limitRedis
	case busyCPU:
		name = limitCPU
	case w.slots.idle() <= 0:
		name = limitNetwork
	case late:
		name = limitRedis
	case w.resting.Load() > 0, w.anyLater():
		name = limitPoliteness
	case w.slots.busy() > 0:
		name = limitNetwork
	}
	w.limit.now.Store(&name)
}

// cpuBusy reports whether this process used 85% of the processors it may use
// since the last call.
func (l *limit) cpuBusy() bool {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return false
	}
	used := time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	now := time.Now()
	spent, wall := used-l.lastCPU, now.Sub(l.lastAt)
	l.lastCPU, l.lastAt = used, now
	return float64(spent) > 0.85*float64(wall)*float64(runtime.GOMAXPROCS(0))
}

// sinkStalls reports whether pages wait for the sink, or for the overflow: most
// of those that fill the flow, or most hands.
func (w *Worker) sinkStalls() bool {
	return w.sinkFails() || w.unwritten() != nil || w.flow.blocked() && w.sinking.Load() > w.linking.Load() || 2*w.writing.Load() > int64(w.slots.size)
}

// sinkFails reports whether the sink says that it cannot write just now.
func (w *Worker) sinkFails() bool {
	s, ok := w.cfg.Sink.(interface{ Stalled() bool })
	return ok && s.Stalled()
}

// slowCall is how long a shard may take to answer a tick without being called slow.
const slowCall = 500 * time.Millisecond

// anySlow reports whether a shard owes an answer for long.
func (w *Worker) anySlow() bool {
	now := time.Now().UnixMilli()
	for _, l := range w.lanes {
		if at := l.asking.Load(); at > 0 && now-at > slowCall.Milliseconds() {
			return true
		}
	}
	return false
}

// lateCall is what an answer takes at least to be called late.
const lateCall = 20 * time.Millisecond

// anyLate reports whether borrowing from a shard filled most of the time since
// the last call, with answers that came late: there is work and there are
// workers, and both wait for Redis.
func (w *Worker) anyLate() bool {
	l := &w.limit
	now := time.Now()
	wall := now.Sub(l.lateAt)
	if l.lateAt = now; l.late == nil {
		l.late = make([]int64, len(w.lanes))
	}
	late := false
	for i, lane := range w.lanes {
		spent := lane.late.Load()
		late = late || float64(spent-l.late[i]) > 0.8*float64(wall)
		l.late[i] = spent
	}
	return late
}

// anyFull reports whether links wait for room in a shard. Those that the
// overflow takes do not.
func (w *Worker) anyFull() bool {
	for _, l := range w.lanes {
		if l.admits.waits() {
			return true
		}
	}
	return false
}

// anyLater reports whether a shard has sites that are due later.
func (w *Worker) anyLater() bool {
	for _, l := range w.lanes {
		if l.later.Load() {
			return true
		}
	}
	return false
}

// rate is how many pages ended a second, over the last few.
type rate struct {
	bits  atomic.Uint64
	last  uint64
	since time.Time
}

func (r *rate) get() float64 { return math.Float64frombits(r.bits.Load()) }

// note takes the number of pages ended so far; once every few seconds it counts.
func (r *rate) note(pages uint64, now time.Time) {
	span := now.Sub(r.since)
	if span < rateSpan {
		return
	}
	if !r.since.IsZero() {
		r.bits.Store(math.Float64bits(float64(pages-r.last) / span.Seconds()))
	}
	r.last, r.since = pages, now
}

const rateSpan = 3 * time.Second
