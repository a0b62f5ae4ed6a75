package crawl

import (
	"context"
	"sync"
	"time"

	"seine/frontier"
)

// visit is one visit in this fetcher's hands: the URLs it may fetch, the site's
// clock while it lasts, and what became of each URL.
//
// One goroutine (run) starts its requests. Outcomes come in from wherever a
// page's last acknowledgement arrives, and leave in batches by the shard loop's
// settler. The site is freed as soon as its last request ended; the visit lives
// on, and its lease with it, until its last URL is settled.
type visit struct {
	loop   *shardLoop
	lent   frontier.Visit
	ctx    context.Context // ends when the lease is lost or the program is
	cancel context.CancelFunc

	// Of the visit's goroutine:
	policy *policy // that pace and extra were made of

	mu       sync.Mutex
	clock    siteClock
	extra    [][2]string // headers of this site only; replaced, never changed
	deadline time.Time
	dead     *deadSite // why no URL of this visit is asked for, once that is known
	aside    bool      // no further request in this visit: its site failed too often
	open     int       // URLs not settled yet
	outcomes []frontier.Outcome
	free     *frontier.Release
	freed    bool // the site was given back
	dirty    bool // waits in the settler; guarded by the settler's lock
}

// deadSite is why URLs end without being asked for.
type deadSite struct{ cause, text string }

func newVisit(l *shardLoop, lent frontier.Visit) *visit {
	v := &visit{loop: l, lent: lent, deadline: lent.Deadline, open: len(lent.Items)}
	v.ctx, v.cancel = context.WithCancel(l.crawler.ctx)
	v.clock = siteClock{failures: lent.Failures}
	if lent.Why == whyAdaptive {
		v.clock.adaptive = lent.Delay
	}
	v.follow(l.crawler.policy.Load())
	v.dead = l.crawler.deadSites.get(lent.Site)
	return v
}

// follow takes the crawl's settings over, which may change during a visit.
func (v *visit) follow(pol *policy) {
	if pol == v.policy {
		return
	}
	v.policy = pol
	rule := pol.rule(v.lent.Site, v.lent.Override)
	extra := extraHeaders(pol.settings.UserAgent, rule)
	v.mu.Lock()
	v.extra = extra
	v.clock.set(pol.settings, rule)
	v.mu.Unlock()
}

// headers are the extra headers of this site.
func (v *visit) headers() [][2]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.extra
}

// run makes the visit's requests and frees the site.
func (v *visit) run() {
	nr := nextRequest{visit: v, reserved: true}
	if v.clock.perSite <= 1 {
		v.oneByOne(&nr)
	} else {
		v.sideBySide(&nr, v.clock.perSite)
	}
	v.release()
}

// oneByOne makes the requests of a site that is asked for one page at a time.
func (v *visit) oneByOne(nr *nextRequest) {
	defer nr.release()
	for i := range v.lent.Items {
		item := &v.lent.Items[i]
		switch nr.permitted(item) {
		case stepAllowed:
			nr.worker.visitURL(v, item, nil)
		case stepOver:
			v.requeue(v.lent.Items[i:])
			return
		}
	}
}

// sideBySide lets up to n requests be under way. Their starts keep the delay:
// the site's clock moves when a request has gone out.
func (v *visit) sideBySide(nr *nextRequest, n int) {
	var under sync.WaitGroup
	defer under.Wait()
	defer nr.release()
	gate := make(chan struct{}, n)
	for i := range v.lent.Items {
		item := &v.lent.Items[i]
		gate <- struct{}{}
		switch nr.permitted(item) {
		case stepSettled:
			<-gate
			continue
		case stepOver:
			v.requeue(v.lent.Items[i:])
			return
		}
		w := nr.worker
		nr.worker = nil
		gone := make(chan struct{})
		once := sync.OnceFunc(func() { close(gone) })
		under.Go(func() {
			w.visitURL(v, item, func() { v.moveClockSent(); once() })
			once() // it may have failed before anything was sent
			v.loop.crawler.workers.release(w)
			<-gate
		})
		<-gone
	}
}

// mayStart reports whether the visit may start another request: the lease has
// room, the program is not stopping, the site not set aside. A quarter of the
// lease must be left, so that the request is on the wire before anybody else
// may ask the site, however long name and connection take.
func (v *visit) mayStart() bool {
	c := v.loop.crawler
	if v.ctx.Err() != nil || c.isStopping() || !c.flow.awaitRoom(v.ctx, c.stopping) {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.aside && time.Until(v.deadline) > c.cfg.Lease/4
}

func (v *visit) untilNext() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.clock.next.IsZero() {
		return 0
	}
	return time.Until(v.clock.next)
}

// requeue gives URLs back that were not tried.
func (v *visit) requeue(items []frontier.Item) {
	v.mu.Lock()
	for i := range items {
		v.outcomes = append(v.outcomes, frontier.Outcome{Index: items[i].Index, Kind: frontier.Requeue})
	}
	v.mu.Unlock()
	v.loop.settler.add(v)
}

// settle records what became of one URL.
func (v *visit) settle(o frontier.Outcome) {
	v.mu.Lock()
	v.outcomes = append(v.outcomes, o)
	v.mu.Unlock()
	v.loop.settler.add(v)
}

