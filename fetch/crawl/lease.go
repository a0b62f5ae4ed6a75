package crawl

import (
	"sync"
	"time"
)

// processStart is what a clock counts from that has no start of its own.
var processStart = time.Now()

// leaseWatch is whether the leases that a shard loop holds can be relied on: no
// request starts for a visit while they cannot. They are in doubt
//   - after a gap between ticks, in which others may have taken them for those of
//     a dead fetcher: this process was suspended, or the shard silent;
//   - when the connection to the shard broke or its master changed, for a lend may
//     be among what the old one took with it;
//   - when an outcome of a visit that is held came too late: its lease is gone.
//
// The next tick, which comes at once, names all of them and ends the doubt: what
// is gone is dropped.
type leaseWatch struct {
	mu     sync.Mutex
	ticked time.Duration // by Config.Elapsed, when the last tick began that was answered
	epoch  uint64        // of the connection, before the last tick that named all leases
	doubts uint64        // how often one was called gone
	named  uint64        // of these, how many the last tick that named all leases knew of
}

// leaseMark is what a tick knows when it begins.
type leaseMark struct {
	at     time.Duration
	epoch  uint64
	doubts uint64
}

// begin watches leases from now on.
func (w *leaseWatch) begin(m leaseMark) {
	w.mu.Lock()
	w.ticked, w.epoch = m.at, m.epoch
	w.mu.Unlock()
}

// mark is to be taken before a tick and handed to answered.
func (l *shardLoop) mark() leaseMark {
	m := leaseMark{at: l.crawler.cfg.Elapsed(), epoch: l.checkEpoch()}
	l.leases.mu.Lock()
	m.doubts = l.leases.doubts
	l.leases.mu.Unlock()
	return m
}

// reliable reports whether the leases can be relied on at a time, over the
// connection of an epoch.
func (w *leaseWatch) reliable(at time.Duration, epoch uint64, lease time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return at-w.ticked <= lease/3 && epoch == w.epoch && w.doubts == w.named
}

// doubt says that a lease is gone.
func (w *leaseWatch) doubt() {
	w.mu.Lock()
	w.doubts++
	w.mu.Unlock()
}

// answered takes in a tick that was answered, and whether it named all leases.
func (w *leaseWatch) answered(m leaseMark, named bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ticked = m.at
	if named {
		w.epoch, w.named = m.epoch, m.doubts
	}
}

// reliesOnLeases reports whether a request may start at now, by Config.Elapsed, by
// what is known of the leases of the shard. A tick is due when it may not.
func (l *shardLoop) reliesOnLeases(now time.Duration) bool {
	return l.leases.reliable(now, l.checkEpoch(), l.crawler.cfg.Lease)
}
