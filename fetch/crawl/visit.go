package crawl

import (
	"context"
	"sync"
	"time"

	"seine/fetch"
	"seine/frontier"
)

// visit is a site lent to this fetcher: the URLs it may fetch, the site's clock
// while it lasts, and what became of each URL.
//
// One goroutine (run) starts its requests. Outcomes come in from wherever the
// last verdict on a page's links arrives, and leave in batches by the shard
// loop's settler. The site is freed as soon as its last request ended; the
// visit lives on, and its lease with it, until its last URL is settled.
type visit struct {
	loop   *shardLoop
	lent   frontier.Visit
	ctx    context.Context // ends when the lease is lost or the program is
	cancel context.CancelFunc

	// Of the visit's goroutine:
	policy *policy // that clock and extra were made of

	mu       sync.Mutex
	clock    siteClock
	extra    [][2]string   // headers of this site only; replaced, never changed
	legacy   bool          // its server needs old key exchanges
	deadline time.Duration // of the lease, by Config.Elapsed
	dead     *deadSite     // why no URL of this visit is asked for, once that is known
	aside    bool          // no further request in this visit: its site failed too often
	open     int           // URLs not settled yet
	outcomes []frontier.Outcome
	free     *frontier.Release
	freed    bool // the site is given back
	dirty    bool // waits in the settler; guarded by the settler's lock
}

// deadSite is why the URLs of a site end without being asked for.
type deadSite struct{ cause, text string }

func newVisit(l *shardLoop, lent frontier.Visit, deadline time.Duration) *visit {
	v := &visit{loop: l, lent: lent, deadline: deadline, open: len(lent.Items)}
	v.ctx, v.cancel = context.WithCancel(l.crawler.ctx)
	v.clock = siteClock{failures: lent.Failures}
	if lent.Why == whyAdaptive {
		v.clock.adaptive = lent.Delay
	}
	v.follow(l.crawler.policy.Load())
	v.dead = l.crawler.deadSites.get(lent.Site)
	return v
}

// run asks for the visit's URLs and then frees the site.
func (v *visit) run() {
	n := nextRequest{visit: v, reserved: true}
	if v.clock.perSite <= 1 {
		v.oneByOne(&n)
	} else {
		v.sideBySide(&n, v.clock.perSite)
	}
	v.release()
}

// oneByOne makes the requests of a site that is asked for one page at a time.
func (v *visit) oneByOne(n *nextRequest) {
	defer n.release()
	for i := range v.lent.Items {
		item := &v.lent.Items[i]
		switch n.await(item) {
		case stepAllowed:
			n.worker.visitURL(v, item, nil)
		case stepOver:
			v.requeue(v.lent.Items[i:])
			return
		}
	}
}

// sideBySide lets up to most requests be under way. Their starts keep the delay:
// the site's clock moves when a request has gone out.
func (v *visit) sideBySide(n *nextRequest, most int) {
	var underway sync.WaitGroup
	defer underway.Wait()
	defer n.release()
	gate := make(chan struct{}, most)
	for i := range v.lent.Items {
		item := &v.lent.Items[i]
		gate <- struct{}{}
		switch n.await(item) {
		case stepSettled:
			<-gate
			continue
		case stepOver:
			v.requeue(v.lent.Items[i:])
			return
		}
		w := n.worker
		n.worker = nil
		gone := make(chan struct{})
		once := sync.OnceFunc(func() { close(gone) })
		underway.Go(func() {
			w.visitURL(v, item, func() { v.sent(); once() })
			once() // it may have failed before anything was sent
			v.loop.crawler.workers.release(w)
			<-gate
		})
		<-gone
	}
}

// nextRequest is a visit's wait for its next request. A visit holds a worker
// only from when its request may start until it ended: not while its site's clock
// runs, and not while a shard is asked for anything.
type nextRequest struct {
	visit    *visit
	worker   *worker // nil when none is held
	reserved bool    // the shard loop counted this visit's first demand already
}

// step is what a visit can do about its next URL.
type step uint8

const (
	stepAllowed   step = iota // a request may start: a worker is held
	stepSettled               // the URL was settled without a request
	stepNoRules               // the rules of its origin are not known here
	stepLookAgain             // time has passed: everything may have changed
	stepOver                  // the site cannot be asked now: the visit ends
)

