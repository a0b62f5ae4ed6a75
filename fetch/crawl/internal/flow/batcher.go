// Package flow is what happens to the results of a fetcher's work on their way back to the
// shards: they are gathered into batches, and what waits is bounded.
//
// The nouns: a Batcher gathers values of one kind for one shard and hands them on in
// groups. A Gate bounds the bytes of pages that wait for the sink or for a shard, and lets
// requests start. A Budget is this fetcher's part of the crawl's page limit. KnownURLs are
// the URLs that shards are known to have, so that links to them never travel.
//
// Whoever makes a value adds it, from any goroutine; one goroutine runs each Batcher, so
// one call to a shard is under way at a time, and the next group grows meanwhile.
//
// A crash loses what waits here. Nothing of it is settled: its URLs come back when their
// lease ends, and what only saves work is asked for again.
package flow

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Batcher gathers values and hands them on in groups.
type Batcher[T any] struct {
	most   int
	linger time.Duration
	wake   chan struct{}

	mu      sync.Mutex
	waiting []T
}

// NewBatcher returns a Batcher of groups of up to most values. The first value of a group
// waits for linger for others.
func NewBatcher[T any](most int, linger time.Duration) *Batcher[T] {
	return &Batcher[T]{most: most, linger: linger, wake: make(chan struct{}, 1)}
}

// Add takes a value over. It does not block.
func (b *Batcher[T]) Add(value T) {
	b.mu.Lock()
	b.waiting = append(b.waiting, value)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// takeGroup moves the values that have waited longest into the memory of group.
func (b *Batcher[T]) takeGroup(group []T) []T {
	clear(group)
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), b.most)
	group = append(group[:0], b.waiting[:n]...)
	rest := copy(b.waiting, b.waiting[n:])
	clear(b.waiting[rest:])
	b.waiting = b.waiting[:rest]
	return group
}

// Run hands groups to send until send fails, whose error it returns, or nothing waits and
// ctx has ended. A group is valid during the call only; one that send failed with waits
// again, before all others.
func (b *Batcher[T]) Run(ctx context.Context, send func(ctx context.Context, group []T) error) error {
	var group []T
	for {
		if group = b.takeGroup(group); len(group) > 0 {
			if err := send(ctx, group); err != nil {
				b.putBack(group)
				return err
			}
			continue
		}
		select {
		case <-b.wake:
			wait(ctx, b.linger)
		case <-ctx.Done():
			return nil
		}
	}
}

// Flush hands on what waits now, unless send fails, whose error it returns.
func (b *Batcher[T]) Flush(ctx context.Context, send func(ctx context.Context, group []T) error) error {
	for {
		group := b.takeGroup(nil)
		if len(group) == 0 {
			return nil
		}
		if err := send(ctx, group); err != nil {
			b.putBack(group)
			return err
		}
	}
}

func (b *Batcher[T]) putBack(group []T) {
	b.mu.Lock()
	b.waiting = slices.Concat(group, b.waiting)
	b.mu.Unlock()
}

// wait waits for d or ctx.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
