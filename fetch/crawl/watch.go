package crawl

import (
	"context"
	"time"

	"seine/frontier"
)

// doneCheck is how often an idle worker asks whether the crawl has ended.
const doneCheck = 50 * time.Millisecond

// pollEvery is how often the counters of all shards are read.
const pollEvery = time.Second

// watch ends the worker when the crawl has nothing left, when it is at its page
// limit or when nothing happened for too long, and keeps what is shown about it
// current.
func (w *Worker) watch(ctx context.Context) {
	tick := time.NewTicker(doneCheck)
	defer tick.Stop()
	lastWork := time.Now()
	polled, reported := lastWork, lastWork
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if !w.quiet() {
				lastWork = now
			}
			if now.Sub(polled) >= pollEvery {
				polled = now
				w.judge()
				w.rate.note(w.count.done.Get()+w.count.dead.Get(), now)
				w.poll(ctx)
			}
			if w.cfg.Report != nil && now.Sub(reported) >= w.cfg.ReportEvery {
				reported = now
				w.cfg.Report(w.Progress())
			}
			if !w.isStopping() && w.over(ctx, now.Sub(lastWork)) {
				w.Stop()
			}
		}
	}
}

// poll reads the counters of all shards and sets the budget from them.
func (w *Worker) poll(ctx context.Context) {
	stats, err := w.cfg.Frontier.Stats(ctx)
	if err != nil {
		w.fail(ctx, err)
		return
	}
	var t frontier.ShardStats
	for i := range stats {
		s := &stats[i]
		t.Queued += s.Queued
		t.Waiting += s.Waiting
		t.Known += s.Known
		t.Done += s.Done
		t.Dead += s.Dead
	}
	w.totals.Store(&t)
	w.stats.Store(&stats)
	limit := w.policy.Load().settings.MaxPages
	switch {
	case limit <= 0:
		w.budget.lift()
	case !w.cfg.Exact || !w.budget.isSet(): // an only worker counts page by page
		w.budget.set(limit - t.Done - t.Dead)
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
