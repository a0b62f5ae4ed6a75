package crawl

import (
	"context"
	"sync"
	"time"

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

	// Of the visit's goroutine:
	policy *policy // that pace and extra were made of

	mu       sync.Mutex
	pace     pace
	extra    [][2]string // headers of this site only; replaced, never changed
	deadline time.Time
	doomed   *doom // why no URL of this visit is asked for, once that is known
	over     bool  // no further request in this visit: its site failed too often
	open     int   // URLs not settled yet
	outcomes []frontier.Outcome
	free     *frontier.Release
	freed    bool // the site was given back
	dirty    bool // waits in the settler; guarded by the settler's lock
}

// doom is why URLs end without being asked for.
type doom struct{ cause, text string }

func newLoan(ln *lane, v frontier.Visit) *loan {
	l := &loan{lane: ln, visit: v, deadline: v.Deadline, open: len(v.Items)}
	l.ctx, l.cancel = context.WithCancel(ln.w.ctx)
	l.pace = pace{failures: v.Failures}
	if v.Why == whyAdaptive {
		l.pace.adaptive = v.Delay
	}
	l.follow(ln.w.policy.Load())
	l.doomed = ln.w.given.get(v.Site)
	return l
}

// follow takes the crawl's settings over, which may change during a visit.
func (l *loan) follow(p *policy) {
	if p == l.policy {
		return
	}
	l.policy = p
	rule := p.rule(l.visit.Site, l.visit.Override)
	extra := extraHeaders(p.settings.UserAgent, rule)
	l.mu.Lock()
	l.extra = extra
	l.pace.set(p.settings, rule)
	l.mu.Unlock()
}

// headers are the extra headers of this site.
func (l *loan) headers() [][2]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.extra
}

// run makes the visit's requests and frees the site.
func (l *loan) run() {
	t := turn{loan: l, reserved: true}
	if l.pace.perSite <= 1 {
		l.oneByOne(&t)
	} else {
		l.sideBySide(&t, l.pace.perSite)
	}
	l.release()
}

// oneByOne makes the requests of a site that is asked for one page at a time.
func (l *loan) oneByOne(t *turn) {
	defer t.end()
	for i := range l.visit.Items {
		item := &l.visit.Items[i]
		switch t.permitted(item) {
		case judgedAllowed:
			t.hand.visitURL(l, item, nil)
		case judgedOver:
			l.requeue(l.visit.Items[i:])
			return
		}
	}
}

// sideBySide lets up to n requests be under way. Their starts keep the delay:
// the site's clock moves when a request has gone out.
func (l *loan) sideBySide(t *turn, n int) {
	var under sync.WaitGroup
	defer under.Wait()
	defer t.end()
	gate := make(chan struct{}, n)
	for i := range l.visit.Items {
		item := &l.visit.Items[i]
		gate <- struct{}{}
		switch t.permitted(item) {
		case judgedSettled:
			<-gate
			continue
		case judgedOver:
			l.requeue(l.visit.Items[i:])
			return
		}
		h := t.hand
		t.hand = nil
		gone := make(chan struct{})
		once := sync.OnceFunc(func() { close(gone) })
		under.Go(func() {
			h.visitURL(l, item, func() { l.sent(); once() })
			once() // it may have failed before anything was sent
			l.lane.w.slots.release(h)
			<-gate
		})
		<-gone
	}
}

// mayGoOn reports whether the visit may start another request: the lease has
// room, the program is not stopping, the site not set aside. A quarter of the
// lease must be left, so that the request is on the wire before anybody else
// may ask the site, however long name and connection take.
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

// extend moves the lease.
func (l *loan) extend(deadline time.Time) {
	l.mu.Lock()
	l.deadline = deadline
	l.mu.Unlock()
}

// sent moves the clock for a request that has just gone out.
func (l *loan) sent() {
	now := time.Now()
	l.mu.Lock()
	l.pace.started(now, l.pace.latency)
	l.mu.Unlock()
}

// requested moves the clock for a request that began then and took so long to
// its first byte (0 = none came), whatever came of it, unless sent has moved
// it already.
func (l *loan) requested(began time.Time, latency time.Duration, sent bool) {
	l.lane.w.ended.Store(time.Now().UnixMilli())
	l.mu.Lock()
	l.pace.latency = latency
	if !sent {
		l.pace.started(began, latency)
	}
	l.mu.Unlock()
}

// answered lets the delay fall.
func (l *loan) answered() {
	l.mu.Lock()
	l.pace.answered()
	l.mu.Unlock()
}

// refused counts a failure. A site that fails too often in a row is set aside:
// trying more of its URLs would only burn their attempts. One is tried each
// time it comes back, another each time.
func (l *loan) refused(began time.Time, f failure) {
	w := l.lane.w
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace.refused(began, f)
	if l.pace.failures < asideAfter || l.over {
		return
	}
	if w.cfg.ExitWhenDone && l.pace.asideSoFar(w.cfg.Backoff) >= w.cfg.GiveUp {
		l.doomed = &doom{causeUnreachable, f.text}
		w.given.put(l.visit.Site, l.doomed)
		return
	}
	l.over = true
	l.pace.setAside(w.cfg.Backoff, w.cfg.GiveUp, w.cfg.ExitWhenDone)
}

// refuseRules counts that robots.txt could not be had, which sets the site aside
// at once: nothing may be fetched without it.
func (l *loan) refuseRules(text string) {
	l.mu.Lock()
	l.pace.failures = max(l.pace.failures, asideAfter-1)
	l.mu.Unlock()
	l.refused(time.Now(), failure{text: text})
}

// hold moves the clock as far as the site asked for.
func (l *loan) hold(after time.Duration) {
	l.mu.Lock()
	l.pace.holdUntil(time.Now().Add(min(after, maxRetryAfter)))
	l.mu.Unlock()
}

// doom is why nothing of this visit is asked for, nil as long as it is.
func (l *loan) doom() *doom {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.doomed
}

func (l *loan) setDoom(d *doom) {
	l.mu.Lock()
	l.doomed = d
	l.mu.Unlock()
}

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
