package crawl

import (
	"context"
	"time"

	"seine/frontier"
)

const (
	// look is how often the worker looks at itself.
	look = 50 * time.Millisecond
	// pollEvery is how often the counters of all shards are read, pollNear when
	// the page limit is near.
	pollEvery = time.Second
	pollNear  = 100 * time.Millisecond
	// maxDoneCheck is how often an idle worker asks at least whether the crawl has
	// ended; it begins with look.
	maxDoneCheck = time.Second
)

// watch ends the worker when the crawl has nothing left, when it is at its page
// limit or when nothing happened for too long, and keeps what is shown about it
// current.
func (w *Worker) watch(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	lastWork := time.Now()
	polled, judged, reported, asked := lastWork, lastWork, lastWork, lastWork
	var told troubles
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if !w.quiet() {
				lastWork = now
			}
			if now.Sub(polled) >= w.pollPause() {
				polled = now
				w.pollSoon(ctx)
			}
			if now.Sub(judged) >= pollEvery {
				judged = now
				w.judge()
				told.tell(w.cfg.Log, w.sight(now))
				w.rate.note(w.count.done.Get()+w.count.dead.Get(), now)
			}
			if w.cfg.Report != nil && now.Sub(reported) >= w.cfg.ReportEvery {
				reported = now
				w.cfg.Report(w.Progress())
			}
			idle := now.Sub(lastWork)
			if !w.isStopping() && now.Sub(asked) >= min(idle/4, maxDoneCheck) {
				asked = now
				if w.over(ctx, idle) {
					w.Stop()
				}
			}
		}
	}
}

// pollPause is how long the counters are good for.
func (w *Worker) pollPause() time.Duration {
	if w.nearLimit() {
		return pollNear
	}
	return pollEvery
}

// nearLimit reports whether a fleet may reach the page limit before the next
// reading.
func (w *Worker) nearLimit() bool {
	left, ok := w.budget.left()
	return ok && !w.cfg.Exact && left < 100*int64(w.cfg.Concurrency)
}

// pollTime bounds how long the watch waits for an answer: it has others to
// look after while a shard is silent.
const pollTime = 2 * time.Second

// pollSoon is poll that gives up when no answer comes in time; the old reading
// stands.
func (w *Worker) pollSoon(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	w.poll(short)
}

// poll reads the counters of all shards and sets the budget from them.
func (w *Worker) poll(ctx context.Context) {
	w.reading.Lock()
	defer w.reading.Unlock()
	w.read(ctx)
}

// reread is poll before borrowing close to the page limit, where an old reading
// will not do; one that began meanwhile for another lane will.
func (w *Worker) reread(ctx context.Context) {
	since := time.Now()
	w.reading.Lock()
	defer w.reading.Unlock()
	if w.readAt.Before(since) {
		w.read(ctx)
	}
}

// read is poll under the lock.
func (w *Worker) read(ctx context.Context) {
	w.readAt = time.Now()
	mark := w.budget.mark()
	stats, err := w.cfg.Frontier.Stats(ctx)
	if err != nil {
		w.fail(ctx, err) // a bounded ctx that ran out is no failure
		return
	}
	var t frontier.ShardStats
	for i := range stats {
		s := &stats[i]
		t.Queued += s.Queued
		t.Waiting += s.Waiting
		t.Known += s.Known
		t.Open += s.Open
		t.Done += s.Done
		t.Dead += s.Dead
	}
	w.totals.Store(&t)
	w.stats.Store(&stats)
	could := w.budget.mayLend()
	w.budget.update(w.policy.Load().settings.MaxPages, t.Done+t.Dead, t.Open, mark)
	if !could && w.budget.mayLend() {
		w.stirHungry()
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
		w.pollSoon(ctx) // what ended while the counters were read may have counted twice
		return w.quiet() && w.budget.spent()
	}
	if w.cfg.IdleTimeout > 0 && idle >= w.cfg.IdleTimeout {
		return true
	}
	if !w.cfg.ExitWhenDone {
		return false
	}
	short, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	done, err := w.cfg.Frontier.Finished(short)
	if err != nil {
		w.fail(short, err)
		return false
	}
	return done
}
