package crawl

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seine/frontier"
)

// lengths notes how many URLs each visit has.
type lengths struct {
	Frontier
	mu  sync.Mutex
	all []int
}

func (ls *lengths) Visit(ctx context.Context, k int, due []frontier.Ticket, limits frontier.VisitLimits) ([]frontier.Visit, error) {
	visits, err := ls.Frontier.Visit(ctx, k, due, limits)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, v := range visits {
		ls.all = append(ls.all, len(v.Items))
	}
	return visits, err
}

// A visit of a site without delay is longer than others, unless it is slow: then it
// ends after the usual time, and what was not asked for goes back in order.
func TestUndelayed(t *testing.T) {
	for _, c := range []struct {
		what string
		slow time.Duration // the first answer
		want []int
	}{
		{"quick", 0, []int{9, 3}},
		{"slow", visitSpan + time.Second, []int{9, 9}},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := newWeb(t)
			w.rest(text(200, "x"))
			r := newRig(t, w, func(s *frontier.Settings) { s.VisitURLs, s.Robots = 3, "ignore" })
			queue := &lengths{Frontier: r.cfg.Frontier}
			r.cfg.Frontier = queue
			var passed atomic.Int64
			r.cfg.Elapsed = func() time.Duration { return systemElapsed() + time.Duration(passed.Load()) }
			w.on("/p0", func(rw http.ResponseWriter, _ *http.Request) { passed.Store(int64(c.slow)) })
			var want []string
			for i := range 12 {
				want = append(want, fmt.Sprintf("/p%d", i))
				r.seed("http://a.example" + want[i])
			}
			r.run()
			var got []string
			for _, a := range w.requests("", false) {
				got = append(got, a.path)
			}
			if !slices.Equal(got, want) {
				t.Errorf("asked for %v", got)
			}
			if !slices.Equal(queue.all, c.want) {
				t.Errorf("visits of %v URLs, not %v", queue.all, c.want)
			}
			r.checkEmpty()
		})
	}
}
