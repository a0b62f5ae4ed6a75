package crawl

import (
	"net/netip"
	"time"

	"seine/extract/preference"
	"seine/fetch"
	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// startWorker begins a worker, and returns what serves visits.
func (c *Crawler) startWorker() func(*site.Visit) {
	r := c.newReader()
	w := &worker{Crawler: c, Reader: r, scratch: work.NewScratch(c.work, r)}
	return w.serveVisit
}

// step is what a visit can do about its next URL.
type step uint8

const (
	stepAllowed   step = iota // a request may start when the site's clock has come
	stepSettled               // the URL was settled without a request
	stepNoRules               // the rules of its origin are not known here
	stepLookAgain             // the clock has moved
)

// serveVisit makes the next request of a visit whose owner this worker is, and goes on
// with it for as long as its next one may start at once. Then the visit waits in the
// agenda, or it ends. No worker waits while a site's clock runs, a name is
// resolved, or a shard answers.
func (w *worker) serveVisit(v *site.Visit) {
	defer w.leaveGate()
	for {
		item, now := w.nextItem(v)
		if item == nil {
			w.finishVisit(v)
			return
		}
		if !w.reliesOnLeases(w.shards[v.Shard], now) {
			w.parkVisit(v)
			return
		}
		v.Follow(w.policy.Load())
		if w.leavesSite(v) {
			w.finishVisit(v)
			return
		}
		s, said := w.checkItem(v, item)
		switch {
		case s == stepSettled:
			v.SkipURL()
		case s == stepNoRules && !w.obtainRules(v, item):
			return
		case s == stepAllowed && !w.requestItem(v, item, &said):
			return
		}
	}
}

// leaveFor is how long a site rests that a fetcher leaves to others.
const leaveFor = 5 * time.Second

// leavesSite reports whether a visit ends since the rule of its site binds addresses that
// this machine lacks. The site rests for a while and is not kept for this fetcher: one that
// has them leases it sooner or later.
func (w *worker) leavesSite(v *site.Visit) bool {
	bind := v.Bind()
	if bind == "" || w.preparer == nil {
		return false
	}
	err := w.preparer.MayLeaveFrom(bind)
	if err == nil {
		return false
	}
	now := time.Now()
	v.Leave(leaveFor, now)
	w.left.Add(err, now)
	return true
}

// nextItem is the URL that the visit asks for next, nil when none is to be asked for
// any more: the worker's own, until its next one. It waits until there is room for
// what its page may bring; now is the time after that, by Config.Elapsed.
func (w *worker) nextItem(v *site.Visit) (item *frontier.Item, now time.Duration) {
	if v.Ctx.Err() != nil || w.isStopping() {
		return nil, 0
	}
	if w.entered = w.entered || w.gate.EnterRequest(v.Ctx, w.stopping); !w.entered {
		return nil, 0
	}
	if now = w.cfg.Elapsed(); !v.NextItem(&w.item, now, &w.visitCfg) {
		return nil, now
	}
	return &w.item, now
}

// leaveGate returns room that no request was made with.
func (w *worker) leaveGate() {
	if w.entered {
		w.gate.LeaveUnused()
		w.entered = false
	}
}

// checkItem looks whether item's URL, which w.URL is then, its site and robots.txt allow a
// request for it, and what robots.txt says of what may be done with the page.
func (w *worker) checkItem(v *site.Visit, item *frontier.Item) (s step, said preference.Set) {
	if err := w.Read(item.URL); err != nil {
		w.endUnasked(v, item, false, work.Dead(item, work.CauseInvalid, err.Error()), 0)
		return stepSettled, said
	}
	if d := v.Dead(); d != nil {
		w.endUnasked(v, item, true, work.Dead(item, d.Cause, d.Text), 0)
		return stepSettled, said
	}
	if w.ignoresRobots() {
		v.Obey(0)
		return stepAllowed, said
	}
	pol := w.policy.Load()
	rules := w.robots.Get(w.URL.Origin(), w.robotsAgent())
	switch {
	case rules == nil, pol.Settings.TDMRep && !rules.HasTDM():
		return stepNoRules, said
	case v.Obey(rules.Delay()):
		return stepLookAgain, said
	case !rules.Allowed(w.URL.Target()):
		w.endUnasked(v, item, true, work.Dead(item, work.CauseRobots, "robots.txt disallows it"), 0)
		return stepSettled, said
	}
	if rules.HasUsage() {
		rules.EachUsage(w.URL.Target(), said.AddRule)
		if why := pol.Refuses(&said); why != "" {
			w.endUnasked(v, item, true, work.Dead(item, work.CausePreference, "robots.txt refuses it for "+why), 0)
			return stepSettled, said
		}
	}
	return stepAllowed, said
}

// requestItem asks for item, which w.URL is and of which robots.txt says said, when its time
// has come. It reports whether this worker is still the visit's owner.
func (w *worker) requestItem(v *site.Visit, item *frontier.Item, said *preference.Set) bool {
	r, ok, err := w.permitRequest(v, item.URL, w.URL.Host(), visitSpan)
	if !ok {
		return false
	}
	if !w.budget.StartPage() {
		w.finishVisit(v)
		return false
	}
	exclusive := v.StartURL()
	if err != nil || exclusive { // a name that does not resolve is as if it had been asked for
		w.fetchURL(v, item, said, r.Addr, nil, err)
		v.EndRequest()
		return true
	}
	handedOver := false
	w.fetchURL(v, item, said, r.Addr, func() { // each time the request has gone out, beside which others may start
		v.RequestSent(time.Now())
		if !handedOver {
			handedOver = true
			w.startNext(v, v.HandOver())
		}
	}, nil)
	if handedOver {
		w.startNext(v, v.EndHandedOver())
		return false
	}
	v.EndRequest() // it failed before anything was sent
	return true
}

// startNext has the next request of a visit start, or the site released after the last.
func (w *worker) startNext(v *site.Visit, next site.Next) {
	switch {
	case next.Last:
		w.releaseSite(v)
	case next.Starts:
		w.agenda.Schedule(v, next.At)
	}
}

// permitRequest reports whether a request to url may start now. If not, the visit waits in
// the agenda, or is over, since the clock is more than longest ahead and the site better
// released. err is why its host cannot be asked at all.
func (w *worker) permitRequest(v *site.Visit, url string, host []byte, longest time.Duration) (r fetch.Reservation, ok bool, err error) {
	if next := v.NextRequest(); !next.IsZero() {
		if pause := time.Until(next); pause > longest {
			w.finishVisit(v)
			return r, false, nil
		} else if pause > 0 {
			w.agenda.Schedule(v, next)
			return r, false, nil
		}
	}
	if w.preparer == nil {
		return r, true, nil
	}
	n := &v.Naming
	if n.Host != string(host) {
		*n = site.Naming{Host: string(host)}
		if !isAddress(host) {
			go w.resolveName(v, url)
			return r, false, nil
		}
	}
	if err := n.Err; err != nil {
		*n = site.Naming{} // a later request resolves it again
		return r, true, err
	}
	if n.Reserved {
		n.Reserved = false
		return n.R, true, nil
	}
	if r, err = w.preparer.Prepare(v.Ctx, url, v.Bind()); err != nil {
		return r, true, err
	}
	if wait := time.Until(r.At); wait > 0 {
		v.NoteQueued(wait)
		w.agenda.Schedule(v, r.At)
		return r, false, nil
	}
	return r, true, nil
}

// resolveName resolves the name of url's host, without a worker, and has the visit served
// again when its address may be asked.
func (c *Crawler) resolveName(v *site.Visit, url string) {
	n := &v.Naming
	n.R, n.Err = c.preparer.Prepare(v.Ctx, url, v.Bind())
	wait := time.Until(n.R.At)
	if n.Reserved = n.Err == nil && wait <= 0; wait > 0 && n.Err == nil {
		v.NoteQueued(wait)
	}
	c.agenda.Schedule(v, n.R.At)
}

// isAddress reports whether a host is an IP address, in a URL's form.
func isAddress(host []byte) bool {
	if len(host) > 0 && host[0] == '[' {
		return true
	}
	_, err := netip.ParseAddr(string(host))
	return err == nil
}
