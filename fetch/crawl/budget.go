package crawl

import "sync/atomic"

// budget is how many pages this worker may still settle, for --max-pages. A
// page takes one when its request starts and gives it back when it is to be
// retried, so that a single process stops exactly at the limit. A fleet's
// fetchers set it from the counters of all shards.
type budget struct {
	limited atomic.Bool
	left    atomic.Int64
}

func (b *budget) set(left int64) {
	b.left.Store(left)
	b.limited.Store(true)
}

func (b *budget) take() bool {
	if !b.limited.Load() {
		return true
	}
	if b.left.Add(-1) >= 0 {
		return true
	}
	b.left.Add(1)
	return false
}

func (b *budget) giveBack() {
	if b.limited.Load() {
		b.left.Add(1)
	}
}

// spent reports whether no page may start now.
func (b *budget) spent() bool { return b.limited.Load() && b.left.Load() <= 0 }

// isSet reports whether there is a limit.
func (b *budget) isSet() bool { return b.limited.Load() }

// lift takes the limit away.
func (b *budget) lift() { b.limited.Store(false) }
