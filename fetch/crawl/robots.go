package crawl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"

	"seine/extract/sink"
	"seine/fetch"
	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/work"
	"seine/fetch/robots"
	"seine/frontier"
)

const (
	robotsMinKept = time.Second // for the request at hand
	robotsMaxHops = 5
)

// check looks at what item's URL, which w.URL is then, its site and robots.txt
// say of asking for it.
func (w *worker) check(v *visit, item *frontier.Item) step {
	if err := w.Read(item.URL); err != nil {
		w.endUnasked(v, item, false, work.Dead(item, work.CauseInvalid, err.Error()), 0)
		return stepSettled
	}
	if d := v.deadSite(); d != nil {
		w.endUnasked(v, item, true, work.Dead(item, d.Cause, d.Text), 0)
		return stepSettled
	}
	if w.crawler.policy.Load().Settings.Robots == "ignore" {
		v.obey(0)
		return stepAllowed
	}
	rules := w.crawler.robots.Get(w.URL.Origin(), w.crawler.robotsAgent())
	switch {
	case rules == nil:
		return stepNoRules
	case v.obey(rules.Delay()):
		return stepLookAgain
	case !rules.Allowed(w.URL.Target()):
		w.endUnasked(v, item, true, work.Dead(item, work.CauseRobots, "robots.txt disallows it"), 0)
		return stepSettled
	}
	return stepAllowed
}

// loadRules brings the rules of the origins of visits into this process, as far
// as the shard has them.
func (l *shardLoop) loadRules(ctx context.Context, visits []*visit) error {
	c := l.crawler
	if c.policy.Load().Settings.Robots == "ignore" {
		return nil
	}
	u, agent := c.readers.Get().(*work.Reader), c.robotsAgent()
	defer c.readers.Put(u)
	var ask []frontier.OriginRules
	looked := make(map[string]bool) // origins
	for _, v := range visits {
		origin := "" // of the URL before: most of a visit have one
		for i := range v.urls {
			url := v.urls[i].url
			if origin != "" && isOf(url, origin) {
				continue
			}
			if u.Read(url) != nil {
				continue // it ends when it is served
			}
			if origin = string(u.URL.Origin()); looked[origin] {
				continue
			}
			looked[origin] = true
			if c.robots.Get(u.URL.Origin(), agent) == nil {
				ask = append(ask, frontier.OriginRules{Site: v.lent.Site, Origin: origin})
			}
		}
	}
	if len(ask) == 0 {
		return nil
	}
	if err := c.cfg.Frontier.Rules(ctx, l.shard, ask); err != nil {
		return err
	}
	for i := range ask {
		o := &ask[i]
		if o.TTL <= 0 || o.TTL > site.RulesTTL { // longer: the clock that ends them was set back
			continue
		}
		if rules := site.ReadRules(o.Rules, agent); rules != nil { // else of another version, or read under another name
			c.robots.Put(o.Origin, agent, rules, max(o.TTL, robotsMinKept))
		}
	}
	return nil
}

// isOf reports whether a URL in the form that is stored is of an origin. One that
// carries credentials seems not to be, and is parsed.
func isOf(url, origin string) bool {
	rest, ok := strings.CutPrefix(url, origin)
	return ok && strings.HasPrefix(rest, "/")
}

// rulesHop is how far the way to the rules of an origin is: by RFC 9309 section
// 2.3 up to five redirects are followed.
type rulesHop struct {
	origin    string
	url       string // to be asked next
	hops      int
	elsewhere elsewhere // of url, where it is of another site
}

