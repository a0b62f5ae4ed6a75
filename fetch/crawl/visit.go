package crawl

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"seine/fetch"
	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// visit is a site lent to this fetcher: the URLs it may fetch, the site's clock
// while it lasts, and what became of each URL.
//
// It stands in the agenda between its requests; one worker at a time, its
// owner, makes the next one start. Outcomes come in from wherever the last
// verdict on a page's links arrives, and leave in batches by the shard loop's
// settler. The site is freed as soon as its last request ended; the visit lives
// on, and its lease with it, until its last URL is settled.
type visit struct {
	loop *shardLoop
	lent struct { // of frontier.Visit, what counts to its end
		frontier.Lease
		Override   string
		lastChance bool
	}
	urls   []lentURL
	ctx    context.Context // ends when the lease is lost or the program is
	cancel context.CancelFunc
	usual  int           // URLs; of further ones none is asked for
	until  time.Duration // after this time, by Config.Elapsed

	// Of the owner:
	policy *work.Policy // that clock and extra were made of
	naming naming       // of the host that is asked next
	rules  rulesHop     // how far the way to its rules of robots.txt is

	mu          sync.Mutex
	next        int // of urls: that starts next
	underway    int
	parked      bool // no owner: as many requests are under way as may be, or all have started
	over        bool // no further request starts
	clock       site.Clock
	extra       [][2]string   // headers of this site only; replaced, never changed
	cookies     *work.Cookies // nil where the crawl keeps none
	credentials string        // of the site's origins, as frontier.CredentialsFor reads them
	legacy      bool          // its server needs old key exchanges
	deadline    time.Duration // of the lease, by Config.Elapsed
	dead        *site.Dead    // why no URL of this visit is asked for, once that is known
	aside       bool          // no further request in this visit: its site failed too often
	open        int           // URLs not settled yet
	outcomes    []frontier.Outcome
	free        *frontier.Release
	freed       bool          // the site is given back
	asked       int           // requests for pages
	queued      time.Duration // that they waited for their share of an address, in all
	dirty       atomic.Bool   // it is among the loop's settlements
}

func newVisit(l *shardLoop, lent frontier.Visit, deadline time.Duration) *visit {
	v := &visit{loop: l, urls: lentURLs(lent.Items), deadline: deadline, open: len(lent.Items)}
	v.lent.Lease, v.lent.Override, v.lent.lastChance = lent.Lease, lent.Override, lent.LastChance()
	v.ctx, v.cancel = context.WithCancel(l.crawler.ctx)
	v.clock = site.Clock{Failures: lent.Failures}
	if lent.Why == site.WhyAdaptive {
		v.clock.Adaptive = lent.Delay
	}
	v.follow(l.crawler.policy.Load())
	v.cookies, v.credentials = cookiesOf(l, &lent), lent.Credentials
	v.dead = l.crawler.deadSites.Get(lent.Site)
	return v
}

// cookiesOf opens the cookies of a site that was just leased, nil where the crawl keeps
// none. A visit keeps to the setting that it began with. What changed of them goes with
// the next outcome or with the site, whichever is first, so that a page is settled with
// its cookies or after them.
func cookiesOf(l *shardLoop, leased *frontier.Visit) *work.Cookies {
	if !l.crawler.policy.Load().Settings.KeepsCookies() {
		return nil
	}
	start, elapsed := l.then-l.thenAt.Milliseconds(), l.crawler.cfg.Elapsed // the shard's time when Elapsed was 0
	return work.OpenCookies(leased.Cookies, func() int64 { return max(1, (start+elapsed().Milliseconds())/1000) })
}

// step is what a visit can do about its next URL.
type step uint8

const (
	stepAllowed   step = iota // a request may start when the site's clock has come
	stepSettled               // the URL was settled without a request
	stepNoRules               // the rules of its origin are not known here
	stepLookAgain             // the clock has moved
)