// release frees the site: its last request has ended.
func (v *visit) release() {
	v.mu.Lock()
	d, why := v.clock.delay()
	v.free = &frontier.Release{
		Remain:   max(0, time.Until(v.clock.next)),
		Delay:    d,
		Why:      why,
		Failures: v.clock.failures,
	}
	v.mu.Unlock()
	v.loop.settler.add(v)
}

// extend moves the lease.
func (v *visit) extend(deadline time.Time) {
	v.mu.Lock()
	v.deadline = deadline
	v.mu.Unlock()
}

// moveClockSent moves the clock for a request that has just gone out.
func (v *visit) moveClockSent() {
	now := time.Now()
	v.mu.Lock()
	v.clock.started(now, v.clock.latency)
	v.mu.Unlock()
}

// moveClock moves the clock for a request that began then and took so long to
// its first byte (0 = none came), whatever came of it, unless sent has moved
// it already.
func (v *visit) moveClock(began time.Time, latency time.Duration, sent bool) {
	v.loop.crawler.lastEnded.Store(time.Now().UnixMilli())
	v.mu.Lock()
	v.clock.latency = latency
	if !sent {
		v.clock.started(began, latency)
	}
	v.mu.Unlock()
}

// answered lets the delay fall.
func (v *visit) answered() {
	v.mu.Lock()
	v.clock.answered()
	v.mu.Unlock()
}

// refused counts a failure. A site that fails too often in a row is set aside:
// trying more of its URLs would only burn their attempts. One is tried each
// time it comes back, another each time.
func (v *visit) refused(began time.Time, f failure) {
	c := v.loop.crawler
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock.refused(began, f)
	if v.clock.failures < asideAfter || v.aside {
		return
	}
	if c.cfg.ExitWhenDone && v.clock.asideSoFar(c.cfg.Backoff) >= c.cfg.GiveUp {
		v.dead = &deadSite{causeUnreachable, f.text}
		c.deadSites.put(v.lent.Site, v.dead)
		return
	}
	v.aside = true
	v.clock.setAside(c.cfg.Backoff, c.cfg.GiveUp, c.cfg.ExitWhenDone)
}

// refuseRules counts that robots.txt could not be had, which sets the site aside
// at once: nothing may be fetched without it.
func (v *visit) refuseRules(text string) {
	v.mu.Lock()
	v.clock.failures = max(v.clock.failures, asideAfter-1)
	v.mu.Unlock()
	v.refused(time.Now(), failure{text: text})
}

// hold moves the clock as far as the site asked for.
func (v *visit) hold(after time.Duration) {
	v.mu.Lock()
	v.clock.holdUntil(time.Now().Add(min(after, maxRetryAfter)))
	v.mu.Unlock()
}

// deadSite is why nothing of this visit is asked for, nil as long as it is.
func (v *visit) deadSite() *deadSite {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dead
}

func (v *visit) setDeadSite(d *deadSite) {
	v.mu.Lock()
	v.dead = d
	v.mu.Unlock()
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

// nextRequest is what a visit holds while it waits to make its next request.
type nextRequest struct {
	visit    *visit
	worker   *worker // a worker, when held
	reserved bool    // the shard loop counted this visit's first demand already
}

// permitted waits until the site's clock, a worker and the lease allow a request,
// and robots.txt allows this URL, which then holds a page of the budget and,
// in t, a worker. It returns allowed, settled (without a request) or over.
func (nr *nextRequest) permitted(item *frontier.Item) robotsStep {
	v := nr.visit
	for nr.await() {
		switch j := nr.worker.applyRobots(v, item); j {
		case stepAllowed:
			if !v.loop.crawler.budget.take() {
				return stepOver
			}
			return j
		case stepSettled, stepOver:
			return j
		}
	}
	return stepOver
}

// await sleeps until the site's clock allows a request, without a worker if it
// has to, and then holds one. False means that the visit is over: also when the
// clock is so far ahead that the site is better given back.
func (nr *nextRequest) await() bool {
	v, c := nr.visit, nr.visit.loop.crawler
	for {
		if !v.mayStart() {
			return false
		}
		v.follow(c.policy.Load())
		pause := v.untilNext()
		if v.deadSite() != nil {
			pause = 0
		}
		if pause > visitSpan {
			return false
		}
		if pause <= 0 && nr.worker != nil {
			return true
		}
		if pause > 0 {
			nr.release()
			c.delayed.Add(1)
			ok := sleep(v.ctx, c.stopping, pause)
			c.delayed.Add(-1)
			if !ok {
				return false
			}
		}
		w, err := c.workers.acquire(v.ctx, nr.reserved)
		nr.reserved = false
		if err != nil {
			return false
		}
		nr.worker = w
	}
}

// release gives back what the turn holds.
func (nr *nextRequest) release() {
	if nr.worker != nil {
		nr.visit.loop.crawler.workers.release(nr.worker)
		nr.worker = nil
	}
	if nr.reserved {
		nr.visit.loop.crawler.workers.unreserve(1)
		nr.reserved = false
	}
}
