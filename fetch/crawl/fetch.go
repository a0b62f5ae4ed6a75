package crawl

import (
	"net/netip"
	"time"

	"seine/extract/preference"
	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
	"seine/frontier/canon"
)

// worker makes one request at a time and owns all memory that one needs. Of a URL it
// keeps nothing after that.
type worker struct {
	*Crawler
	*work.Reader
	scratch *work.Scratch
	rules   site.Robots   // its requests for robots.txt
	item    frontier.Item // of the visit that is served, see nextItem
	entered bool          // there is room for what its next request brings
}

// newWork is what the workers share.
func (c *Crawler) newWork() *work.Config {
	cfg := &c.cfg
	w := &work.Config{
		Fetcher: cfg.Fetcher, Log: cfg.Log, Policy: c.policy.Load, Agent: c.robotsAgent, Known: c.knows, Hold: c.gate.AddBytes,
		Fields: cfg.Fields, Rules: cfg.Rules, Exchanges: cfg.Exchanges, Accepts: cfg.Accepts,
		RetryCodes: cfg.RetryCodes, MaxTries: cfg.MaxTries, MaxRedirects: cfg.MaxRedirects, MaxText: cfg.MaxText, MaxLinks: cfg.MaxLinks,
		Backoff: cfg.Backoff, Walls: cfg.Walls, Canon: cfg.Canon, LimitBy: cfg.Frontier.Layout().LimitBy,
	}
	if cfg.Handler != nil {
		w.Handle = c.handle
	}
	return w
}

// fetchURL fetches item, which w.URL is, has its visit learn from the answer, and sends
// its page on. addr, if valid, is the address to be tried first; sent, if not nil, is
// called each time the request has gone out; err is why it cannot be made at all.
func (w *worker) fetchURL(v *site.Visit, item *frontier.Item, said *preference.Set, addr netip.Addr, sent func(), err error) {
	permit := work.Permit{Request: v.Request(item.URL), Parallel: sent != nil, Site: v.Site, URL: &w.URL, Cookies: v.Cookies(), Said: *said, Err: err}
	permit.Request.Addr, permit.Request.Sent = addr, sent
	w.entered = false // what the page brings is counted from here on
	res := work.Do(v.Ctx, w.scratch, item, &permit)
	defer w.scratch.Release()
	w.takeReply(v, &res.Reply)
	if d := v.Dead(); d != nil && res.Unreachable && res.GoesBack() {
		res = work.GiveUp(v.Ctx, w.scratch, d.Cause, d.Text)
	}
	w.gate.EndRequest(res.Held)
	if res.Ended { // the lease is gone, or the program ends: the URL comes back by itself
		w.returnPage()
		return
	}
	if f := res.From; f != (canon.Fingerprint{}) { // a redirect from another site to it is known then
		w.known.Remember(f, w.shardOf(f).CheckEpoch())
	}
	p := newPage(w.Crawler, v, &res)
	p.countAnswer(&res)
	w.logURL(v, item, &res)
	if res.GoesBack() {
		w.returnPage()
		w.settleURL(v, p.outcome)
		return
	}
	p.send(w.scratch, &res)
}

// takeReply has the visit learn from what a request brought.
func (w *worker) takeReply(v *site.Visit, r *work.Reply) {
	now := time.Now()
	w.recent.Ended(now, r.Latency > 0)
	if r.Answered {
		w.recent.Served(now)
	}
	if r.Signs && v.SignRequests() {
		w.count.Signing.Inc()
	}
	if r.Wall != "" {
		w.recent.Walled(now)
		w.count.CountWall(r.Wall)
	}
	failed := v.TakeReply(r, now, &w.visitCfg)
	if r.Failure != nil {
		w.noteFailure(v, r.Failure, failed, now)
	}
}

// noteFailure takes in what follows for a site from a failure: the crawl backs off from
// it, or gives it up.
func (w *worker) noteFailure(v *site.Visit, f *work.Failure, failed site.Failed, now time.Time) {
	if f.Cause == work.CauseStatus {
		w.recent.Refused(now)
	}
	if failed.Dead != nil {
		w.deadSites.AddSite(v.Site, failed.Dead)
	}
	if !failed.BackedOff || !w.backOffs.AddSite(f.Cause, f.Text, failed.Fresh, failed.GivesUp, now) {
		return
	}
	attrs := []any{"cause", f.Cause, "site", v.Site, "urls", v.Len(), "err", f.Text, "retry_in", failed.RetryAt.Sub(now).Round(time.Second)}
	if !failed.GivesUp.IsZero() {
		attrs = append(attrs, "given_up_in", failed.GivesUp.Sub(now).Round(time.Second))
	}
	w.cfg.Log.Warn("the crawl backed off from a site: its URLs wait; further sites of this cause are counted", attrs...)
}

// endUnasked settles item, which no request is made for. w.URL is what it parsed to if
// parsed says so; tries is how often it counts as tried in this visit.
func (w *worker) endUnasked(v *site.Visit, item *frontier.Item, parsed bool, o frontier.Outcome, tries int) {
	permit := work.Permit{Site: v.Site}
	if parsed {
		permit.URL = &w.URL
	}
	res := work.NotAsked(v.Ctx, w.scratch, item, &permit, o, tries)
	defer w.scratch.Release()
	p := newPage(w.Crawler, v, &res)
	p.counted, p.outcome.Facts = false, &p.facts
	w.logURL(v, item, &res)
	if res.GoesBack() {
		w.settleURL(v, p.outcome)
		return
	}
	p.send(w.scratch, &res)
}