// serve makes the next request of a visit whose owner this worker is, and goes
// on with it for as long as its next one may start at once. Then the visit
// stands where it waits, or it ends. A worker is never held while a site's clock
// runs, a name is asked for, or a shard.
func (w *worker) serve(v *visit) {
	c := w.crawler
	defer w.leave()
	for {
		item, now := w.nextItem(v)
		if item == nil {
			v.finish()
			return
		}
		if !v.loop.reliesOnLeases(now) {
			v.loop.park(v)
			return
		}
		v.follow(c.policy.Load())
		s := w.check(v, item)
		switch {
		case s == stepSettled:
			v.started(false)
		case s == stepNoRules && !w.obtainRules(v, item):
			return
		case s == stepAllowed && !w.ask(v, item):
			return
		}
	}
}

// ask asks for item, which w.URL is, when its time has come. It reports whether
// this worker is still the visit's owner.
func (w *worker) ask(v *visit, item *frontier.Item) bool {
	r, ok, err := w.acquire(v, item.URL, w.URL.Host(), visitSpan)
	if !ok {
		return false
	}
	if !w.crawler.budget.Start() {
		v.finish()
		return false
	}
	v.started(true)
	if err != nil || v.isExclusive() { // a name that does not resolve is as if it had been asked for
		w.fetchURL(v, item, r.Addr, nil, err)
		v.endOwn()
		return true
	}
	handedOver := false
	w.fetchURL(v, item, r.Addr, func() { // each time the request has gone out, beside which others may start
		v.sent()
		if !handedOver {
			handedOver = true
			v.handOver()
		}
	}, nil)
	if handedOver {
		v.ended()
		return false
	}
	v.endOwn() // it failed before anything was sent
	return true
}

// naming is how a host's name is asked for before a worker is needed.
type naming struct {
	host     string // last asked for
	reserved bool   // r may be used
	r        fetch.Reservation
	err      error
}

// acquire reports whether a request to url may start now; if not, the visit stands
// where it waits, or is over, since the clock is more than longest ahead and the
// site better given back. err is why its host cannot be asked at all.
func (w *worker) acquire(v *visit, url string, host []byte, longest time.Duration) (r fetch.Reservation, ok bool, err error) {
	c := w.crawler
	pause := v.untilNext()
	if pause > longest {
		v.finish()
		return r, false, nil
	}
	if pause > 0 {
		c.agenda.Put(v, time.Now().Add(pause))
		return r, false, nil
	}
	if c.preparer == nil {
		return r, true, nil
	}
	n := &v.naming
	if n.host != string(host) {
		*n = naming{host: string(host)}
		if !isAddress(host) {
			go v.name(url)
			return r, false, nil
		}
	}
	if err := n.err; err != nil {
		*n = naming{} // a later request asks again
		return r, true, err
	}
	if n.reserved {
		n.reserved = false
		return n.r, true, nil
	}
	if r, err = c.preparer.Prepare(v.ctx, url); err != nil {
		return r, true, err
	}
	if wait := time.Until(r.At); wait > 0 {
		v.waitFor(wait)
		c.agenda.Put(v, r.At)
		return r, false, nil
	}
	return r, true, nil
}

// name asks for the name of url's host, without a worker, and has the visit served
// again when its address may be asked.
func (v *visit) name(url string) {
	n := &v.naming
	n.r, n.err = v.loop.crawler.preparer.Prepare(v.ctx, url)
	wait := time.Until(n.r.At)
	if n.reserved = n.err == nil && wait <= 0; wait > 0 && n.err == nil {
		v.waitFor(wait)
	}
	v.loop.crawler.agenda.Put(v, n.r.At)
}

// waitFor notes that a request waits for its share of an address.
func (v *visit) waitFor(d time.Duration) {
	v.mu.Lock()
	v.queued += d
	v.mu.Unlock()
}

// isAddress reports whether a host is an IP address, in a URL's form.
func isAddress(host []byte) bool {
	if len(host) > 0 && host[0] == '[' {
		return true
	}
	_, err := netip.ParseAddr(string(host))
	return err == nil
}