// obtainRules brings the rules of the origin of item, which w.URL is, from the site
// into this process and then into the shard. It makes one request, when its time
// has come: each counts on the site's clock, and one to another site has a time from
// that site's clock. It reports whether this worker is still the visit's owner.
func (w *worker) obtainRules(v *visit, item *frontier.Item) bool {
	hop := &v.rules
	longest := time.Duration(math.MaxInt64) // a visit that ended here would begin anew, and never get farther
	if hop.origin != string(w.URL.Origin()) {
		origin := string(w.URL.Origin())
		*hop = rulesHop{origin: origin, url: origin + "/robots.txt"}
	}
	if hop.hops == 0 {
		longest = visitSpan
	}
	agent := w.crawler.robotsAgent()
	if err := w.Parser.Parse(&w.Target, []byte(hop.url)); err != nil {
		return w.rulesFailed(v, item, err)
	}
	foreign := w.Sites.Of(w.Target.Host()).Name != v.lent.Site
	var r fetch.Reservation
	var ok bool
	var err error
	if foreign {
		r, ok, err = w.elsewhere(v, hop.url)
	} else {
		r, ok, err = w.acquire(v, hop.url, w.Target.Host(), longest)
	}
	if !ok {
		return false
	}
	if err != nil {
		*hop = rulesHop{}
		return w.rulesFailed(v, item, err)
	}
	rules, ttl, next, err := w.askRules(v, agent, r.Addr, foreign)
	switch {
	case errors.Is(err, errTooLate):
		return true // another time
	case err != nil:
		*hop = rulesHop{}
		return w.rulesFailed(v, item, err)
	case rules == nil && hop.hops < robotsMaxHops:
		hop.url, hop.hops, hop.elsewhere = next, hop.hops+1, elsewhere{}
		return true
	case rules == nil: // endless redirects: as if there were none
		rules, ttl = robots.Parse(nil, agent), site.RulesTTL
	}
	return w.takeRules(v, item, rules, ttl)
}

// takeRules takes the rules of an origin over. Where its sitemaps are wanted they
// are admitted first, for which the visit waits without a worker.
func (w *worker) takeRules(v *visit, item *frontier.Item, rules *robots.Rules, ttl time.Duration) bool {
	c, origin := w.crawler, v.rules.origin
	v.rules = rulesHop{}
	v.obey(rules.Delay())
	pol := c.policy.Load()
	if d, most := rules.Delay(), pol.Settings.CrawlDelayCap(); d > most {
		c.cfg.Log.Warn("robots.txt asks for a longer Crawl-delay than is honoured; --max-crawl-delay changes that",
			"origin", origin, "asked", d, "honoured", most)
	}
	keep := func() {
		c.robots.Put(origin, c.robotsAgent(), rules, ttl)
		v.loop.rules.Add(frontier.OriginRules{Site: v.lent.Site, Origin: origin, Rules: rules.AppendKept(nil, c.robotsAgent(), time.Now()), TTL: ttl})
	}
	if !pol.Settings.Sitemaps || len(rules.Sitemaps()) == 0 {
		keep()
		return true
	}
	found := w.sitemaps(origin, rules, pol)
	go func() {
		if v.admitSitemaps(found) == nil {
			keep()
			c.agenda.Put(v, time.Now())
		} else {
			v.finish() // nothing is kept: the next visit asks again
		}
	}()
	return false
}

// maxRulesKept bounds the origins whose rules go to a shard in one call.
const maxRulesKept = 100

// keepRules gives the shard rules of robots.txt until ctx ends, and then what is left,
// unless the crawler was cut short or the shard does not take it soon. What it does not
// come to is asked for again.
func (l *shardLoop) keepRules(ctx context.Context) {
	c := l.crawler
	send := func(ctx context.Context, group []frontier.OriginRules) error {
		return c.cfg.Frontier.SetRules(ctx, l.shard, group)
	}
	for ctx.Err() == nil {
		if err := l.rules.Run(ctx, send); err != nil {
			c.fail(ctx, err)
		}
	}
	if c.ctx.Err() == nil {
		last, cancel := context.WithTimeout(c.ctx, cutTime)
		defer cancel()
		l.rules.Flush(last, send) //nolint:errcheck // the next run asks the sites
	}
}

// errTooLate says that a request to another site did not go out in its time.
var errTooLate = errors.New("robots.txt: too late")

