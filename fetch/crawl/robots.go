package crawl

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"seine/fetch"
	"seine/fetch/robots"
	"seine/frontier"
)

const (
	robotsTTL     = 24 * time.Hour
	robotsMinTTL  = 10 * time.Minute // however short the site wants it
	robotsMinKept = time.Second      // for the request at hand
	robotsMaxHops = 5
)

// check looks at what item's URL, its site and robots.txt say of asking for it.
// stepNoRules comes with the origin whose rules are not known in this process.
func (n *nextRequest) check(item *frontier.Item) (s step, origin string) {
	v, c := n.visit, n.visit.loop.crawler
	u := n.reader()
	defer n.putReader(u)
	if err := u.read(item.URL); err != nil {
		v.endUnasked(item, nil, deadOutcome(item, causeInvalid, err.Error()), 0)
		return stepSettled, ""
	}
	if d := v.deadSite(); d != nil {
		v.endUnasked(item, &u.url, deadOutcome(item, d.cause, d.text), 0)
		return stepSettled, ""
	}
	if c.policy.Load().settings.Robots == "ignore" {
		v.obey(0)
		return stepAllowed, ""
	}
	rules := c.robots.get(u.url.Origin(), c.robotsAgent())
	switch {
	case rules == nil:
		return stepNoRules, string(u.url.Origin())
	case v.obey(rules.Delay()):
		return stepLookAgain, ""
	case !rules.Allowed(u.url.Target()):
		v.endUnasked(item, &u.url, deadOutcome(item, causeRobots, "robots.txt disallows it"), 0)
		return stepSettled, ""
	}
	return stepAllowed, ""
}

// reader is the worker's own where one is held, whose request then finds the URL
// parsed.
func (n *nextRequest) reader() *urlReader {
	if n.worker != nil {
		return n.worker.urlReader
	}
	return n.visit.loop.crawler.readers.Get().(*urlReader)
}

func (n *nextRequest) putReader(u *urlReader) {
	if n.worker == nil {
		n.visit.loop.crawler.readers.Put(u)
	}
}

// obtainRules brings the rules of an origin into this process: from the shard, or
// else from the site, and then into the shard. It is called without a worker and
// holds one only for its requests. With stepLookAgain the rules are here: asking
// has taken its time, and the clock has moved.
func (n *nextRequest) obtainRules(item *frontier.Item, origin string) step {
	v, c := n.visit, n.visit.loop.crawler
	agent := c.robotsAgent()
	stored := []frontier.OriginRules{{Site: v.lent.Site, Origin: origin}}
	if err := c.cfg.Frontier.Rules(v.ctx, v.loop.shard, stored); err != nil {
		c.fail(v.ctx, err)
		return stepOver
	}
	if ttl := stored[0].TTL; ttl > 0 && ttl <= robotsTTL { // longer: the clock that ends them was set back
		if rules := loadRules(stored[0].Rules, agent); rules != nil {
			c.robots.put(origin, agent, rules, max(ttl, robotsMinKept))
			return stepLookAgain
		}
		// Of another version, or read under another name.
	}
	rules, ttl, err := n.fetchRules(origin, agent)
	n.release()
	switch {
	case err == errVisitOver:
		return stepOver
	case err != nil:
		return n.rulesFailed(item, err)
	}
	v.obey(rules.Delay())
	if d, most := rules.Delay(), c.policy.Load().settings.CrawlDelayCap(); d > most {
		c.cfg.Log.Warn("robots.txt asks for a longer Crawl-delay than is honoured; --max-crawl-delay changes that",
			"origin", origin, "asked", d, "honoured", most)
	}
	if err := n.admitSitemaps(item, rules); err != nil {
		return stepOver // nothing is kept: the next visit asks again
	}
	c.robots.put(origin, agent, rules, ttl)
	stored[0].Rules, stored[0].TTL = saveRules(rules, agent), ttl
	if err := c.cfg.Frontier.SetRules(v.ctx, v.loop.shard, stored); err != nil {
		c.fail(v.ctx, err)
		return stepOver
	}
	return stepLookAgain
}

