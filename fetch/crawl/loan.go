package crawl

import (
	"context"
	"sync"
	"time"

	"seine/fetch"
	"seine/frontier"
)

// loan is one visit in this fetcher's hands: the URLs it may fetch, the site's
// clock while it lasts, and what became of each URL.
//
// One goroutine (run) starts its requests. Outcomes come in from wherever a
// page's last acknowledgement arrives, and leave in batches by the lane's
// settler. The site is freed as soon as its last request ended; the loan lives
// on, and its lease with it, until its last URL is settled.
type loan struct {
	lane   *lane
	visit  frontier.Visit
	ctx    context.Context // ends when the lease is lost or the program is
	cancel context.CancelFunc
	extra  [][2]string // headers of this site only

	// Of the visit's goroutine: why every URL of this visit is dead, once that is known.
	doomed string // cause
	doom   string // text

	mu       sync.Mutex
	pace     pace
	deadline time.Time
	open     int // URLs not settled yet
	outcomes []frontier.Outcome
	free     *frontier.Release
	freed    bool // the site was given back
	dirty    bool // waits in the settler; guarded by the settler's lock
	over     bool // no further request in this visit: its site failed too often
}

func newLoan(ln *lane, v frontier.Visit) *loan {
	l := &loan{lane: ln, visit: v, deadline: v.Deadline, open: len(v.Items)}
	l.ctx, l.cancel = context.WithCancel(ln.w.ctx)
	p := ln.w.policy.Load()
	rule := p.rule(v.Site, v.Override)
	l.pace = newPace(p.settings, rule, v)
	l.extra = extraHeaders(rule)
	return l
}

// run makes the visit's requests and frees the site.
func (l *loan) run() {
	defer l.lane.w.running.Done()
	t := turn{loan: l, reserved: true}
	var inFlight sync.WaitGroup
	gate := make(chan struct{}, l.pace.perSite)
	for i := range l.visit.Items {
		item := &l.visit.Items[i]
		if !t.permitted(item) {
			if t.refused {
				t.refused = false
				continue // settled as dead
			}
			l.requeue(l.visit.Items[i:])
			break
		}
		if l.pace.perSite <= 1 {
			t.hand.visitURL(l, item, nil)
			continue
		}
		gate <- struct{}{}
		wk := t.hand
		t.hand = nil
		sent := make(chan struct{})
		inFlight.Go(func() {
			wk.visitURL(l, item, sync.OnceFunc(func() { close(sent) }))
			l.lane.w.slots.release(wk)
			<-gate
		})
		<-sent // the clock runs from there
	}
	inFlight.Wait()
	t.end()
	l.release()
}

// turn is what a visit holds while it waits to make its next request.
type turn struct {
	loan     *loan
	hand     *hand // a slot, when held
	reserved bool  // the lane counted this visit's first demand already
	refused  bool  // permitted settled the URL itself
}

// permitted waits until the site's clock, a slot and the lease allow a request,
// and robots.txt allows this URL. False with refused: the URL was settled;
// false without: the visit is over.
func (t *turn) permitted(item *frontier.Item) bool {
	for {
		if !t.wait() {
			return false
		}
		switch t.hand.judge(t.loan, item) {
		case judgedAllowed:
			if t.loan.lane.w.budget.take() {
				return true
			}
			return false
		case judgedSettled:
			t.refused = true
			return false
		case judgedWait: // robots.txt was fetched: the clock has moved
		case judgedOver:
			return false
		}
	}
}

// wait sleeps until the site's clock allows a request, without a slot if it
// has to, and then holds one.
func (t *turn) wait() bool {
	l, w := t.loan, t.loan.lane.w
	for {
		if !l.mayGoOn() {
			return false
		}
		pause := l.untilNext()
		if pause <= 0 && t.hand != nil {
			return true
		}
		if pause > 0 {
			t.end()
			w.resting.Add(1)
			ok := sleep(l.ctx, w.stopping, pause)
			w.resting.Add(-1)
			if !ok {
				return false
			}
		}
		wk, err := w.slots.acquire(l.ctx, t.reserved)
		t.reserved = false
		if err != nil {
			return false
		}
		t.hand = wk
	}
}

// end gives back what the turn holds.
func (t *turn) end() {
	if t.hand != nil {
		t.loan.lane.w.slots.release(t.hand)
		t.hand = nil
	}
	if t.reserved {
		t.loan.lane.w.slots.unreserve(1)
		t.reserved = false
	}
}

// mayGoOn reports whether the visit may start another request: the lease has
// room, the program is not stopping, the site not set aside.
func (l *loan) mayGoOn() bool {
	w := l.lane.w
	if l.ctx.Err() != nil || w.isStopping() || !w.flow.wait(l.ctx, w.stopping) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.over && time.Until(l.deadline) > w.cfg.Lease/4
}

func (l *loan) untilNext() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pace.next.IsZero() {
		return 0
	}
	return time.Until(l.pace.next)
}

// requeue gives URLs back that were not tried.
func (l *loan) requeue(items []frontier.Item) {
	l.mu.Lock()
	for i := range items {
		l.outcomes = append(l.outcomes, frontier.Outcome{Index: items[i].Index, Kind: frontier.Requeue})
	}
	l.mu.Unlock()
	l.lane.settles.add(l)
}

// settle records what became of one URL.
func (l *loan) settle(o frontier.Outcome) {
	l.mu.Lock()
	l.outcomes = append(l.outcomes, o)
	l.mu.Unlock()
	l.lane.settles.add(l)
}

// release frees the site: its last request has ended.
func (l *loan) release() {
	l.mu.Lock()
	d, why := l.pace.delay()
	l.free = &frontier.Release{
		Remain:   max(0, time.Until(l.pace.next)),
		Delay:    d,
		Why:      why,
		Failures: l.pace.failures,
	}
	l.mu.Unlock()
	l.lane.settles.add(l)
}

// extend moves the lease, or ends it.
func (l *loan) extend(deadline time.Time) {
	l.mu.Lock()
	l.deadline = deadline
	l.mu.Unlock()
}

// requested moves the clock for a request that was made, whatever came of it.
func (l *loan) requested(r *fetch.Response, began time.Time, err error) {
	if !r.Start.IsZero() {
		began = r.Start
	}
	latency := r.FirstByte
	if err != nil {
		latency = 0
	}
	l.lane.w.ended.Store(time.Now().UnixMilli())
	l.mu.Lock()
	l.pace.started(began, latency)
	l.mu.Unlock()
}

// answered and refused let the delay follow the site's answers.
func (l *loan) answered() {
	l.mu.Lock()
	l.pace.answered()
	l.mu.Unlock()
}

func (l *loan) refused(after time.Duration) {
	l.mu.Lock()
	l.pace.refused(after)
	l.mu.Unlock()
}

// failedOften reports whether the site failed so often in a row that trying
// more of its URLs would only burn their attempts.
func (l *loan) failedOften() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pace.failures >= asideAfter
}

// givenUp reports whether the site has been set aside for so long in all.
func (l *loan) givenUp(limit time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return asideTotal(l.pace.failures) >= limit
}

// setAside ends the visit and keeps the site waiting, longer each time.
func (l *loan) setAside() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.pace.failures++
	l.pace.holdUntil(time.Now().Add(asideFor(l.pace.failures)))
}

// headers are the extra headers of this site.
func (l *loan) headers() [][2]string { return l.extra }

// sleep waits for d, ctx or stop; it reports whether d passed.
func sleep(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	}
}