// askRules makes one request for the robots.txt that w.Target is. It returns the
// rules and how long they may be kept, or where they are instead. 4xx means no
// rules, 429 and 5xx that nothing may be fetched for now.
func (w *worker) askRules(v *visit, agent string, addr netip.Addr, foreign bool) (rules *robots.Rules, ttl time.Duration, next string, err error) {
	if err := w.requestRules(v, addr, foreign); err != nil {
		return nil, 0, "", err
	}
	switch status := w.resp.Status; {
	case status >= 300 && status < 400 && w.resp.Location != "":
		if w.Parser.Resolve(&w.Target, &w.Target, []byte(w.resp.Location), nil) == nil {
			return nil, 0, string(w.Target.Fetch()), nil
		}
	case status == 429 || status >= 500:
		after, _ := fetch.RetryAfter(w.resp.Header, time.Now())
		v.hold(after)
		return nil, 0, "", fmt.Errorf("%w: %d %s", site.ErrRulesServer, status, work.StatusText(status))
	case status >= 200 && status < 300:
		text, err := site.DecodeRules(w.robotsBody, w.resp.Header)
		if err != nil {
			return nil, 0, "", err
		}
		return robots.Parse(text, agent), site.CacheTime(w.resp.Header, site.RulesTTL), "", nil
	}
	return robots.Parse(nil, agent), site.RulesTTL, "", nil
}

// requestRules asks for w.Target. What belongs to the site alone, such as its
// credentials, goes to no other.
func (w *worker) requestRules(v *visit, addr netip.Addr, foreign bool) (err error) {
	w.robotsBody = w.robotsBody[:0]
	if url := string(w.Target.Fetch()); foreign {
		w.req = fetch.Request{URL: url, Header: site.Headers(w.crawler.policy.Load().Settings.UserAgent, nil)}
	} else {
		w.req = v.request(url)
	}
	w.req.MaxBody, w.req.Raw, w.req.Addr = robots.MaxBytes, true, addr
	if w.crawler.cfg.Exchanges {
		w.req.Wire, w.resp.Start = &w.wire, time.Time{}
	}
	began := time.Now()
	w.resp.Status = 0
	if foreign {
		var inTime bool
		if inTime, err = w.withinTime(v); !inTime {
			return errTooLate
		}
	} else {
		err = w.crawler.cfg.Fetcher.Do(v.ctx, &w.req, &w.resp, (*robotsBody)(w))
	}
	if errors.Is(err, errRobotsEnough) {
		err = nil
	}
	if err == nil {
		w.crawler.count.CountStatus(w.resp.Status)
	}
	v.requested(work.ReplyOf(&w.resp, began, err, false))
	if w.crawler.cfg.Exchanges && !w.resp.Start.IsZero() {
		w.archiveRules(err)
	}
	return err
}

// archiveRules sends the exchange for a robots.txt, which w.Target is, to the outputs that
// archive. Nothing is settled by it, so nobody waits until it is there.
func (w *worker) archiveRules(err error) {
	c, resp := w.crawler, &w.resp
	r := &sink.Record{
		V: sink.Version, URL: string(w.Target.AppendRedacted(nil)), Site: w.Sites.Of(w.Target.Host()).Name, Status: resp.Status, FetchedAt: resp.Start.UTC(),
		ContentType: resp.ContentType, Bytes: resp.Bytes, WireBytes: resp.WireBytes, Seconds: resp.Took.Seconds(), ArchiveOnly: true,
	}
	e := work.ExchangeOf(&w.wire, resp, err)
	r.Exchange = &e
	w.wire = fetch.Wire{} // few of a worker's requests are for rules
	c.writing.Add(1)
	c.cfg.Sink.Write(r, func(error) {}) // an output that loses records says so at the next page
	c.writing.Add(-1)
}

// robotsBody collects the body of a robots.txt, its codings on.
type robotsBody worker

var errRobotsEnough = errors.New("robots.txt: longer than is read")

func (h *robotsBody) Begin(r *fetch.Response) bool { return r.Status >= 200 && r.Status < 300 }

func (h *robotsBody) Write(p []byte) (int, error) {
	room := robots.MaxBytes - len(h.robotsBody)
	if len(p) >= room {
		h.robotsBody = append(h.robotsBody, p[:room]...)
		return room, errRobotsEnough
	}
	h.robotsBody = append(h.robotsBody, p...)
	return len(p), nil
}

