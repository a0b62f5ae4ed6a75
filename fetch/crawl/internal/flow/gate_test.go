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
	f.AddBytes(99)
	if f.IsBlocked() || !f.EnterRequest(t.Context(), stop) {
		t.Fatal("blocked below the bound")
	}
	f.LeaveUnused()
	f.AddBytes(1)
	f.AddBytes(50)
	var wg sync.WaitGroup
	var through atomic.Int32
	for range 10 {
		wg.Go(func() {
			if f.EnterRequest(t.Context(), stop) {
				through.Add(1)
				f.EndRequest(0)
			}
		})
	}
	f.AddBytes(-50)
	if !f.IsBlocked() || opened != 0 {
		t.Error("open at the bound")
	}
	f.AddBytes(-1)
	wg.Wait()
	if through.Load() != 10 || opened != 1 {
		t.Errorf("%d of 10 got through, onOpen came %d times", through.Load(), opened)
	}
	f.AddBytes(1)
	close(stop)
	if f.EnterRequest(t.Context(), stop) {
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
			f.EnterRequest(t.Context(), nil)
			f.AddBytes(10 << 10)
			f.EndRequest(10 << 10)
			f.AddBytes(-10 << 10)
		}
		enterAll := func(most int) (n int) {
			for ; n < most && f.hasRoom(); n++ {
				f.EnterRequest(t.Context(), nil)
			}
			return n
		}
		f.AddBytes(80 << 10)
		if n := enterAll(100); n < 2 || n > 3 {
			t.Errorf("%d requests of 10 KB each may start where 20 KB are left", n)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if f.EnterRequest(ended, nil) || f.HoldsUp() || f.IsBlocked() {
			t.Error("one that was given up went in, or stays in line")
		}
		entered := make(chan bool)
		go func() { entered <- f.EnterRequest(t.Context(), nil) }()
		synctest.Wait()
		if !f.HoldsUp() {
			t.Error("a request that waits holds nobody up")
		}
		f.AddBytes(-10 << 10)
		if !<-entered || f.HoldsUp() {
			t.Error("room is not given to who waits")
		}
		f.AddBytes(-70 << 10)
		if n := enterAll(100); n != 100 {
			t.Errorf("%d more may start although no page waits", n)
		}
		f = NewGate(100, 1, time.Hour, func() {})
		f.EnterRequest(t.Context(), nil)
		f.EndRequest(1 << 20)
		if !f.hasRoom() {
			t.Error("no request may start since pages are usually larger than what all may hold")
		}
	})
}
