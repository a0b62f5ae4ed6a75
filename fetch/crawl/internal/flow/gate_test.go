package flow

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestGate(t *testing.T) {
	opened := 0
	f := NewGate(100, 1, time.Hour, func() { opened++ })
	stop := make(chan struct{})
	f.Add(99)
	if f.IsBlocked() || !f.Enter(t.Context(), stop) {
		t.Fatal("blocked below the bound")
	}
	f.Leave()
	f.Add(1)
	f.Add(50)
	var wg sync.WaitGroup
	var through atomic.Int32
	for range 10 {
		wg.Go(func() {
			if f.Enter(t.Context(), stop) {
				through.Add(1)
				f.End(0)
			}
		})
	}
	f.Add(-50)
	if !f.IsBlocked() || opened != 0 {
		t.Error("open at the bound")
	}
	f.Add(-1)
	wg.Wait()
	if through.Load() != 10 || opened != 1 {
		t.Errorf("%d of 10 got through, told %d times", through.Load(), opened)
	}
	f.Add(1)
	close(stop)
	if f.Enter(t.Context(), stop) {
		t.Error("a stop lets through")
	}
	if f.underway != 0 || len(f.line) != 0 {
		t.Errorf("%d are under way, %d in line", f.underway, len(f.line))
	}
}

// TestGateExpects: near the bound requests under way count as what their pages
// usually come to; far from it any number may be under way, however large pages are.
func TestGateExpects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewGate(100<<10, 1, time.Hour, func() {})
		for range 200 { // pages of 10 KB
			f.Enter(t.Context(), nil)
			f.Add(10 << 10)
			f.End(10 << 10)
			f.Add(-10 << 10)
		}
		enterAll := func(most int) (n int) {
			for ; n < most && f.hasRoom(); n++ {
				f.Enter(t.Context(), nil)
			}
			return n
		}
		f.Add(80 << 10)
		if n := enterAll(100); n < 2 || n > 3 {
			t.Errorf("%d requests of 10 KB each may start where 20 KB are left", n)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if f.Enter(ended, nil) || f.HoldsUp() || f.IsBlocked() {
			t.Error("one that was given up went in, or stays in line")
		}
		entered := make(chan bool)
		go func() { entered <- f.Enter(t.Context(), nil) }()
		synctest.Wait()
		if !f.HoldsUp() {
			t.Error("a request that waits holds nobody up")
		}
		f.Add(-10 << 10)
		if !<-entered || f.HoldsUp() {
			t.Error("room is not given to who waits")
		}
		f.Add(-70 << 10)
		if n := enterAll(100); n != 100 {
			t.Errorf("%d more may start although no page waits", n)
		}
		f = NewGate(100, 1, time.Hour, func() {})
		f.Enter(t.Context(), nil)
		f.End(1 << 20)
		if !f.hasRoom() {
			t.Error("no request may start since pages are usually larger than what all may hold")
		}
	})
}
