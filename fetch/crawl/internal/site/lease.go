package site

import (
	"sync"
	"sync/atomic"
	"time"
)

// LeaseWatch is whether the leases that a shard loop holds can be relied on: no
// request starts for a visit while they cannot. They are in doubt
//   - after a gap between ticks, in which others may have taken them for those of
//     a dead fetcher: this process was suspended, or the shard silent;
//   - when the connection to the shard broke or its master changed, for a lease may
//     be among what the old one took with it;
//   - when an outcome of a visit that is not dropped came too late: its lease is gone.
//
// The next tick, which comes at once, names all of them and ends the doubt: what
// is gone is dropped.
type LeaseWatch struct {
	mu     sync.Mutex
	ticked time.Duration // by Config.Elapsed, when the last tick began that was answered
	epoch  uint64        // of the connection, before the last tick that named all leases
	doubts uint64        // how often one was called gone
	named  uint64        // of these, how many the last tick that named all leases knew of
}

// LeaseMark is what a tick knows when it begins.
type LeaseMark struct {
	At     time.Duration
	Epoch  uint64
	doubts uint64
}

// Begin watches leases from now on.
func (w *LeaseWatch) Begin(m LeaseMark) {
	w.mu.Lock()
	w.ticked, w.epoch = m.At, m.Epoch
	w.mu.Unlock()
}

// Mark is to be taken before a tick and handed to Answered.
func (w *LeaseWatch) Mark(at time.Duration, epoch uint64) LeaseMark {
	w.mu.Lock()
	defer w.mu.Unlock()
	return LeaseMark{At: at, Epoch: epoch, doubts: w.doubts}
}

// IsReliable reports whether the leases can be relied on at a time, over the
// connection of an epoch.
func (w *LeaseWatch) IsReliable(at time.Duration, epoch uint64, lease time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return at-w.ticked <= lease/3 && epoch == w.epoch && w.doubts == w.named
}

// Doubt notes that a lease is gone.
func (w *LeaseWatch) Doubt() {
	w.mu.Lock()
	w.doubts++
	w.mu.Unlock()
}

// Answered takes in a tick that was answered, and whether it named all leases.
func (w *LeaseWatch) Answered(m LeaseMark, named bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ticked = m.At
	if named {
		w.epoch, w.named = m.Epoch, m.doubts
	}
}

// WarmUp is how long a fetcher lives before it leases URLs that two fetchers died with.
// Where processes are ended again and again, by whatever, a third death so soon says
// nothing about the URL.
const WarmUp = 10 * time.Second

// LossPermit is the permit to lease a URL that two fetchers were lost with, and that is
// dead if this one is. There is one, so that a loss falls on one such URL, and a young
// fetcher has none.
type LossPermit struct {
	Began    time.Time // of the fetcher
	acquired atomic.Bool
}

// Acquire reports whether the permit was free.
func (p *LossPermit) Acquire(now time.Time) bool {
	return now.Sub(p.Began) >= WarmUp && !p.acquired.Swap(true)
}

// Release frees it.
func (p *LossPermit) Release() { p.acquired.Store(false) }

// IsAcquired reports whether it is in use.
func (p *LossPermit) IsAcquired() bool { return p.acquired.Load() }
