package crawl

import (
	"context"
	"errors"
	"time"

	"seine/fetch"
	"seine/frontier"
)

// elsewhere is a request for rules of robots.txt that are kept on a site which is
// not lent to this visit: a redirect leads there. Any number of sites may share such
// a one, so its clock in its own shard is asked for a time.
type elsewhere struct {
	asked  bool
	slack  time.Duration
	latest time.Time // when the request must have gone out, zero = it may not
	err    error     // why nobody may ask there
}

const (
	leastSlack = 250 * time.Millisecond
	mostSlack  = 32 * time.Second
	// reserveWait is how long the other site's shard may take to answer, and
	// silentRest how long the visit's site rests if it does not.
	reserveWait = 5 * time.Second
	silentRest  = time.Minute
)

// elsewhere reports whether the request to w.Target, which is of another site, may
// start now. If not, the visit stands where it waits, or is over: its site rests
// until the other one may have a time for it.
func (w *worker) elsewhere(v *visit, url string) (r fetch.Reservation, ok bool, err error) {
	c, e := w.crawler, &v.rules.elsewhere
	if e.err != nil {
		return r, true, e.err
	}
	if time.Now().After(e.latest) {
		site, fp := w.Sites.Fingerprint(&w.Target)
		delay := c.policy.Load().Settings.DelayOf(site.Name)
		if e.slack *= 2; !e.asked { // else it was too late
			e.asked, e.slack = true, min(max(delay, leastSlack), frontier.ReserveAgain)
		}
		e.slack = min(e.slack, mostSlack)
		req := frontier.ReserveRequest{Site: site.Name, Delay: delay, Slack: e.slack, Ahead: visitSpan}
		go v.reserve(url, c.cfg.Frontier.Of(fp), req)
		return r, false, nil
	}
	if c.preparer != nil {
		if r, err = c.preparer.Prepare(v.ctx, url); err == nil && time.Until(r.At) > 0 {
			c.agenda.put(v, r.At)
			return r, false, nil
		}
	}
	return r, true, err
}

// reserve asks the clock of the site of url for a time, without a worker, and has
// the visit served again then.
func (v *visit) reserve(url string, shard int, req frontier.ReserveRequest) {
	c, e := v.loop.crawler, &v.rules.elsewhere
	if c.preparer != nil { // the name comes first, for it may take long
		if _, err := c.preparer.Prepare(v.ctx, url); err != nil {
			e.err = err
			c.agenda.put(v, time.Now())
			return
		}
	}
	ctx, cancel := context.WithTimeout(v.ctx, reserveWait)
	defer cancel()
	before := time.Now()
	r, err := c.cfg.Frontier.Reserve(ctx, shard, req)
	switch {
	case err != nil:
		v.hold(silentRest)
		v.finish()
	case r.Stopped:
		e.err = errRobotsStopped
		c.agenda.put(v, time.Now())
	case r.Granted:
		e.latest = before.Add(r.Wait + req.Slack - startSlack)
		c.agenda.put(v, time.Now().Add(r.Wait))
	default:
		v.hold(r.Wait)
		v.finish()
	}
}

var errRobotsStopped = errors.New("robots.txt: it redirects to a site that is paused or blocked")

// withinTime makes a request to another site, which w.req is, unless it cannot go
// out in time; it reports whether it did.
func (w *worker) withinTime(v *visit) (inTime bool, err error) {
	e := &v.rules.elsewhere
	ctx, cancel := context.WithCancel(v.ctx)
	defer cancel()
	late := time.AfterFunc(time.Until(e.latest), cancel)
	w.req.Sent = func() { late.Stop() }
	err = w.crawler.cfg.Fetcher.Do(ctx, &w.req, &w.resp, (*robotsBody)(w))
	late.Stop()
	e.latest = time.Time{}
	return ctx.Err() == nil || v.ctx.Err() != nil, err
}
