package crawl

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"seine/extract/preference"
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
	// maxSitemaps are taken from one robots.txt.
	maxSitemaps = 1000
	// noRoomPause is how long a site rests whose sitemaps found no room,
	// in times of Config.Backoff.
	noRoomPause = 12

	leastSlack = 250 * time.Millisecond
	mostSlack  = 32 * time.Second
	// reserveWait is how long the other site's shard may take to answer, and
	// silentRest how long the visit's site rests if it does not.
	reserveWait = 5 * time.Second
	silentRest  = time.Minute
)

func (c *Crawler) ignoresRobots() bool { return c.policy.Load().Settings.Robots == "ignore" }

// loadRules brings the rules of the origins of visits into this process, as far as their
// shard has them.
func (c *Crawler) loadRules(ctx context.Context, shard int, visits []*site.Visit) error {
	if c.ignoresRobots() {
		return nil
	}
	r, agent := c.readers.Get().(*work.Reader), c.robotsAgent()
	defer c.readers.Put(r)
	var wanted []frontier.OriginRules
	looked := make(map[string]bool) // origins
	for _, v := range visits {
		origin := "" // of the URL before: most of a visit have one
		for i := range v.Len() {
			url := v.URL(i)
			if origin != "" && isOf(url, origin) {
				continue
			}
			if r.Read(url) != nil {
				continue // it ends when it is served
			}
			if origin = string(r.URL.Origin()); looked[origin] {
				continue
			}
			looked[origin] = true
			if c.robots.Get(r.URL.Origin(), agent) == nil {
				wanted = append(wanted, frontier.OriginRules{Site: v.Site, Origin: origin})
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	if err := c.cfg.Frontier.Rules(ctx, shard, wanted); err != nil {
		return err
	}
	for i := range wanted {
		o := &wanted[i]
		if o.TTL <= 0 || o.TTL > site.RulesTTL { // longer: the clock that ends them was set back
			continue
		}
		if rules := site.ReadRules(o.Rules, agent); rules != nil { // else of another version, or read under another name
			c.robots.StoreRules(o.Origin, agent, rules, max(o.TTL, robotsMinKept))
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

// obtainRules brings the rules of the origin of item, which w.URL is, from the site
// into this process and then into the shard: its robots.txt, and where the crawl asks for
// it, its TDM file. It makes one request, when its time has come: each counts on the site's
// clock, and one to another site has a time from that site's clock. It reports whether this
// worker is still the visit's owner.
func (w *worker) obtainRules(v *site.Visit, item *frontier.Item) bool {
	hop := &v.Rules
	longest := time.Duration(math.MaxInt64) // a visit that ended here would begin anew, and never get farther
	if hop.Origin != string(w.URL.Origin()) {
		origin := string(w.URL.Origin())
		*hop = site.RulesHop{Origin: origin, URL: origin + "/robots.txt"}
	}
	if hop.Hops == 0 && hop.Found == nil {
		longest = visitSpan
	}
	if err := w.Parser.Parse(&w.Target, []byte(hop.URL)); err != nil {
		return w.refuseRules(v, item, err)
	}
	cross := w.Sites.Of(w.Target.Host()).Name != v.Site
	var r fetch.Reservation
	var ok bool
	var err error
	if cross {
		r, ok, err = w.permitCrossSite(v, hop.URL)
	} else {
		r, ok, err = w.permitRequest(v, hop.URL, w.Target.Host(), longest)
	}
	if !ok {
		return false
	}
	if err != nil {
		*hop = site.RulesHop{}
		return w.refuseRules(v, item, err)
	}
	a := w.requestRules(v, r, cross)
	if errors.Is(a.Err, site.ErrTooLate) || a.Reply.Signs && a.Rules != nil && w.rules.Response.Status >= 400 {
		return true // another time, or with the signature that it asks for
	}
	if a.Err != nil && (hop.Found == nil || v.Ctx.Err() != nil || w.isStopping() || isLocal(a.Err)) {
		*hop = site.RulesHop{}
		return w.refuseRules(v, item, a.Err)
	}
	if hop.Found != nil && a.Location == "" { // a TDM file that cannot be had is none (TDMRep, section 6.2)
		return w.keepTDM(v, a.TDM)
	}
	if a.Rules == nil && w.Parser.Resolve(&w.Target, &w.Target, []byte(a.Location), nil) == nil && hop.Hops < robotsMaxHops {
		hop.URL, hop.Hops, hop.Cross = string(w.Target.Fetch()), hop.Hops+1, site.CrossReservation{}
		return true
	}
	if hop.Found != nil {
		return w.keepTDM(v, nil)
	}
	if a.Rules == nil { // it leads nowhere, or redirects without end: as if there were no rules
		a.Rules, a.TTL = robots.Parse(nil, w.robotsAgent()), site.RulesTTL
	}
	if !w.policy.Load().Settings.TDMRep {
		return w.keepRulesOf(v, a.Rules, a.TTL)
	}
	*hop = site.RulesHop{Origin: hop.Origin, URL: hop.Origin + preference.TDMPath, Found: a.Rules, TTL: a.TTL}
	if !a.Rules.Allowed([]byte(preference.TDMPath)) {
		return w.keepTDM(v, nil)
	}
	v.Obey(a.Rules.Delay())
	return true
}

// isLocal reports whether a request failed for what this machine lacks.
func isLocal(err error) bool {
	class, _ := work.ErrorClass(err)
	return fetch.Local(class)
}

// keepTDM keeps the rules of an origin's robots.txt with those of its TDM file. It reports
// whether this worker is still the visit's owner.
func (w *worker) keepTDM(v *site.Visit, tdm []preference.TDMRule) bool {
	rules, ttl := v.Rules.Found, v.Rules.TTL
	list := make([]string, 0, 2*len(tdm))
	for _, r := range tdm {
		list = append(list, r.Location, r.Value)
	}
	rules.AddTDM(list...)
	return w.keepRulesOf(v, rules, ttl)
}

// permitCrossSite reports whether the request to w.Target, which is of another site, may
// start now. If not, the visit waits in the agenda, or is over: its site rests until the
// other one may have a time for it.
func (w *worker) permitCrossSite(v *site.Visit, url string) (r fetch.Reservation, ok bool, err error) {
	x := &v.Rules.Cross
	if x.Err != nil {
		return r, true, x.Err
	}
	other, fp := w.Sites.Fingerprint(&w.Target)
	if time.Now().After(x.Latest) {
		delay := w.policy.Load().Settings.DelayOf(other.Name)
		if x.Slack *= 2; x.Slack == 0 { // else it was too late
			x.Slack = min(max(delay, leastSlack), frontier.ReserveRetry)
		}
		x.Slack = min(x.Slack, mostSlack)
		req := frontier.ReserveRequest{Site: other.Name, Delay: delay, Slack: x.Slack, Ahead: visitSpan}
		go w.reserveCrossSite(v, url, w.cfg.Frontier.Of(fp), req)
		return r, false, nil
	}
	if w.preparer != nil {
		if r, err = w.preparer.Prepare(v.Ctx, url, w.bindOf(other.Name)); err == nil && time.Until(r.At) > 0 {
			w.agenda.Schedule(v, r.At)
			return r, false, nil
		}
	}
	return r, true, err
}

var errRobotsStopped = errors.New("robots.txt: it redirects to a site that is paused or blocked")

// bindOf is what the settings have a site's requests leave from.
func (c *Crawler) bindOf(site string) string {
	if r := c.policy.Load().Settings.Rule(site); r != nil {
		return r.Bound()
	}
	return ""
}

// reserveCrossSite has the clock of the site of url grant a time, without a worker, and
// the visit served again then.
func (c *Crawler) reserveCrossSite(v *site.Visit, url string, shard int, req frontier.ReserveRequest) {
	x := &v.Rules.Cross
	if c.preparer != nil { // the name comes first, for it may take long
		if _, err := c.preparer.Prepare(v.Ctx, url, c.bindOf(req.Site)); err != nil {
			x.Err = err
			c.agenda.Schedule(v, time.Now())
			return
		}
	}
	ctx, cancel := context.WithTimeout(v.Ctx, reserveWait)
	defer cancel()
	before := time.Now()
	r, err := c.cfg.Frontier.Reserve(ctx, shard, req)
	now := time.Now()
	switch {
	case err != nil:
		v.HoldFor(silentRest, now)
		c.finishVisit(v)
	case r.Stopped:
		x.Err = errRobotsStopped
		c.agenda.Schedule(v, now)
	case r.Granted:
		x.Latest = before.Add(r.Wait + req.Slack - site.StartSlack)
		c.agenda.Schedule(v, now.Add(r.Wait))
	default:
		v.HoldFor(r.Wait, now)
		c.finishVisit(v)
	}
}

// requestRules makes one request for the robots.txt that w.Target is. What belongs to the
// site alone, such as its credentials, goes to no other.
func (w *worker) requestRules(v *site.Visit, r fetch.Reservation, cross bool) site.RulesAnswer {
	q := site.RulesRequest{Agent: w.robotsAgent(), Exchange: w.cfg.Exchanges, TDM: v.Rules.Found != nil}
	if url := string(w.Target.Fetch()); cross {
		q.Request = fetch.Request{URL: url, Header: site.Headers(w.policy.Load().Settings.UserAgent, nil), Bind: w.bindOf(w.Sites.Of(w.Target.Host()).Name)}
		q.Latest, v.Rules.Cross.Latest = v.Rules.Cross.Latest, time.Time{}
	} else {
		q.Request = v.Request(url)
	}
	q.Addr = r.Addr
	if w.policy.Load().Settings.SeesWalls() {
		q.Walls = w.cfg.Walls
	}
	a := w.rules.Ask(v.Ctx, w.cfg.Fetcher, &q)
	if errors.Is(a.Err, site.ErrTooLate) {
		return a
	}
	if w.rules.Response.Status > 0 && site.WasAnswered(a.Err) {
		w.count.CountStatus(w.rules.Response.Status)
	}
	a.Reply.Signs = a.Reply.Signs && !cross
	w.takeReply(v, &a.Reply)
	if a.Hold > 0 {
		v.HoldFor(a.Hold, time.Now())
	}
	if w.cfg.Exchanges && !w.rules.Response.Start.IsZero() {
		w.archiveRules(a.Err)
	}
	return a
}

// archiveRules sends the exchange for a robots.txt, which w.Target is, to the outputs that
// archive. Nothing is settled by it, so nobody waits until it is there.
func (w *worker) archiveRules(err error) {
	resp := &w.rules.Response
	if site.WasAnswered(err) {
		err = nil
	}
	e := w.rules.Exchange(err)
	r := &sink.Record{
		V: sink.Version, URL: string(w.Target.AppendRedacted(nil)), Site: w.Sites.Of(w.Target.Host()).Name, Status: resp.Status, FetchedAt: resp.Start.UTC(),
		ContentType: resp.ContentType, Bytes: resp.Bytes, WireBytes: resp.WireBytes, Seconds: resp.Took.Seconds(), ArchiveOnly: true, Exchange: &e,
	}
	w.writing.Add(1)
	w.cfg.Sink.Write(r, func(error) {}) // an output that loses records says so at the next page
	w.writing.Add(-1)
}

// refuseRules ends or delays a URL whose site's rules cannot be had. The crawl backs off
// from the site, and asks again; what may not be asked at all is dead, and so is, after
// GiveUp, what cannot be reached. A name that does not resolve, or has no address of our
// family, says the same of the URL as of its robots.txt. It reports whether this worker is
// still the visit's owner.
func (w *worker) refuseRules(v *site.Visit, item *frontier.Item, err error) bool {
	class, retry := work.ErrorClass(err)
	switch {
	case errors.Is(err, site.ErrRulesServer):
		class = work.CauseStatus
	case errors.Is(err, site.ErrRulesWall):
		class = frontier.CauseWall
	}
	switch {
	case class == fetch.ClassBind: // of another site, where its robots.txt is
		now := time.Now()
		v.Leave(leaveFor, now)
		w.left.Add(err, now)
		w.finishVisit(v)
		return false
	case v.Ctx.Err() != nil || w.isStopping() || fetch.Local(class): // it says nothing about the site
		w.finishVisit(v)
		return false
	case class == fetch.ClassDNS || class == fetch.ClassNoName || class == fetch.ClassFamily:
		o := work.Dead(item, class, err.Error())
		if retry {
			o = w.work.Retry(item, class, err.Error(), 0)
		}
		if o.Kind == frontier.Retry {
			w.settleURL(v, o)
		} else {
			w.endUnasked(v, item, true, o, 1)
		}
		v.SkipURL()
	case retry:
		now := time.Now()
		f := &work.Failure{Cause: class, Text: err.Error()}
		w.noteFailure(v, f, v.RefuseRules(f, now, &w.visitCfg), now)
	default:
		v.SetDead(&site.Dead{Cause: class, Text: err.Error()})
	}
	return true // at the next URL, or a site that is dead now, or backed off from
}

// keepRulesOf keeps the rules of an origin. Where its sitemaps are wanted they are admitted
// first, for which the visit waits without a worker. It reports whether this worker is
// still the visit's owner.
func (w *worker) keepRulesOf(v *site.Visit, rules *robots.Rules, ttl time.Duration) bool {
	origin, agent := v.Rules.Origin, w.robotsAgent()
	v.Rules = site.RulesHop{}
	v.Obey(rules.Delay())
	pol := w.policy.Load()
	if d, most := rules.Delay(), pol.Settings.CrawlDelayCap(); d > most {
		w.cfg.Log.Warn("robots.txt asks for a longer Crawl-delay than is honoured; --max-crawl-delay changes that",
			"origin", origin, "asked", d, "honoured", most)
	}
	c := w.Crawler
	keep := func() {
		c.robots.StoreRules(origin, agent, rules, ttl)
		c.shards[v.Shard].rules.Add(frontier.OriginRules{Site: v.Site, Origin: origin, Rules: rules.AppendKept(nil, agent, time.Now()), TTL: ttl})
	}
	if !pol.Settings.Sitemaps || len(rules.Sitemaps()) == 0 {
		keep()
		return true
	}
	found := w.findSitemaps(origin, rules, pol)
	go func() {
		// They do not wait for room, for that would hold a visit of each new site: their site does.
		late, err := c.admitOnce(v.Ctx, found, 0)
		if err == nil && len(late) == 0 {
			keep()
			c.agenda.Schedule(v, time.Now())
			return
		}
		if len(late) > 0 {
			v.HoldFor(noRoomPause*c.cfg.Backoff, time.Now())
		}
		c.finishVisit(v) // nothing is kept: the next visit asks again
	}()
	return false
}

// findSitemaps returns the candidates that the rules of an origin name, on whatever
// host: the site vouches for them. Of the crawl's rules only those that deny
// bind them; what is left out is counted by reason.
func (w *worker) findSitemaps(origin string, rules *robots.Rules, pol *work.Policy) (found []frontier.Candidate) {
	if w.Parser.Parse(&w.Base, []byte(origin+"/robots.txt")) != nil {
		return nil // an origin is one
	}
	refuse := func(r work.Refusal) { w.count.Refusals[r].Inc() }
	for _, text := range rules.Sitemaps() {
		if len(found) == maxSitemaps {
			refuse(work.RefusedOver)
			continue
		}
		if err := w.Parser.Resolve(&w.Target, &w.Base, []byte(text), nil); err != nil {
			refuse(work.RefusalOf(err))
			continue
		}
		if r := pol.Denies(&w.Target); r != work.Accepted {
			refuse(r)
			continue
		}
		of, fp := w.Sites.Fingerprint(&w.Target)
		found = append(found, work.SitemapCandidate(&w.Target, of.Name, fp, w.Base.Host()))
	}
	return found
}
