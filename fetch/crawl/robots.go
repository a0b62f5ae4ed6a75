package crawl

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"seine/fetch"
	"seine/fetch/robots"
	"seine/frontier"
)

const (
	robotsTTL      = 24 * time.Hour
	robotsMinTTL   = 10 * time.Minute // however short the site wants it
	robotsMaxBytes = 512 << 10
	robotsMaxHops  = 5
	robotsCached   = 10_000 // origins a process remembers
)

// robotsCache remembers rules by origin, in this process only; the shard keeps
// them for the fleet.
type robotsCache struct {
	mu      sync.Mutex
	origins map[string]robotsEntry
}

type robotsEntry struct {
	rules   *robots.Rules
	expires time.Time
}

func newRobotsCache() *robotsCache { return &robotsCache{origins: make(map[string]robotsEntry)} }

func (c *robotsCache) get(origin []byte) *robots.Rules {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.origins[string(origin)]
	if !ok || time.Now().After(e.expires) {
		return nil
	}
	return e.rules
}

func (c *robotsCache) put(origin string, r *robots.Rules, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.origins) >= robotsCached {
		for o := range c.origins { // any one: map order is random enough
			delete(c.origins, o)
			break
		}
	}
	c.origins[origin] = robotsEntry{r, time.Now().Add(ttl)}
}

// judgement is what robots.txt means for the next request of a visit.
type judgement uint8

const (
	judgedAllowed judgement = iota
	judgedSettled           // this URL was settled without a request
	judgedWait              // robots.txt was fetched just now: the site's clock has moved
	judgedOver              // the site cannot be asked now: the visit ends
)

// judge parses the URL and applies the rules of its origin, fetching them first
// where neither this process nor the shard has them. It may make one request.
func (h *hand) judge(l *loan, item *frontier.Item) judgement {
	if err := h.parser.Parse(&h.url, []byte(item.URL)); err != nil {
		h.bury(l, item, causeInvalid, err.Error())
		return judgedSettled
	}
	if l.doomed != "" {
		h.bury(l, item, l.doomed, l.doom)
		return judgedSettled
	}
	s := h.w.policy.Load().settings
	if s.Robots == "ignore" {
		return judgedAllowed
	}
	h.origin = append(h.origin[:0], h.url.Origin()...)
	rules := h.w.robots.get(h.origin)
	if rules == nil {
		var j judgement
		if rules, j = h.obtainRules(l, item); rules == nil {
			return j
		}
		l.obey(rules)
		if j == judgedWait {
			return j
		}
	}
	l.obey(rules)
	if !rules.Allowed(h.url.Target()) {
		h.bury(l, item, causeRobots, "robots.txt disallows it")
		return judgedSettled
	}
	return judgedAllowed
}

// obey takes the site's Crawl-delay over.
func (l *loan) obey(r *robots.Rules) {
	l.mu.Lock()
	l.pace.crawlDelay = min(r.Delay(), maxCrawlDelay)
	l.mu.Unlock()
}

// obtainRules asks the shard, then the site.
func (h *hand) obtainRules(l *loan, item *frontier.Item) (*robots.Rules, judgement) {
	origin := string(h.origin)
	f := h.w.cfg.Frontier
	data, ttl, ok, err := f.Robots(l.ctx, l.lane.shard, origin)
	if err != nil {
		h.w.fail(l.ctx, err)
		return nil, judgedOver
	}
	if ok {
		if rules, err := robots.Load(data); err == nil {
			h.w.robots.put(origin, rules, ttl)
			return rules, judgedAllowed
		}
		// Of another version: ask the site again.
	}
	rules, ttl, err := h.fetchRobots(l, origin)
	if err != nil {
		return nil, h.unreachable(l, item, err)
	}
	if err := h.admitSitemaps(l.ctx, rules); err != nil {
		return nil, judgedOver // nothing is kept: the next visit asks again
	}
	h.w.robots.put(origin, rules, ttl)
	if err := f.SetRobots(l.ctx, l.lane.shard, origin, rules.Append(nil), ttl); err != nil {
		h.w.fail(l.ctx, err)
		return nil, judgedOver
	}
	return rules, judgedWait
}

