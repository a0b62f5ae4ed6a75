package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"seine/fetch"
	"seine/fetch/robots"
	"seine/frontier"
	"seine/frontier/canon"
)

const (
	robotsTTL     = 24 * time.Hour
	robotsMinTTL  = 10 * time.Minute // however short the site wants it
	robotsMinKept = time.Second      // for the judgement at hand
	robotsMaxHops = 5
)

// robotsStep is what robots.txt means for the next request of a visit.
type robotsStep uint8

const (
	stepAllowed robotsStep = iota
	stepSettled            // this URL was settled without a request
	stepAgain              // its rules are here now: wait for the clock and judge again
	stepOver               // the site cannot be asked now: the visit ends
)

// applyRobots parses the URL and applies the rules of its origin, fetching them first
// where neither this process nor the shard has them. It may make one request.
func (w *worker) applyRobots(v *visit, item *frontier.Item) robotsStep {
	w.raw = append(w.raw[:0], item.URL...)
	if err := w.parser.Parse(&w.url, w.raw); err != nil {
		w.endUnasked(v, item, causeInvalid, err.Error())
		return stepSettled
	}
	if d := v.deadSite(); d != nil {
		w.endUnasked(v, item, d.cause, d.text)
		return stepSettled
	}
	if w.crawler.policy.Load().settings.Robots == "ignore" {
		v.obey(0)
		return stepAllowed
	}
	w.origin = append(w.origin[:0], w.url.Origin()...)
	agent := w.crawler.robotsAgent()
	rules := w.crawler.robots.get(w.origin, agent)
	if rules == nil {
		return w.obtainRules(v, item, agent)
	}
	if v.obey(rules.Delay()) {
		return stepAgain
	}
	if !rules.Allowed(w.url.Target()) {
		w.endUnasked(v, item, causeRobots, "robots.txt disallows it")
		return stepSettled
	}
	return stepAllowed
}

// obey takes the site's Crawl-delay over and reports whether it moved the clock.
func (v *visit) obey(delay time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.clock.next
	v.clock.obey(delay)
	return v.clock.next.After(before)
}

