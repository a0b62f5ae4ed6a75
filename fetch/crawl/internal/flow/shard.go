package flow

import (
	"context"
	"sync/atomic"
	"time"
)

// Shard is what is known of how a shard answers.
type Shard struct {
	Index int

	newest func(shard int) uint64 // epoch of the connection; nil: it never changes
	epoch  atomic.Uint64          // as last read: what was known before no longer counts
	ticked atomic.Int64           // when it last answered a tick, Unix ms
	owes   atomic.Int64           // since when a tick has no answer, Unix ms, 0 = none is under way
}

// NewShard returns a shard that has not answered. Its epoch rises when it may have lost
// what it acknowledged: its connection broke or its master changed.
func NewShard(index int, epoch func(shard int) uint64) *Shard {
	return &Shard{Index: index, newest: epoch}
}

// CheckEpoch reads the epoch of the shard's connection anew. Each tick does, since links
// that are all known cause no other call.
func (s *Shard) CheckEpoch() uint64 {
	if s.newest == nil {
		return 0
	}
	e := s.newest(s.Index)
	for { // epochs only rise, whoever is late
		last := s.epoch.Load()
		if e <= last || s.epoch.CompareAndSwap(last, e) {
			return max(e, last)
		}
	}
}

// Epoch is the epoch as last read.
func (s *Shard) Epoch() uint64 { return s.epoch.Load() }

// Asked notes that a tick goes out.
func (s *Shard) Asked(now time.Time) { s.owes.Store(now.UnixMilli()) }

// Answered notes that it was answered.
func (s *Shard) Answered(now time.Time) { s.ticked.Store(now.UnixMilli()) }

// Ended notes that nothing is owed any more.
func (s *Shard) Ended() { s.owes.Store(0) }

// SilentFor is for how long the shard has owed an answer.
func (s *Shard) SilentFor(now time.Time) time.Duration {
	owes := s.owes.Load()
	if owes == 0 {
		return 0
	}
	return now.Sub(time.UnixMilli(owes))
}

// SinceAnswer is how long ago the shard answered a tick; false if it never did.
func (s *Shard) SinceAnswer(now time.Time) (time.Duration, bool) {
	ticked := s.ticked.Load()
	return now.Sub(time.UnixMilli(ticked)), ticked != 0
}

// Sleep waits for d, ctx or stop, which may be nil. It reports whether d passed.
func Sleep(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	}
}
