package flow

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A group has what came while it lingered or the last call was out, at most so many and
// in order.
func TestBatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := NewBatcher[int](3, time.Second)
		var groups [][]int
		var done sync.WaitGroup
		done.Go(func() {
			err := b.Run(ctx, func(_ context.Context, group []int) error {
				groups = append(groups, slices.Clone(group))
				time.Sleep(time.Minute)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait() // until it waits for the first
		for i := range 2 {
			b.Add(i)
			time.Sleep(time.Second / 4)
		}
		time.Sleep(time.Second)
		for i := range 5 {
			b.Add(2 + i)
		}
		time.Sleep(time.Hour)
		cancel()
		done.Wait()
		want := [][]int{{0, 1}, {2, 3, 4}, {5, 6}}
		if !slices.EqualFunc(groups, want, slices.Equal) {
			t.Errorf("%v, want %v", groups, want)
		}
	})
}

// What a call failed with waits again, before what came later, and Flush hands it on.
func TestBatcherFails(t *testing.T) {
	b, fault := NewBatcher[int](2, 0), errors.New("fault")
	for i := range 3 {
		b.Add(i)
	}
	if err := b.Run(t.Context(), func(context.Context, []int) error { b.Add(9); return fault }); err != fault {
		t.Fatal(err)
	}
	var got []int
	if err := b.Flush(t.Context(), func(_ context.Context, group []int) error { got = append(got, group...); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 1, 2, 9}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What waited when ctx ended is handed on all the same: a page whose record is written is
// settled if it still can be.
func TestBatcherEnds(t *testing.T) {
	b := NewBatcher[int](2, 0)
	for i := range 3 {
		b.Add(i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var got []int
	if err := b.Run(ctx, func(_ context.Context, group []int) error { got = append(got, group...); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
