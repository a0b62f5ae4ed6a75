// Package flow is what happens to the results of a fetcher's work on their way back to the
// shards: they are gathered into batches, and what waits is bounded.
//
// The nouns: a Batcher gathers values of one kind for one shard and hands them on in
// groups. The Admitter of a shard gathers candidates, and OverflowQueue writes those that
// find no room. The Deduper of a shard compares contents. A Shard knows how its server
// answers. A Gate bounds the bytes of pages that wait for the sink or for a shard, and lets
// requests start. A Budget is this fetcher's part of the crawl's page limit. KnownURLs are
// the URLs that shards are known to have, so that links to them never travel.
//
// Whoever makes a value adds it, from any goroutine. One goroutine runs each Batcher, so
// one call of its kind to a shard is under way at a time. The next group grows meanwhile.
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
	most   int         // values of a group
	size   func(T) int // how many values one counts as; nil: one
	linger time.Duration
	wake   chan struct{}

	mu      sync.Mutex
	waiting []T
	first   int // of them, that still waits
}

// keptGroups is for how many groups the memory is kept while nothing waits.
const keptGroups = 16

// NewBatcher returns a Batcher of groups of up to most values. The first value of a group
// waits for linger for others.
func NewBatcher[T any](most int, linger time.Duration) *Batcher[T] {
	return &Batcher[T]{most: most, linger: linger, wake: make(chan struct{}, 1)}
}

// Add adds a value. It does not block.
func (b *Batcher[T]) Add(value T) {
	b.mu.Lock()
	b.waiting = append(b.waiting, value)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// nextGroup moves the values that have waited longest into the memory of group.
func (b *Batcher[T]) nextGroup(group []T) []T {
	clear(group)
	b.mu.Lock()
	defer b.mu.Unlock()
	end := min(len(b.waiting), b.first+b.most)
	if b.size != nil {
		end = b.first
		for n := 0; end < len(b.waiting) && n < b.most; end++ {
			n += b.size(b.waiting[end])
		}
	}
	group = append(group[:0], b.waiting[b.first:end]...)
	clear(b.waiting[b.first:end])
	b.first = end
	switch rest := len(b.waiting) - end; {
	case rest == 0 && cap(b.waiting) > keptGroups*b.most:
		b.waiting, b.first = nil, 0
	case rest <= end: // so each value moves once at most, on average
		copy(b.waiting, b.waiting[end:])
		clear(b.waiting[rest:])
		b.waiting, b.first = b.waiting[:rest], 0
	}
	return group
}

// Run hands groups to send until send fails, whose error it returns, or nothing waits and
// ctx has ended. A group is valid during the call only; one that send failed with waits
// again, before all others.
func (b *Batcher[T]) Run(ctx context.Context, send func(ctx context.Context, group []T) error) error {
	var group []T
	for {
		if group = b.nextGroup(group); len(group) > 0 {
			if err := send(ctx, group); err != nil {
				b.returnGroup(group)
				return err
			}
			continue
		}
		select {
		case <-b.wake:
			Sleep(ctx, nil, b.linger)
		case <-ctx.Done():
			return nil
		}
	}
}

// Flush hands on what waits now, unless send fails, whose error it returns.
func (b *Batcher[T]) Flush(ctx context.Context, send func(ctx context.Context, group []T) error) error {
	for {
		group := b.nextGroup(nil)
		if len(group) == 0 {
			return nil
		}
		if err := send(ctx, group); err != nil {
			b.returnGroup(group)
			return err
		}
	}
}

// returnGroup has a group wait again, before all others.
func (b *Batcher[T]) returnGroup(group []T) {
	b.mu.Lock()
	b.waiting, b.first = slices.Concat(group, b.waiting[b.first:]), 0
	b.mu.Unlock()
}
