package crawl

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"seine/fetch/crawl/internal/site"
	"seine/frontier"
)

// risky is a frontier whose every URL was lost twice.
type risky struct {
	Frontier
	asked, safe, out, most atomic.Int64
}

// Tick names one site at a time, so that none is claimed for nothing.
func (r *risky) Tick(ctx context.Context, k int, req frontier.TickRequest) (frontier.TickReply, error) {
	req.Want = min(req.Want, 1)
	return r.Frontier.Tick(ctx, k, req)
}

func (r *risky) Visit(ctx context.Context, k int, due []frontier.Ticket, limits frontier.VisitLimits) ([]frontier.Visit, error) {
	r.asked.Add(1)
	if limits.Safe {
		r.safe.Add(1)
		return nil, nil
	}
	limits.URLs = 1
	visits, err := r.Frontier.Visit(ctx, k, due, limits)
	for i := range visits {
		visits[i].Items[0].Lost = 2
		r.most.Store(max(r.most.Load(), r.out.Add(1)))
	}
	return visits, err
}

func (r *risky) Settle(ctx context.Context, k int, batch []frontier.Settlement) ([]frontier.Settled, error) {
	settled, err := r.Frontier.Settle(ctx, k, batch)
	for _, s := range settled {
		r.out.Add(-int64(len(s.Outcomes)))
	}
	return settled, err
}

// newRisky is a rig of pages of many sites that were all lost twice.
func newRisky(t *testing.T) (*rig, *risky) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	queue := &risky{Frontier: r.cfg.Frontier}
	r.cfg.Frontier = queue
	for _, site := range []string{"a", "b", "c", "d"} {
		r.seed("http://" + site + ".example/")
	}
	return r, queue
}

// TestLossPermit: a fetcher that is old enough leases one URL at a time that dies
// with it, of whatever shard, and comes to the end of them.
func TestLossPermit(t *testing.T) {
	t.Parallel()
	r, queue := newRisky(t)
	crawler := r.crawler()
	crawler.lossPermit.Began = time.Now().Add(-site.WarmUp)
	if err := r.start(crawler)(); err != nil {
		t.Fatal(err)
	}
	if s := r.stats(); s.Done+s.Dead != 4 {
		t.Errorf("at the end %+v", s)
	}
	if n := queue.most.Load(); n != 1 {
		t.Errorf("%d were out at a time, want 1", n)
	}
	if crawler.lossPermit.IsAcquired() {
		t.Error("the permit was not given back")
	}
}

// TestYoung: a fetcher that has just begun leases none.
func TestYoung(t *testing.T) {
	t.Parallel()
	r, queue := newRisky(t)
	crawler := r.crawler()
	crawler.lossPermit.Began = time.Now().Add(time.Hour) // however long the test takes
	wait := r.start(crawler)
	until(t, "every shard is asked", func() bool { return queue.asked.Load() > 10 })
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if asked, safe := queue.asked.Load(), queue.safe.Load(); safe != asked {
		t.Errorf("asked %d times, %d of them without the risk", asked, safe)
	}
}
