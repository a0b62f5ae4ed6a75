package crawl

import (
	"net/netip"

	"seine/fetch"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
	"seine/frontier/canon"
)

// worker makes one request at a time and owns all memory that one needs. Of a URL it
// keeps nothing beyond its turn.
type worker struct {
	crawler *Crawler
	*work.Reader
	scratch *work.Scratch
	item    frontier.Item // of the visit that is served, see nextItem

	robotsBody []byte // of the rules that are asked for
	req        fetch.Request
	resp       fetch.Response
	wire       fetch.Wire // where Config.Exchanges asks for it

	entered bool // there is room for what its next request brings
}

func (c *Crawler) newReader() *work.Reader {
	return work.NewReader(c.cfg.Canon, c.cfg.Frontier.Layout().LimitBy)
}

func (c *Crawler) newWorker() *worker {
	r := c.newReader()
	return &worker{crawler: c, Reader: r, scratch: work.NewScratch(c.work, r)}
}

// newWork is what the workers share.
func (c *Crawler) newWork() *work.Config {
	cfg := &c.cfg
	w := &work.Config{
		Fetcher: cfg.Fetcher, Log: cfg.Log, Policy: c.policy.Load, Agent: c.robotsAgent, Known: c.knows, Hold: c.gate.Add,
		Fields: cfg.Fields, Rules: cfg.Rules, Exchanges: cfg.Exchanges, Accepts: cfg.Accepts,
		RetryCodes: cfg.RetryCodes, MaxTries: cfg.MaxTries, MaxRedirects: cfg.MaxRedirects, MaxText: cfg.MaxText, MaxLinks: cfg.MaxLinks,
		Backoff: cfg.Backoff, Canon: cfg.Canon, LimitBy: cfg.Frontier.Layout().LimitBy,
	}
	if cfg.Handler != nil {
		w.Handle = c.handle
	}
	return w
}

// fetchURL fetches item, which w.URL is, has its visit learn from the answer, and sends
// its page on. addr, if valid, is the address to be tried first; sent, if not nil, is
// called each time the request has gone out; err is why it cannot be made at all.
func (w *worker) fetchURL(v *visit, item *frontier.Item, addr netip.Addr, sent func(), err error) {
	permit := work.Permit{Request: v.request(item.URL), Parallel: sent != nil, Site: v.lent.Site, URL: &w.URL, Cookies: v.cookies, Err: err}
	permit.Request.Addr, permit.Request.Sent = addr, sent
	w.entered = false // what the page brings is counted from here on
	res := work.Do(v.ctx, w.scratch, item, &permit)
	defer w.scratch.Release()
	v.requested(res.Reply)
	if d := v.deadSite(); d != nil && res.Unreachable && res.GoesBack() {
		res = work.GiveUp(v.ctx, w.scratch, d.Cause, d.Text)
	}
	w.crawler.gate.End(res.Held)
	if res.Ended { // the lease is gone, or the program ends: the URL comes back by itself
		w.crawler.giveBack()
		return
	}
	if f := res.From; f != (canon.Fingerprint{}) { // a redirect from another site to it is known then
		w.crawler.known.Add(f, w.crawler.loopOf(f).checkEpoch())
	}
	p := newPage(v, &res)
	p.countAnswer(&res)
	v.logURL(&res, item)
	if res.GoesBack() {
		w.crawler.giveBack()
		v.settle(p.outcome)
		return
	}
	p.sendOn(w.scratch, &res)
}

// endUnasked settles item, which no request is made for. w.URL is what it parsed to if
// parsed says so; tries is how often it counts as tried in this visit.
func (w *worker) endUnasked(v *visit, item *frontier.Item, parsed bool, o frontier.Outcome, tries int) {
	permit := work.Permit{Site: v.lent.Site}
	if parsed {
		permit.URL = &w.URL
	}
	res := work.NotAsked(v.ctx, w.scratch, item, &permit, o, tries)
	defer w.scratch.Release()
	p := newPage(v, &res)
	p.counted, p.outcome.Facts = false, &p.facts
	v.logURL(&res, item)
	if res.GoesBack() {
		v.settle(p.outcome)
		return
	}
	p.sendOn(w.scratch, &res)
}