// nextItem is the URL that the visit asks for next, nil when none is to be asked for
// any more: the worker's own, until its next one. It waits until there is room for
// what its page may bring; now is the time after that, by Config.Elapsed.
func (w *worker) nextItem(v *visit) (item *frontier.Item, now time.Duration) {
	c := w.crawler
	if v.ctx.Err() != nil || c.isStopping() {
		return nil, 0
	}
	if w.entered = w.entered || c.gate.Enter(v.ctx, c.stopping); !w.entered {
		return nil, 0
	}
	now = c.cfg.Elapsed()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.next >= len(v.urls) || !v.mayStart(now) {
		return nil, now
	}
	v.urls[v.next].item(&w.item)
	return &w.item, now
}

// started counts the next URL as under way, or, without a request, as passed.
func (v *visit) started(request bool) {
	v.mu.Lock()
	v.next++
	if request {
		v.underway++
		v.asked++
	}
	v.mu.Unlock()
}

// isExclusive reports whether the site is asked for one page at a time.
func (v *visit) isExclusive() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.clock.PerSite <= 1
}

// endOwn is called when the request of the owner itself ended.
func (v *visit) endOwn() {
	v.mu.Lock()
	v.underway--
	v.mu.Unlock()
}

// handOver is called when a request of a site that may be asked side by side has
// gone out: the next one may start beside it.
func (v *visit) handOver() {
	v.mu.Lock()
	v.parked = v.underway >= v.clock.PerSite
	at, parked := v.clock.Next, v.parked
	v.mu.Unlock()
	if !parked {
		v.loop.crawler.agenda.Put(v, at)
	}
}

// ended is called when a request ended whose worker is not the owner. The next
// may start if it waited for that; after the last one the site is free.
func (v *visit) ended() {
	v.mu.Lock()
	v.underway--
	at, starts, last := v.clock.Next, v.parked, v.over && v.underway == 0
	if starts {
		v.parked = false
	}
	v.mu.Unlock()
	switch {
	case last:
		v.release()
	case starts:
		v.loop.crawler.agenda.Put(v, at)
	}
}

// finish is called by the owner when no further request starts: what was not
// asked for goes back, and the site is free when its last request ended.
func (v *visit) finish() {
	v.mu.Lock()
	rest := v.urls[v.next:]
	v.next = len(v.urls)
	v.over = true
	last := v.underway == 0
	v.mu.Unlock()
	if len(rest) > 0 {
		v.requeue(rest)
	}
	if last {
		v.release()
	}
}

// leave gives room back that no request was made with.
func (w *worker) leave() {
	if w.entered {
		w.crawler.gate.Leave()
		w.entered = false
	}
}

// mayStart reports whether the visit may start another request at now, by
// Config.Elapsed: the lease has room, the site is not set aside, and a visit that is
// long for want of a delay not slow all the same. A quarter of the lease must be left,
// so that the request is on the wire before anybody else may ask the site, however
// long name and connection take. Called with mu.
func (v *visit) mayStart(now time.Duration) bool {
	if v.next >= v.usual && now > v.until {
		return false
	}
	return !v.aside && v.deadline-now > v.loop.crawler.cfg.Lease/4
}

func (v *visit) untilNext() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.clock.Next.IsZero() {
		return 0
	}
	return time.Until(v.clock.Next)
}

// follow takes the crawl's settings over, which may change during a visit.
func (v *visit) follow(pol *work.Policy) {
	if pol == v.policy {
		return
	}
	v.policy = pol
	rule := pol.SiteRule(v.lent.Site, v.lent.Override)
	extra := site.Headers(pol.Settings.UserAgent, rule)
	v.mu.Lock()
	v.extra = extra
	v.legacy = rule != nil && rule.TLSLegacy
	v.clock.SetRule(pol.Settings, rule)
	v.mu.Unlock()
}

// request asks for a URL of this site, with what its rule adds, and the credentials of
// its origin, which a rule's Authorization beats.
func (v *visit) request(url string) fetch.Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return fetch.Request{URL: frontier.WithCredentials(url, v.credentials), Header: v.extra, TLSLegacy: v.legacy}
}

// sent moves the clock for a request that has just gone out.
func (v *visit) sent() {
	now := time.Now()
	v.mu.Lock()
	v.clock.Started(now, v.clock.Latency)
	v.mu.Unlock()
}

