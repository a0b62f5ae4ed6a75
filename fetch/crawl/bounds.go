package crawl

import (
	"context"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// budget is how many pages may still be fetched under the crawl's page limit. A
// page takes one when its request is about to start and gives it back when it
// is to be fetched again later.
//
// What was settled by everybody is read from the shards now and then; what this
// crawler started and that reading cannot hold yet counts beside it. So a crawler
// never starts more than the limit leaves by what it knows; it borrows only
// while what all have settled and lent is below the limit, so a fleet
// overshoots by no more than it has lent. The only crawler of a crawl (exact)
// takes the first reading and counts on by itself: it ends exactly at the limit.
type budget struct {
	exact bool

	mu      sync.Mutex
	read    bool
	limit   int64 // 0 = none
	settled int64 // by everybody, as last read
	lent    int64 // to everybody, as last read
	open    int64 // started here and not part of settled
	ended   int64 // of open: will be part of settled at the next reading
}

// take asks for one page.
func (b *budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit > 0 && b.settled+b.open >= b.limit {
		return false
	}
	b.open++
	return true
}

// giveBack returns one page: it was not fetched, or will be fetched again.
func (b *budget) giveBack() {
	b.mu.Lock()
	b.open--
	b.mu.Unlock()
}

// countUnasked counts a URL that ends without a request. The counters of the
// shards do not tell it from a page, so it passes through as one, and
// countUnasked returns true, unless they are not read.
func (b *budget) countUnasked() bool {
	if b.exact {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
	return true
}

// end says that n pages were settled.
func (b *budget) end(n int64) {
	if b.exact {
		return
	}
	b.mu.Lock()
	b.ended += n
	b.mu.Unlock()
}

// mark is to be taken before the counters are read and handed to update.
func (b *budget) mark() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// update takes a new limit, 0 = none, and what all have settled and lent.
func (b *budget) update(limit, settled, lent, mark int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit, b.lent = limit, lent
	if b.exact && b.read {
		return
	}
	b.read = true
	b.settled = settled
	b.open -= mark
	b.ended -= mark
}

// left is how many pages may start now; ok is false when there is no limit.
func (b *budget) left() (n int64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit - b.settled - b.open, b.limit > 0
}

// mayBorrow reports whether more may be borrowed: pages are left that are not
// lent already.
func (b *budget) mayBorrow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit <= 0 {
		return true
	}
	return b.settled+b.open < b.limit && (b.exact || b.settled+b.lent < b.limit)
}

// spent reports whether no page may start now.
func (b *budget) spent() bool {
	n, ok := b.left()
	return ok && n <= 0
}

// flow bounds the bytes of pages that wait for the sink or for a slow shard.
// Above the bound no request starts; open pages go on.
type flow struct {
	max    int64
	onOpen func() // called when there is room again

	mu    sync.Mutex
	bytes int64
	open  chan struct{} // closed while there is room
}

func newFlow(max int64, onOpen func()) *flow {
	f := &flow{max: max, onOpen: onOpen, open: make(chan struct{})}
	close(f.open)
	return f
}

// add counts n more (or, negative, fewer) bytes.
func (f *flow) add(n int64) {
	if n == 0 {
		return
	}
	f.mu.Lock()
	was := f.bytes >= f.max
	f.bytes += n
	is := f.bytes >= f.max
	switch {
	case is && !was:
		f.open = make(chan struct{})
	case was && !is:
		close(f.open)
	}
	f.mu.Unlock()
	if was && !is {
		f.onOpen()
	}
}

// awaitRoom returns true when there is room, false when ctx or stop ended first.
func (f *flow) awaitRoom(ctx context.Context, stop <-chan struct{}) bool {
	f.mu.Lock()
	open := f.open
	f.mu.Unlock()
	select {
	case <-open:
		return true
	default:
	}
	select {
	case <-open:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}

// blocked reports whether requests wait for room.
func (f *flow) blocked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes >= f.max
}

// isHalf reports whether pages hold half of what they may, or more.
func (f *flow) isHalf() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes >= f.max/2
}

// held is the bytes that pages hold now.
func (f *flow) held() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
}

// youth is how long a fetcher lives before it borrows URLs that two fetchers
// died with: where processes are ended again and again, by whatever, a third
// death so soon says nothing about the URL.
const youth = 10 * time.Second

// lossPermit is the permit to borrow a URL that two fetchers were lost with,
// and that is dead if this one is. There is one, so that a loss falls on one
// such URL, and a young fetcher has none.
type lossPermit struct {
	began time.Time // when the fetcher was made
	taken atomic.Bool
}

func (lp *lossPermit) take() bool { return time.Since(lp.began) >= youth && !lp.taken.Swap(true) }

func (lp *lossPermit) giveBack() { lp.taken.Store(false) }

// visitBytes is what a lent site takes: its record, its URLs, its lease.
const visitBytes = 4 << 10

// memoryLimit is what the runtime was told to keep within, or else a gigabyte.
func memoryLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	return 1 << 30
}