// saveRules is how rules are kept in a shard: the name they were read under, a
// line feed, and their compact form.
func saveRules(r *robots.Rules, agent string) []byte {
	return r.Append(append([]byte(agent), '\n'))
}

// loadRules is the opposite; nil when they are not ours.
func loadRules(data []byte, agent string) *robots.Rules {
	name, rest, ok := bytes.Cut(data, []byte{'\n'})
	if !ok || string(name) != agent {
		return nil
	}
	rules, err := robots.Load(rest)
	if err != nil {
		return nil
	}
	return rules
}

var (
	// errRobotsServer says that the site cannot answer for its rules now.
	errRobotsServer = errors.New("robots.txt: the server has an error")
	// errVisitOver says that a visit ended before it could make a request.
	errVisitOver = errors.New("crawl: the visit is over")
)

// fetchRules gets and parses robots.txt of an origin, by RFC 9309 section 2.3:
// up to five redirects are followed, 4xx means no rules, 429 and 5xx mean that
// nothing may be fetched for now. Each request counts on the site's clock and
// waits for it, however long, without a worker; a redirect to another site is
// followed all the same, for there is no way to borrow two sites at once.
func (n *nextRequest) fetchRules(origin, agent string) (*robots.Rules, time.Duration, error) {
	longest := visitSpan
	url := origin + "/robots.txt"
	for range robotsMaxHops + 1 {
		for s := n.awaitWorker(longest); s != stepAllowed; s = n.awaitWorker(longest) {
			if s == stepOver || !n.visit.mayStart() {
				return nil, 0, errVisitOver
			}
		}
		rules, ttl, next, err := n.worker.askRules(n.visit, url, agent)
		if err != nil || rules != nil {
			return rules, ttl, err
		}
		url, longest = next, math.MaxInt64 // a visit that ended here would begin anew, and never get farther
	}
	return robots.Parse(nil, agent), robotsTTL, nil // endless redirects: as if there were none
}

// askRules makes one request for a robots.txt. It returns the rules and how long
// they may be kept, or where they are instead.
func (w *worker) askRules(v *visit, url, agent string) (rules *robots.Rules, ttl time.Duration, next string, err error) {
	if err := w.parser.Parse(&w.target, []byte(url)); err != nil {
		return nil, 0, "", err
	}
	if err := w.requestRules(v); err != nil {
		return nil, 0, "", err
	}
	switch status := w.resp.Status; {
	case status >= 300 && status < 400 && w.resp.Location != "":
		if w.parser.Resolve(&w.target, &w.target, []byte(w.resp.Location), nil) == nil {
			return nil, 0, string(w.target.Fetch()), nil
		}
	case status == 429 || status >= 500:
		after, _ := fetch.RetryAfter(w.resp.Header, time.Now())
		v.hold(after)
		return nil, 0, "", fmt.Errorf("%w: %d %s", errRobotsServer, status, statusText(status))
	case status >= 200 && status < 300:
		text, err := decodedRobots(w.robotsBody, w.resp.Header)
		if err != nil {
			return nil, 0, "", err
		}
		return robots.Parse(text, agent), cacheTime(w.resp.Header, robotsTTL), "", nil
	}
	return robots.Parse(nil, agent), robotsTTL, "", nil
}

