package crawl

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"seine/frontier"
)

// limited notes how often it was asked for visits, and by a young fetcher.
type limited struct {
	Frontier
	asked, young atomic.Int64
}

func (l *limited) Visit(ctx context.Context, k int, due []frontier.Ticket, limits frontier.VisitLimits) ([]frontier.Visit, error) {
	l.asked.Add(1)
	if limits.Young {
		l.young.Add(1)
	}
	return l.Frontier.Visit(ctx, k, due, limits)
}

// TestYoung: for its first seconds a worker says that it may end at any moment.
func TestYoung(t *testing.T) {
	t.Run("new", func(t *testing.T) { testYoung(t, true) })
	t.Run("old", func(t *testing.T) { testYoung(t, false) })
}

func testYoung(t *testing.T, young bool) {
	w := newWeb(t)
	w.page("/")
	r := newRig(t, w, nil)
	l := &limited{Frontier: r.cfg.Frontier}
	r.cfg.Frontier = l
	r.seed("http://a.example/")
	worker := r.worker()
	if worker.began = time.Now().Add(-youth); young {
		worker.began = time.Now().Add(time.Hour) // however long the test takes
	}
	if err := r.start(worker)(); err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	if young {
		want = l.asked.Load()
	}
	if l.asked.Load() == 0 || l.young.Load() != want {
		t.Errorf("asked %d times, %d of them as a young one", l.asked.Load(), l.young.Load())
	}
}
