package crawl

import (
	"context"
	"sync"
)

// flow bounds the bytes of pages that wait for the sink or for a slow shard.
// Above the bound no request starts; pages in hand go on.
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

// wait returns true when there is room, false when ctx or stop ended first.
func (f *flow) wait(ctx context.Context, stop <-chan struct{}) bool {
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

// held is the bytes that pages hold now.
func (f *flow) held() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes
}
