package crawl

import (
	"context"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"seine/frontier"
)

// budget is how many pages may still be fetched under the crawl's page limit,
// Settings.MaxPages. The fetchers of a crawl hold pieces of the limit (frontier.Pages):
// a page takes one of this fetcher's when its request is about to start, and gives it
// back when it is to be fetched again later. So a fleet never starts more than the
// limit, and nobody reads all shards for it.
type budget struct {
	mu      sync.Mutex
	limit   int64 // 0 = none
	held    int64 // by this fetcher, settled ones among them
	left    int64 // held by nobody, as last told
	open    int64 // started and not settled
	settled int64 // since there is a limit
	seq     int64 // of the last claim
	need    chan struct{}
}

// take asks for one page.
func (b *budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit > 0 && b.settled+b.open >= b.held {
		b.ask()
		return false
	}
	b.open++
	if b.limit > 0 && b.held-b.settled-b.open < b.open/2 && b.left > 0 {
		b.ask() // before they run out
	}
	return true
}

// ask has a further piece claimed. Called with mu.
func (b *budget) ask() {
	select {
	case b.need <- struct{}{}:
	default:
	}
}

// giveBack returns one page: it was not fetched, or will be fetched again.
func (b *budget) giveBack() {
	b.mu.Lock()
	b.open--
	b.mu.Unlock()
}

// settle says that a page was fetched, for good.
func (b *budget) settle() {
	b.mu.Lock()
	b.open--
	b.settled++
	b.mu.Unlock()
}

// claim is what this fetcher would hold: what it settled and has open, and so many
// more; ok is false when there is no limit.
func (b *budget) claim(limit, more int64) (c frontier.PageClaim, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit == 0 {
		b.settled = 0 // the books begin with what was settled before
	}
	if b.limit = limit; limit <= 0 {
		return c, false
	}
	b.seq++
	return frontier.PageClaim{Limit: limit, Seq: b.seq, Settled: b.settled, Want: b.settled + b.open + more}, true
}

// granted takes in what came of a claim.
func (b *budget) granted(g frontier.PageGrant) {
	b.mu.Lock()
	b.held, b.left = g.Held, g.Left
	b.mu.Unlock()
}

// mayBorrow reports whether pages may start, or a further piece may be had.
func (b *budget) mayBorrow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.limit <= 0 || b.settled+b.open < b.held {
		return true
	}
	if b.left > 0 {
		b.ask()
	}
	return false
}

// spent reports whether no page may start now, and none is left for anybody.
func (b *budget) spent() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit > 0 && b.settled+b.open >= b.held && b.left == 0
}

// holds reports whether this fetcher holds pages that it does not need now.
func (b *budget) holds() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit > 0 && b.held > b.settled+b.open
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

// MemoryLimit is Config.Memory by default, bytes: what the runtime was told to keep within, or else a gigabyte.
func MemoryLimit() int64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return limit
	}
	return 1 << 30
}