// requestRules asks for w.target. What belongs to the site alone, such as its
// credentials, goes to no other.
func (w *worker) requestRules(v *visit) error {
	w.robotsBody = w.robotsBody[:0]
	if url := string(w.target.Fetch()); w.sites.Of(w.target.Host()).Name == v.lent.Site {
		w.req = v.request(url)
	} else {
		w.req = fetch.Request{URL: url, Header: extraHeaders(w.crawler.policy.Load().settings.UserAgent, nil)}
	}
	w.req.MaxBody, w.req.Raw = robots.MaxBytes, true
	began := time.Now()
	w.resp.Status = 0
	err := w.crawler.cfg.Fetcher.Do(v.ctx, &w.req, &w.resp, (*robotsBody)(w))
	if errors.Is(err, errRobotsEnough) {
		err = nil
	}
	v.requested(w.replyOf(began, err, false))
	return err
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
	return nil, fmt.Errorf("%w: its body does not decode as %s: %w", errRobotsServer, clip(coding, 60), err)
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
func (n *nextRequest) rulesFailed(item *frontier.Item, err error) step {
	v, c := n.visit, n.visit.loop.crawler
	if v.ctx.Err() != nil || c.isStopping() {
		return stepOver
	}
	class, retry := errorClass(err)
	if fetch.Local(class) {
		return stepOver // it says nothing about the site
	}
	if class == fetch.ClassDNS || class == fetch.ClassNoName {
		o := deadOutcome(item, class, err.Error())
		if retry {
			o = c.cfg.retryOutcome(item, class, err.Error(), 0)
		}
		if o.Kind == frontier.Retry {
			v.settle(o)
		} else {
			u := n.reader()
			defer n.putReader(u)
			u.read(item.URL) //nolint:errcheck // it was read before
			v.endUnasked(item, &u.url, o, 1)
		}
		return stepSettled
	}
	if retry {
		v.refuseRules(err.Error())
	} else {
		v.setDeadSite(&deadSite{class, err.Error()})
	}
	return stepLookAgain // at a site that is dead now, or set aside
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

const (
	robotsCached = 10_000   // origins a process remembers
	robotsBytes  = 64 << 20 // and what their rules may take
)

// robotsCache remembers rules by origin, in this process only; the shard keeps
// them for the fleet.
type robotsCache struct {
	mu      sync.Mutex
	origins map[string]robotsEntry
	bytes   int // of their rules
}

type robotsEntry struct {
	rules   *robots.Rules
	agent   string // they were read for
	expires time.Time
	bytes   int
}

func newRobotsCache() *robotsCache { return &robotsCache{origins: make(map[string]robotsEntry)} }

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
	e := robotsEntry{r, agent, time.Now().Add(ttl), len(origin) + r.Bytes()}
	rc.drop(origin)
	for len(rc.origins) > 0 && (len(rc.origins) >= robotsCached || rc.bytes+e.bytes > robotsBytes) {
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

// admitSitemaps queues the sitemaps that the robots.txt of item's origin names,
// where the crawl wants them and they are in its scope. They do not wait for
// room, for that would hold a visit of each new site: their site does.
func (n *nextRequest) admitSitemaps(item *frontier.Item, rules *robots.Rules) error {
	v, c := n.visit, n.visit.loop.crawler
	pol := c.policy.Load()
	if !pol.settings.Sitemaps || len(rules.Sitemaps()) == 0 {
		return nil
	}
	err := c.admitAll(v.ctx, n.sitemaps(item, rules, pol), true)
	if errors.Is(err, frontier.ErrFull) {
		v.hold(noRoomPause * c.cfg.Backoff)
	}
	return err
}

// sitemaps are the candidates that rules name.
func (n *nextRequest) sitemaps(item *frontier.Item, rules *robots.Rules, pol *policy) (found []frontier.Candidate) {
	u := n.reader()
	defer n.putReader(u)
	if u.read(item.URL) != nil {
		return nil
	}
	src := source{site: n.visit.lent.Site, host: u.url.Host()}
	for _, text := range rules.Sitemaps() {
		if len(found) == maxSitemaps || u.parser.Parse(&u.target, []byte(text)) != nil {
			continue
		}
		site, fp := u.sites.Fingerprint(&u.target)
		if pol.inScope(src, &u.target, site.Name) && !pol.denies(&u.target) {
			found = append(found, frontier.Candidate{URL: string(u.target.Fetch()), Site: site.Name, Fingerprint: fp})
		}
	}
	return found
}