// admitSitemaps queues the sitemaps that robots.txt names, where the crawl wants
// them.
func (h *hand) admitSitemaps(ctx context.Context, rules *robots.Rules) error {
	if !h.w.policy.Load().settings.Sitemaps {
		return nil
	}
	maker := frontier.NewMaker(h.w.cfg.Frontier.Layout())
	var found []frontier.Candidate
	for _, text := range rules.Sitemaps() {
		if c, err := maker.Make(text); err == nil {
			found = append(found, c)
		}
	}
	_, err := h.w.Admit(ctx, found)
	return err
}

// errRobotsServer says that the site cannot answer for its rules now.
var errRobotsServer = errors.New("robots.txt: the server has an error")

// fetchRobots gets and parses robots.txt of an origin, by RFC 9309 section 2.3:
// up to five redirects are followed, 4xx means no rules, 429 and 5xx mean that
// nothing may be fetched for now.
func (h *hand) fetchRobots(l *loan, origin string) (*robots.Rules, time.Duration, error) {
	agent := h.w.robotsAgent()
	if err := h.parser.Parse(&h.target, []byte(origin+"/robots.txt")); err != nil {
		return nil, 0, err
	}
	for range robotsMaxHops + 1 {
		h.robotsBody = h.robotsBody[:0]
		h.req = fetch.Request{URL: string(h.target.Fetch()), Header: l.headers()}
		start := time.Now()
		err := h.w.cfg.Fetcher.Do(l.ctx, &h.req, &h.resp, (*robotsHandler)(h))
		l.requested(&h.resp, start, err)
		if err != nil && !errors.Is(err, errRobotsEnough) {
			return nil, 0, err
		}
		switch status := h.resp.Status; {
		case status >= 300 && status < 400 && h.resp.Location != "":
			if err := h.parser.Resolve(&h.target, &h.target, []byte(h.resp.Location), nil); err != nil {
				return robots.Parse(nil, agent), robotsTTL, nil
			}
			continue
		case status == 429 || status >= 500:
			return nil, 0, errRobotsServer
		case status >= 200 && status < 300:
			return robots.Parse(h.robotsBody, agent), cacheTime(h.resp.Header, robotsTTL), nil
		default:
			return robots.Parse(nil, agent), robotsTTL, nil
		}
	}
	return robots.Parse(nil, agent), robotsTTL, nil // endless redirects: as if there were none
}

// robotsHandler collects the body of a robots.txt.
type robotsHandler hand

var errRobotsEnough = errors.New("robots.txt: longer than is read")

func (h *robotsHandler) Begin(r *fetch.Response) bool { return r.Status >= 200 && r.Status < 300 }

func (h *robotsHandler) Write(p []byte) (int, error) {
	room := robotsMaxBytes - len(h.robotsBody)
	if len(p) >= room {
		h.robotsBody = append(h.robotsBody, p[:room]...)
		return room, errRobotsEnough
	}
	h.robotsBody = append(h.robotsBody, p...)
	return len(p), nil
}

// unreachable ends the visit of a site whose rules cannot be had: it waits with
// backoff, and after GiveUp in all its URLs are dead.
func (h *hand) unreachable(l *loan, item *frontier.Item, err error) judgement {
	if l.ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return judgedOver
	}
	cause := causeUnreachable
	var fe *fetch.Error
	if errors.As(err, &fe) && !fe.Retry {
		cause = fe.Class
	}
	if cause != causeUnreachable || h.w.cfg.ExitWhenDone && l.givenUp(h.w.cfg.GiveUp) {
		l.doomed, l.doom = cause, err.Error()
		h.bury(l, item, cause, l.doom)
		return judgedSettled
	}
	l.setAside()
	return judgedOver
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
