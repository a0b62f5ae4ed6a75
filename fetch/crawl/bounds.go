package crawl

import (
	"context"
	"math"
	"runtime/debug"
	"slices"
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
	granter int64 // seq of the claim that held and left are the answer to
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

// granted takes in what came of a claim, unless a later one was answered before it.
func (b *budget) granted(c frontier.PageClaim, g frontier.PageGrant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.Seq > b.granter {
		b.granter, b.held, b.left = c.Seq, g.Held, g.Left
	}
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

// flow bounds the bytes of pages that wait for the sink or for a slow shard. Above
// the bound no request starts; open pages go on. What requests under way are likely
// to bring counts too, up to a quarter of the bound: near it few start at a time, and
// where nothing waits any number may be under way, however slow sites are and however
// large their pages.
//
// It bounds too how many pages wait for the sink, and for how long: a crash has them
// fetched again.
type flow struct {
	max      int64
	maxPages int           // that wait for the sink
	maxWait  time.Duration // of the one that waits for longest
	onOpen   func()        // called when requests may start again

	mu       sync.Mutex
	bytes    int64 // of pages
	oldest   *page // of those that wait for the sink, see page.older
	newest   *page
	pages    int   // of them
	underway int64 // requests that may start or have
	usual    int64 // bytes of the page of one, by those that ended lately
	line     []chan struct{}
}

const (
	usualAtFirst = 4 << 10 // bytes
	usualOver    = 16      // pages that flow.usual is a mean over
)

func newFlow(cfg *Config, onOpen func()) *flow {
	return &flow{max: cfg.OpenBytes, maxPages: cfg.SinkPages, maxWait: cfg.SinkWait, onOpen: onOpen, usual: min(usualAtFirst, cfg.OpenBytes)}
}

// enter returns true when there is room for a request, which counts from then on;
// false when ctx or stop ended first. Those who wait are served in order.
func (f *flow) enter(ctx context.Context, stop <-chan struct{}) bool {
	f.mu.Lock()
	if len(f.line) == 0 && f.hasRoom() {
		f.underway++
		f.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	f.line = append(f.line, turn)
	f.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := slices.Index(f.line, turn); at >= 0 {
		f.line = slices.Delete(f.line, at, at+1)
		return false
	}
	f.underway--
	f.serve()
	return false
}

// leave takes back an enter that no request came of.
func (f *flow) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.underway--
	f.serve()
}

// end counts a request no longer, whose page holds so many bytes, which add counts.
func (f *flow) end(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.underway--
	f.usual += (size - f.usual) / usualOver
	f.serve()
}

// add counts n more (or, negative, fewer) bytes of pages.
func (f *flow) add(n int64) {
	if n == 0 {
		return
	}
	f.mu.Lock()
	was := f.isFull()
	f.bytes += n
	opened := was && !f.isFull()
	f.serve()
	f.mu.Unlock()
	if opened {
		f.onOpen()
	}
}

// writes counts a page that waits for the sink from now on.
func (f *flow) writes(p *page) {
	p.writtenAt = time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.older = f.newest; p.older == nil {
		f.oldest = p
	} else {
		p.older.newer = p
	}
	f.newest = p
	f.pages++
}

// wrote says that a page waits for the sink no longer.
func (f *flow) wrote(p *page) {
	f.mu.Lock()
	was := f.isFull()
	if p.older == nil {
		f.oldest = p.newer
	} else {
		p.older.newer = p.newer
	}
	if p.newer == nil {
		f.newest = p.older
	} else {
		p.newer.older = p.older
	}
	p.older, p.newer = nil, nil
	f.pages--
	opened := was && !f.isFull()
	f.serve()
	f.mu.Unlock()
	if opened {
		f.onOpen()
	}
}

// waiting is how many pages wait for the sink.
func (f *flow) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pages
}

// isFull reports whether pages take all that they may. Called with mu.
func (f *flow) isFull() bool { return f.bytes >= f.max || f.sinkLags() }

// sinkLags reports whether as many pages wait for the sink as may, or one as long as
// it may. Called with mu.
func (f *flow) sinkLags() bool {
	return f.pages >= f.maxPages || f.oldest != nil && time.Since(f.oldest.writtenAt) >= f.maxWait
}

// hasRoom reports whether one more request may start. Called with mu.
func (f *flow) hasRoom() bool {
	return f.bytes+min(f.underway*f.usual, f.max/4) < f.max && !f.sinkLags()
}

// serve lets those in who come first. Called with mu.
func (f *flow) serve() {
	for len(f.line) > 0 && f.hasRoom() {
		f.underway++
		close(f.line[0])
		f.line = f.line[1:]
	}
}

// blocked reports whether pages take all that they may.
func (f *flow) blocked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isFull()
}

// holdsUp reports whether requests wait for pages to go on.
func (f *flow) holdsUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isFull() || len(f.line) > 0
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
