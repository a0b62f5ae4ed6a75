package flow

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Gate bounds the bytes of pages that wait for the sink or for a slow shard. Above
// the bound no request starts; open pages go on. What requests under way are likely
// to bring counts too, up to a quarter of the bound: near it few start at a time, and
// where nothing waits any number may be under way, however slow sites are and however
// large their pages.
//
// It bounds too how many pages wait for the sink, and for how long: a crash has them
// fetched again.
type Gate struct {
	max      int64
	maxPages int           // that wait for the sink
	maxWait  time.Duration // of the one that waits for longest
	onOpen   func()        // called when requests may start again

	mu       sync.Mutex
	bytes    int64    // of pages
	oldest   *Waiting // of those that wait for the sink
	newest   *Waiting
	pages    int   // of them
	underway int64 // requests that may start or have
	usual    int64 // bytes of the page of one, by those that ended lately
	line     []chan struct{}
}

const (
	usualAtFirst = 4 << 10 // bytes
	usualOver    = 16      // pages that Gate.usual is a mean over
)

// Waiting is what the gate keeps of a page that waits for the sink. The page holds it.
type Waiting struct {
	since        time.Time
	older, newer *Waiting
}

// NewGate returns a gate that is full at maxBytes, at maxPages that wait for the sink, or
// when one has waited for maxWait. onOpen is called when requests may start again.
func NewGate(maxBytes int64, maxPages int, maxWait time.Duration, onOpen func()) *Gate {
	return &Gate{max: maxBytes, maxPages: maxPages, maxWait: maxWait, onOpen: onOpen, usual: min(usualAtFirst, maxBytes)}
}

// EnterRequest returns true when there is room for a request, which counts from then on;
// false when ctx or stop ended first. Those who wait are served in order.
func (g *Gate) EnterRequest(ctx context.Context, stop <-chan struct{}) bool {
	g.mu.Lock()
	if len(g.line) == 0 && g.hasRoom() {
		g.underway++
		g.mu.Unlock()
		return true
	}
	entry := make(chan struct{})
	g.line = append(g.line, entry)
	g.mu.Unlock()
	select {
	case <-entry:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := slices.Index(g.line, entry); at >= 0 {
		g.line = slices.Delete(g.line, at, at+1)
		return false
	}
	g.underway--
	g.serve()
	return false
}

// LeaveUnused takes back an EnterRequest that no request came of.
func (g *Gate) LeaveUnused() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.underway--
	g.serve()
}

// EndRequest counts a request no longer, whose page holds so many bytes, which AddBytes
// counts.
func (g *Gate) EndRequest(size int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.underway--
	g.usual += (size - g.usual) / usualOver
	g.serve()
}

// AddBytes counts n more (or, negative, fewer) bytes of pages.
func (g *Gate) AddBytes(n int64) {
	if n == 0 {
		return
	}
	g.mu.Lock()
	was := g.isFull()
	g.bytes += n
	opened := was && !g.isFull()
	g.serve()
	g.mu.Unlock()
	if opened {
		g.onOpen()
	}
}

// EnterSink counts a page that waits for the sink from now on.
func (g *Gate) EnterSink(p *Waiting) {
	p.since = time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.older = g.newest; p.older == nil {
		g.oldest = p
	} else {
		p.older.newer = p
	}
	g.newest = p
	g.pages++
}

// LeaveSink counts a page that waits for the sink no longer.
func (g *Gate) LeaveSink(p *Waiting) {
	g.mu.Lock()
	was := g.isFull()
	if p.older == nil {
		g.oldest = p.newer
	} else {
		p.older.newer = p.newer
	}
	if p.newer == nil {
		g.newest = p.older
	} else {
		p.newer.older = p.older
	}
	p.older, p.newer = nil, nil
	g.pages--
	opened := was && !g.isFull()
	g.serve()
	g.mu.Unlock()
	if opened {
		g.onOpen()
	}
}

// WaitingPages is how many pages wait for the sink.
func (g *Gate) WaitingPages() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pages
}

// isFull reports whether pages take all that they may. Called with mu.
func (g *Gate) isFull() bool { return g.bytes >= g.max || g.sinkLags() }

// sinkLags reports whether as many pages wait for the sink as may, or one as long as
// it may. Called with mu.
func (g *Gate) sinkLags() bool {
	return g.pages >= g.maxPages || g.oldest != nil && time.Since(g.oldest.since) >= g.maxWait
}

// hasRoom reports whether one more request may start. Called with mu.
func (g *Gate) hasRoom() bool {
	return g.bytes+min(g.underway*g.usual, g.max/4) < g.max && !g.sinkLags()
}

// serve lets those in who come first. Called with mu.
func (g *Gate) serve() {
	for len(g.line) > 0 && g.hasRoom() {
		g.underway++
		close(g.line[0])
		g.line = g.line[1:]
	}
}

// IsBlocked reports whether pages take all that they may.
func (g *Gate) IsBlocked() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isFull()
}

// HoldsUp reports whether requests wait for pages to go on.
func (g *Gate) HoldsUp() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isFull() || len(g.line) > 0
}

// IsHalf reports whether pages hold half of what they may, or more.
func (g *Gate) IsHalf() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bytes >= g.max/2
}

// Bytes is the bytes that pages hold now.
func (g *Gate) Bytes() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bytes
}

// Underway is how many requests may start or have, and how many wait to.
func (g *Gate) Underway() (requests int64, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.underway, len(g.line)
}
