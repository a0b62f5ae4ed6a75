package crawl

import (
	"context"
	"time"

	"seine/frontier"
)

// doneCheck is how often an idle worker asks whether the crawl has ended.
const doneCheck = 200 * time.Millisecond

// watch ends the worker when the crawl has nothing left, when it is at its page
// limit or when nothing happened for too long, and keeps what is shown about it
// current.
func (w *Worker) watch(ctx context.Context) {
	tick := time.NewTicker(doneCheck)
	defer tick.Stop()
	var judged, polled time.Time
	lastWork := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.stopping:
			return
		case now := <-tick.C:
			if now.Sub(judged) >= time.Second {
				judged = now
				w.judge()
			}
			if !w.quiet() {
				lastWork = now
			}
			if now.Sub(polled) >= time.Second {
				polled = now
				w.keepLimit(ctx)
			}
			if w.over(ctx, now.Sub(lastWork)) {
				w.Stop()
				w.stirAll()
				return
			}
		}
	}
}

// quiet reports whether this worker has nothing in hand.
func (w *Worker) quiet() bool {
	if w.loaned.Load() > 0 {
		return false
	}
	for _, l := range w.lanes {
		if !l.admits.empty() {
			return false
		}
	}
	return true
}

// over decides whether to end; idle is for how long nothing was in hand.
func (w *Worker) over(ctx context.Context, idle time.Duration) bool {
	if !w.quiet() {
		return false
	}
	if w.budget.spent() && (w.cfg.Exact || w.cfg.ExitWhenDone) {
		return true
	}
	if w.cfg.IdleTimeout > 0 && idle >= w.cfg.IdleTimeout {
		return true
	}
	if !w.cfg.ExitWhenDone {
		return false
	}
	done, err := w.cfg.Frontier.Finished(ctx)
	if err != nil {
		w.fail(ctx, err)
		return true
	}
	return done
}

// keepLimit sets the budget from the counters of all shards.
func (w *Worker) keepLimit(ctx context.Context) {
	limit := w.policy.Load().settings.MaxPages
	if limit <= 0 {
		w.budget.lift()
		return
	}
	if w.cfg.Exact && w.budget.isSet() {
		return // counted page by page
	}
	stats, err := w.cfg.Frontier.Stats(ctx)
	if err != nil {
		w.fail(ctx, err)
		return
	}
	w.budget.set(limit - settledPages(stats))
}

func settledPages(stats []frontier.ShardStats) int64 {
	var n int64
	for i := range stats {
		n += stats[i].Done + stats[i].Dead
	}
	return n
}

func (w *Worker) stirAll() {
	for _, l := range w.lanes {
		l.stir()
	}
}