// rulesFailed says what becomes of a URL whose site's rules cannot be had. The
// site is set aside and asked again; what may not be asked at all is dead, and so
// is, after GiveUp, what cannot be reached. A name that does not resolve says the
// same of the URL as of its robots.txt.
func (w *worker) rulesFailed(v *visit, item *frontier.Item, err error) bool {
	c := w.crawler
	class, retry := work.ErrorClass(err)
	if errors.Is(err, site.ErrRulesServer) {
		class = work.CauseStatus
	}
	switch {
	case v.ctx.Err() != nil || c.isStopping() || fetch.Local(class): // it says nothing about the site
		v.finish()
		return false
	case class == fetch.ClassDNS || class == fetch.ClassNoName:
		o := work.Dead(item, class, err.Error())
		if retry {
			o = c.work.Retry(item, class, err.Error(), 0)
		}
		if o.Kind == frontier.Retry {
			v.settle(o)
		} else {
			w.endUnasked(v, item, true, o, 1)
		}
		v.started(false)
	case retry:
		v.refuseRules(class, err.Error())
	default:
		v.setDeadSite(&site.Dead{Cause: class, Text: err.Error()})
	}
	return true // at the next URL, or a site that is dead now, or set aside
}

// maxSitemaps are taken from one robots.txt.
const maxSitemaps = 1000

// noRoomPause is how long a site is left alone whose sitemaps found no room, in
// times of Config.Backoff.
const noRoomPause = 12

// admitSitemaps queues sitemaps. They do not wait for room, for that would hold a
// visit of each new site: their site does.
func (v *visit) admitSitemaps(found []frontier.Candidate) error {
	c := v.loop.crawler
	err := c.admitAll(v.ctx, found, true)
	if errors.Is(err, frontier.ErrFull) {
		v.hold(noRoomPause * c.cfg.Backoff)
	}
	return err
}

// sitemaps are the candidates that the rules of an origin name, on whatever
// host: the site vouches for them. Of the crawl's rules only those that deny
// bind them; what is left out is counted by reason.
func (w *worker) sitemaps(origin string, rules *robots.Rules, pol *work.Policy) (found []frontier.Candidate) {
	if w.Parser.Parse(&w.Base, []byte(origin+"/robots.txt")) != nil {
		return nil // an origin is one
	}
	count := func(r work.Refusal) { w.crawler.count.Refusals[r].Inc() }
	for _, text := range rules.Sitemaps() {
		if len(found) == maxSitemaps {
			count(work.RefusedOver)
			continue
		}
		if err := w.Parser.Resolve(&w.Target, &w.Base, []byte(text), nil); err != nil {
			count(work.RefusalOf(err))
			continue
		}
		if r := pol.Bars(&w.Target); r != work.Accepted {
			count(r)
			continue
		}
		of, fp := w.Sites.Fingerprint(&w.Target)
		found = append(found, work.SitemapCandidate(&w.Target, of.Name, fp, w.Base.Host()))
	}
	return found
}

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
		other, fp := w.Sites.Fingerprint(&w.Target)
		delay := c.policy.Load().Settings.DelayOf(other.Name)
		if e.slack *= 2; !e.asked { // else it was too late
			e.asked, e.slack = true, min(max(delay, leastSlack), frontier.ReserveRetry)
		}
		e.slack = min(e.slack, mostSlack)
		req := frontier.ReserveRequest{Site: other.Name, Delay: delay, Slack: e.slack, Ahead: visitSpan}
		go v.reserve(url, c.cfg.Frontier.Of(fp), req)
		return r, false, nil
	}
	if c.preparer != nil {
		if r, err = c.preparer.Prepare(v.ctx, url); err == nil && time.Until(r.At) > 0 {
			c.agenda.Put(v, r.At)
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
			c.agenda.Put(v, time.Now())
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
		c.agenda.Put(v, time.Now())
	case r.Granted:
		e.latest = before.Add(r.Wait + req.Slack - site.StartSlack)
		c.agenda.Put(v, time.Now().Add(r.Wait))
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
