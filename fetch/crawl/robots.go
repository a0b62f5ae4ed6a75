package crawl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"seine/extract/sink"
	"seine/fetch"
	"seine/fetch/crawl/internal/work"
	"seine/fetch/robots"
	"seine/frontier"
)

const (
	robotsTTL     = 24 * time.Hour
	robotsMinTTL  = 10 * time.Minute // however short the site wants it
	robotsMinKept = time.Second      // for the request at hand
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
		w.endUnasked(v, item, true, work.Dead(item, d.cause, d.text), 0)
		return stepSettled
	}
	if w.crawler.policy.Load().Settings.Robots == "ignore" {
		v.obey(0)
		return stepAllowed
	}
	rules := w.crawler.robots.get(w.URL.Origin(), w.crawler.robotsAgent())
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
			if c.robots.get(u.URL.Origin(), agent) == nil {
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
		if o.TTL <= 0 || o.TTL > robotsTTL { // longer: the clock that ends them was set back
			continue
		}
		if rules := readRules(o.Rules, agent); rules != nil { // else of another version, or read under another name
			c.robots.put(o.Origin, agent, rules, max(o.TTL, robotsMinKept))
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
		rules, ttl = robots.Parse(nil, agent), robotsTTL
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
		c.robots.put(origin, c.robotsAgent(), rules, ttl)
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
			c.agenda.put(v, time.Now())
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

// readRules reads rules as a shard keeps them; nil when they are not ours.
func readRules(data []byte, agent string) *robots.Rules {
	rules, name, _, err := robots.LoadKept(data)
	if err != nil || name != agent {
		return nil
	}
	return rules
}

// errTooLate says that a request to another site did not go out in its time.
var errTooLate = errors.New("robots.txt: too late")

// errRobotsServer says that the site cannot answer for its rules now.
var errRobotsServer = errors.New("robots.txt: the server has an error")

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
		return nil, 0, "", fmt.Errorf("%w: %d %s", errRobotsServer, status, work.StatusText(status))
	case status >= 200 && status < 300:
		text, err := decodedRobots(w.robotsBody, w.resp.Header)
		if err != nil {
			return nil, 0, "", err
		}
		return robots.Parse(text, agent), cacheTime(w.resp.Header, robotsTTL), "", nil
	}
	return robots.Parse(nil, agent), robotsTTL, "", nil
}

// requestRules asks for w.Target. What belongs to the site alone, such as its
// credentials, goes to no other.
func (w *worker) requestRules(v *visit, addr netip.Addr, foreign bool) (err error) {
	w.robotsBody = w.robotsBody[:0]
	if url := string(w.Target.Fetch()); foreign {
		w.req = fetch.Request{URL: url, Header: extraHeaders(w.crawler.policy.Load().Settings.UserAgent, nil)}
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
		w.crawler.count.answers.countCode(w.resp.Status)
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

// decodedRobots undoes the codings of a robots.txt. Where they do not decode, the
// file was often never coded: it counts as it is if it looks like text. Else
// nothing is known of what it says, as when the server fails.
func decodedRobots(body []byte, h fetch.Header) ([]byte, error) {
	coding := strings.Join(h.Values("Content-Encoding"), ",")
	if coding == "" {
		return body, nil
	}
	text, _, err := fetch.Decode(coding, body, robots.MaxBytes)
	switch {
	case err == nil:
		return text, nil
	case strings.HasPrefix(fetch.Sniff(body), "text/"):
		return body, nil
	}
	return nil, fmt.Errorf("%w: its body does not decode as %s: %w", errRobotsServer, work.Clip(coding, 60), err)
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
	if errors.Is(err, errRobotsServer) {
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
		v.setDeadSite(&deadSite{class, err.Error()})
	}
	return true // at the next URL, or a site that is dead now, or set aside
}

// cacheTime is how long an answer may be kept by its Cache-Control, at most max.
func cacheTime(h fetch.Header, max time.Duration) time.Duration {
	for _, v := range h.Values("Cache-Control") {
		for _, d := range strings.Split(v, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(d), "=")
			switch {
			case strings.EqualFold(name, "no-store"), strings.EqualFold(name, "no-cache"):
				return robotsMinTTL
			case strings.EqualFold(name, "max-age"):
				if s, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil {
					return min(max, time.Duration(s)*time.Second+robotsMinTTL)
				}
			}
		}
	}
	return max
}

// robotsOverhead is what an origin takes beside its name and rules, bytes.
const robotsOverhead = 256

// robotsCache remembers rules by origin, in this process only; the shard keeps
// them for the fleet.
type robotsCache struct {
	mu      sync.Mutex
	origins map[string]robotsEntry
	bytes   int // they take
	most    int
}

type robotsEntry struct {
	rules   *robots.Rules
	agent   string // they were read for
	expires time.Time
	bytes   int
}

// mostRobots is what the cache takes at most, bytes: some hundred thousand origins.
// Rules of others are asked of their shard, many at a time, which takes it 2 us each;
// most sites of a wide crawl are visited once, and would only fill the memory.
const mostRobots = 64 << 20

// newRobotsCache returns an empty cache.
func newRobotsCache() *robotsCache {
	return &robotsCache{origins: make(map[string]robotsEntry), most: mostRobots}
}

// get returns the rules of origin for agent, nil when they are not there.
func (rc *robotsCache) get(origin []byte, agent string) *robots.Rules {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	e, ok := rc.origins[string(origin)]
	if !ok || e.agent != agent || time.Now().After(e.expires) {
		return nil
	}
	return e.rules
}

func (rc *robotsCache) put(origin, agent string, r *robots.Rules, ttl time.Duration) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	e := robotsEntry{r, agent, time.Now().Add(ttl), len(origin) + r.Bytes() + robotsOverhead}
	rc.drop(origin)
	for len(rc.origins) > 0 && rc.bytes+e.bytes > rc.most {
		rc.drop(rc.victim())
	}
	rc.origins[origin] = e
	rc.bytes += e.bytes
}

// victim is the largest of a few that stand at random, as map order is: a site
// with huge rules for each of its many origins shall not drive out all others.
func (rc *robotsCache) victim() (origin string) {
	n, most := 0, 0
	for o, e := range rc.origins {
		if e.bytes > most {
			origin, most = o, e.bytes
		}
		if n++; n == 8 {
			break
		}
	}
	return origin
}

// drop forgets an origin. The lock is held.
func (rc *robotsCache) drop(origin string) {
	rc.bytes -= rc.origins[origin].bytes
	delete(rc.origins, origin)
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
	count := func(r work.Refusal) { w.crawler.count.refusals[r].Inc() }
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
		site, fp := w.Sites.Fingerprint(&w.Target)
		found = append(found, work.SitemapCandidate(&w.Target, site.Name, fp, w.Base.Host()))
	}
	return found
}