// await waits until item may be asked for: robots.txt allows it, the site's
// clock has come, the lease has room, and a worker is free, which then is held,
// as is a page of the budget. It returns stepAllowed, stepSettled or stepOver.
func (n *nextRequest) await(item *frontier.Item) step {
	v, c := n.visit, n.visit.loop.crawler
	for v.mayStart() {
		if !v.loop.reliesOnLeases() {
			n.release()
			if !v.awaitLeases() {
				return stepOver
			}
			continue
		}
		v.follow(c.policy.Load())
		s, origin := n.check(item)
		if s == stepNoRules {
			n.release()
			s = n.obtainRules(item, origin)
		} else if s == stepAllowed {
			s = n.awaitWorker(visitSpan)
		}
		switch s {
		case stepAllowed:
			if !c.budget.take() {
				return stepOver
			}
			return s
		case stepSettled, stepOver:
			return s
		}
	}
	return stepOver
}

// awaitWorker returns stepAllowed when the site's clock has come and a worker is
// held. Otherwise it waits for both, the clock first, and returns
// stepLookAgain; or stepOver when the visit ended meanwhile, or when the clock is
// more than longest ahead, so that the site is better given back.
func (n *nextRequest) awaitWorker(longest time.Duration) step {
	v, c := n.visit, n.visit.loop.crawler
	pause := v.untilNext()
	switch {
	case pause > longest:
		return stepOver
	case pause > 0:
		n.release()
		c.delayed.Add(1)
		ok := sleep(v.ctx, c.stopping, pause)
		c.delayed.Add(-1)
		if !ok {
			return stepOver
		}
	case n.worker != nil:
		return stepAllowed
	}
	w, err := c.workers.acquire(v.ctx, n.reserved)
	n.reserved = false
	if err != nil {
		return stepOver
	}
	n.worker = w
	return stepLookAgain
}

// release gives back the worker, or the claim to one.
func (n *nextRequest) release() {
	workers := n.visit.loop.crawler.workers
	if n.worker != nil {
		workers.release(n.worker)
		n.worker = nil
	}
	if n.reserved {
		workers.unreserve(1)
		n.reserved = false
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
	return !v.aside && v.deadline-c.cfg.Elapsed() > c.cfg.Lease/4
}

func (v *visit) untilNext() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.clock.next.IsZero() {
		return 0
	}
	return time.Until(v.clock.next)
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
	v.legacy = rule != nil && rule.TLSLegacy
	v.clock.set(pol.settings, rule)
	v.mu.Unlock()
}

// request asks for a URL of this site, with what its rule adds.
func (v *visit) request(url string) fetch.Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return fetch.Request{URL: url, Header: v.extra, TLSLegacy: v.legacy}
}

// sent moves the clock for a request that has just gone out.
func (v *visit) sent() {
	now := time.Now()
	v.mu.Lock()
	v.clock.started(now, v.clock.latency)
	v.mu.Unlock()
}

// reply is what a request that ended says about its site.
type reply struct {
	began    time.Time
	latency  time.Duration // to the first byte, 0 = none came
	sent     bool          // the clock moved when the request went out
	answered bool          // as a site does that is well
	failure  *failure      // as one that is not; nil and not answered: it says nothing
}

// requested takes in what a request brought: the clock moves whatever came of
// it, the delay falls or rises.
func (v *visit) requested(r reply) {
	v.loop.crawler.lastEnded.Store(time.Now().UnixMilli())
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock.latency = r.latency
	if !r.sent {
		v.clock.started(r.began, r.latency)
	}
	if r.answered {
		v.clock.answered()
	}
	if r.failure != nil {
		v.refused(r.began, *r.failure)
	}
}

// refused counts a failure. A site that fails too often in a row is set aside:
// trying more of its URLs would only burn their attempts. One is tried each
// time it comes back, another each time. Called with mu.
func (v *visit) refused(began time.Time, f failure) {
	c := v.loop.crawler
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
	defer v.mu.Unlock()
	v.clock.failures = max(v.clock.failures, asideAfter-1)
	v.refused(time.Now(), failure{text: text})
}

// obey takes the site's Crawl-delay over and reports whether it moved the clock.
func (v *visit) obey(delay time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.clock.next
	v.clock.obey(delay)
	return v.clock.next.After(before)
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
func (v *visit) extend(deadline time.Duration) {
	v.mu.Lock()
	v.deadline = deadline
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