// obtainRules asks the shard, then the site. When it has the rules the URL is to
// be judged once more: asking may have taken its time, and the clock has moved.
func (w *worker) obtainRules(v *visit, item *frontier.Item, agent string) robotsStep {
	origin := string(w.origin)
	f := w.crawler.cfg.Frontier
	stored := []frontier.OriginRules{{Site: v.lent.Site, Origin: origin}}
	if err := f.Rules(v.ctx, v.loop.shard, stored); err != nil {
		w.crawler.fail(v.ctx, err)
		return stepOver
	}
	if ttl := stored[0].TTL; ttl > 0 && ttl <= robotsTTL { // longer: the clock that ends them was set back
		if rules := loadRules(stored[0].Rules, agent); rules != nil {
			w.crawler.robots.put(origin, agent, rules, max(ttl, robotsMinKept))
			return stepAgain
		}
		// Of another version, or read under another name.
	}
	rules, ttl, err := w.fetchRobots(v, origin, agent)
	if err != nil {
		return w.robotsFailed(v, item, err)
	}
	v.obey(rules.Delay())
	if err := w.admitSitemaps(v, rules); err != nil {
		return stepOver // nothing is kept: the next visit asks again
	}
	w.crawler.robots.put(origin, agent, rules, ttl)
	stored[0].Rules, stored[0].TTL = saveRules(rules, agent), ttl
	if err := f.SetRules(v.ctx, v.loop.shard, stored); err != nil {
		w.crawler.fail(v.ctx, err)
		return stepOver
	}
	return stepAgain
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

// errRobotsServer says that the site cannot answer for its rules now.
var errRobotsServer = errors.New("robots.txt: the server has an error")

// fetchRobots gets and parses robots.txt of an origin, by RFC 9309 section 2.3:
// up to five redirects are followed, 4xx means no rules, 429 and 5xx mean that
// nothing may be fetched for now. Each request counts on the site's clock and
// waits for it; a redirect to another site is followed all the same, for there
// is no way to borrow two sites at once.
func (w *worker) fetchRobots(v *visit, origin, agent string) (*robots.Rules, time.Duration, error) {
	if err := w.parser.Parse(&w.target, []byte(origin+"/robots.txt")); err != nil {
		return nil, 0, err
	}
	w.visit = v
	for range robotsMaxHops + 1 {
		if !sleep(v.ctx, w.crawler.stopping, v.untilNext()) {
			return nil, 0, context.Canceled
		}
		if err := w.requestRobots(v); err != nil {
			return nil, 0, err
		}
		switch status := w.resp.Status; {
		case status >= 300 && status < 400 && w.resp.Location != "":
			if err := w.parser.Resolve(&w.target, &w.target, []byte(w.resp.Location), nil); err != nil {
				return robots.Parse(nil, agent), robotsTTL, nil
			}
		case status == 429 || status >= 500:
			after, _ := fetch.RetryAfter(w.resp.Header, time.Now())
			v.hold(after)
			return nil, 0, fmt.Errorf("%w: %d %s", errRobotsServer, status, statusText(status))
		case status >= 200 && status < 300:
			return robots.Parse(w.robotsBody, agent), cacheTime(w.resp.Header, robotsTTL), nil
		default:
			return robots.Parse(nil, agent), robotsTTL, nil
		}
	}
	return robots.Parse(nil, agent), robotsTTL, nil // endless redirects: as if there were none
}

// requestRobots asks for h.target. What belongs to the site alone, such as its
// credentials, goes to no other.
func (w *worker) requestRobots(v *visit) error {
	w.robotsBody = w.robotsBody[:0]
	w.req = fetch.Request{URL: string(w.target.Fetch())}
	if w.sites.Of(w.target.Host()).Name == v.lent.Site {
		w.req.Header = v.headers()
	} else {
		w.req.Header = extraHeaders(w.crawler.policy.Load().settings.UserAgent, nil)
	}
	began := time.Now()
	w.resp.Status = 0
	err := w.crawler.cfg.Fetcher.Do(v.ctx, &w.req, &w.resp, (*robotsBody)(w))
	if errors.Is(err, errRobotsEnough) {
		err = nil
	}
	w.moveClock(began, err, false)
	return err
}

// robotsBody collects the body of a robots.txt.
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

// robotsFailed judges a URL whose site's rules cannot be had. The site waits with
// backoff and is asked again; what may not be asked at all is dead, and so is,
// after GiveUp, what cannot be reached. A name that does not resolve says the
// same of the URL as of its robots.txt.
func (w *worker) robotsFailed(v *visit, item *frontier.Item, err error) robotsStep {
	if v.ctx.Err() != nil || w.crawler.isStopping() {
		return stepOver
	}
	fe, _ := errors.AsType[*fetch.Error](err)
	if fe != nil && fe.Class == fetch.ClassDNS {
		w.begin(v, item)
		w.retry(fe.Class, err.Error(), 0)
		if w.page.outcome.Kind == frontier.Dead {
			w.fillRecord(nil, true)
			w.page.counted = w.crawler.budget.countUnasked()
			w.write()
		} else {
			v.settle(w.page.outcome)
		}
		return stepSettled
	}
	if fe != nil && !fe.Retry {
		v.setDeadSite(&deadSite{fe.Class, err.Error()})
	} else {
		v.refuseRules(err.Error())
	}
	if d := v.deadSite(); d != nil {
		w.endUnasked(v, item, d.cause, d.text)
		return stepSettled
	}
	return stepOver
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

// admitSitemaps queues the sitemaps that robots.txt names, where the crawl wants
// them and they are in its scope. They do not wait for room, for that would hold
// a worker and a visit, of each new site: their site does.
func (w *worker) admitSitemaps(v *visit, rules *robots.Rules) error {
	pol := w.crawler.policy.Load()
	if !pol.settings.Sitemaps {
		return nil
	}
	src := source{site: v.lent.Site, host: w.url.Host()}
	var found []frontier.Candidate
	for _, text := range rules.Sitemaps() {
		if len(found) == maxSitemaps || w.parser.Parse(&w.target, []byte(text)) != nil {
			continue
		}
		site, fp := w.sites.Fingerprint(&w.target)
		if pol.inScope(src, &w.target, site.Name) && !pol.denies(&w.target) {
			found = append(found, frontier.Candidate{URL: string(w.target.Fetch()), Site: site.Name, Fingerprint: fp})
		}
	}
	err := w.crawler.admitAll(v.ctx, found, true)
	if errors.Is(err, frontier.ErrFull) {
		v.hold(noRoomPause * w.crawler.cfg.Backoff)
	}
	return err
}

// isSitemap reports whether a document is read as a sitemap: by its type, or by
// its name where the type says little.
func isSitemap(u *canon.URL, contentType string) bool {
	return strings.Contains(contentType, "xml") && !strings.Contains(contentType, "xhtml") ||
		bytes.Contains(u.Path(), []byte("sitemap")) && !strings.Contains(contentType, "html")
}