// requested takes in what a request brought: the clock moves whatever came of
// it, the delay falls or rises.
func (v *visit) requested(r work.Reply) {
	c, now := v.loop.crawler, time.Now()
	c.recent.Ended(now, r.Latency > 0)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock.Latency = r.Latency
	if !r.Sent {
		v.clock.Started(r.Began, r.Latency)
	}
	if r.Answered {
		c.recent.Served(now)
		v.clock.Answered()
	}
	if r.Failure != nil {
		v.refused(r.Began, *r.Failure)
	}
}

// refused counts a failure. A site that fails too often in a row is set aside:
// trying more of its URLs would only burn their attempts. One is tried each
// time it comes back, another each time. Called with mu.
func (v *visit) refused(began time.Time, f work.Failure) {
	c := v.loop.crawler
	if f.Cause == work.CauseStatus {
		c.recent.Refused(time.Now())
	}
	v.clock.Refused(time.Now(), began, f)
	if v.clock.Failures < site.BackOffAfter || v.aside {
		return
	}
	if c.cfg.ExitWhenDone && v.clock.BackedOffFor(c.cfg.Backoff) >= c.cfg.GiveUp {
		v.dead = &site.Dead{Cause: work.CauseUnreachable, Text: f.Text}
		c.deadSites.Put(v.lent.Site, v.dead)
		return
	}
	v.aside = true
	var giveUp time.Time
	if c.cfg.ExitWhenDone {
		giveUp = time.Now().Add(c.cfg.GiveUp - v.clock.BackedOffFor(c.cfg.Backoff))
	}
	v.clock.BackOff(time.Now(), c.cfg.Backoff, c.cfg.GiveUp, c.cfg.ExitWhenDone)
	if giveUp.Before(v.clock.Next) && c.cfg.ExitWhenDone {
		giveUp = v.clock.Next // it is asked once more
	}
	if c.backOffs.AddSite(f.Cause, f.Text, v.clock.Failures == site.BackOffAfter, giveUp, time.Now()) {
		attrs := []any{"cause", f.Cause, "site", v.lent.Site, "urls", len(v.urls), "err", f.Text, "again_in", time.Until(v.clock.Next).Round(time.Second)}
		if c.cfg.ExitWhenDone {
			attrs = append(attrs, "given_up_in", time.Until(giveUp).Round(time.Second))
		}
		c.cfg.Log.Warn("the crawl backed off from a site: its URLs wait; further sites of this cause are counted", attrs...)
	}
}

// refuseRules counts that robots.txt could not be had, which sets the site aside
// at once: nothing may be fetched without it.
func (v *visit) refuseRules(cause, text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock.Failures = max(v.clock.Failures, site.BackOffAfter-1)
	v.refused(time.Now(), work.Failure{Cause: cause, Text: text})
}

// obey takes the site's Crawl-delay over and reports whether it moved the clock.
func (v *visit) obey(delay time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.clock.Next
	v.clock.Obey(delay)
	return v.clock.Next.After(before)
}

// hold moves the clock as far as the site asked for.
func (v *visit) hold(after time.Duration) {
	v.mu.Lock()
	v.clock.HoldUntil(time.Now().Add(min(after, work.MaxRetryAfter)))
	v.mu.Unlock()
}

// deadSite is why nothing of this visit is asked for, nil as long as it is.
func (v *visit) deadSite() *site.Dead {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dead
}

func (v *visit) setDeadSite(d *site.Dead) {
	v.mu.Lock()
	v.dead = d
	v.mu.Unlock()
}

// release frees the site: its last request has ended.
func (v *visit) release() {
	v.mu.Lock()
	d, why := v.clock.Delay()
	if each := v.queued / time.Duration(max(v.asked, 1)); each > d && why != site.WhyAdaptive {
		d, why = d+each, site.WhyAddress
	}
	v.free = &frontier.Release{
		Remain:   max(0, time.Until(v.clock.Next)),
		Delay:    d,
		Why:      why,
		Failures: v.clock.Failures,
	}
	v.mu.Unlock()
	v.loop.addDirty(v)
	v.loop.crawler.visiting.Done()
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
