package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seine/fetch"
	"seine/fetch/robots"
	"seine/frontier"
)

const (
	robotsTTL     = 24 * time.Hour
	robotsMinTTL  = 10 * time.Minute // however short the site wants it
	robotsMinKept = time.Second      // for the judgement at hand
	robotsMaxHops = 5
)

// judgement is what robots.txt means for the next request of a visit.
type judgement uint8

const (
	judgedAllowed judgement = iota
	judgedSettled           // this URL was settled without a request
	judgedWait              // its rules are here now: wait for the clock and judge again
	judgedOver              // the site cannot be asked now: the visit ends
)

// judge parses the URL and applies the rules of its origin, fetching them first
// where neither this process nor the shard has them. It may make one request.
func (h *hand) judge(l *loan, item *frontier.Item) judgement {
	h.raw = append(h.raw[:0], item.URL...)
	if err := h.parser.Parse(&h.url, h.raw); err != nil {
		h.bury(l, item, causeInvalid, err.Error())
		return judgedSettled
	}
	if d := l.doom(); d != nil {
		h.bury(l, item, d.cause, d.text)
		return judgedSettled
	}
	if h.w.policy.Load().settings.Robots == "ignore" {
		l.obey(0)
		return judgedAllowed
	}
	h.origin = append(h.origin[:0], h.url.Origin()...)
	agent := h.w.robotsAgent()
	rules := h.w.robots.get(h.origin, agent)
	if rules == nil {
		return h.obtainRules(l, item, agent)
	}
	if l.obey(rules.Delay()) {
		return judgedWait
	}
	if !rules.Allowed(h.url.Target()) {
		h.bury(l, item, causeRobots, "robots.txt disallows it")
		return judgedSettled
	}
	return judgedAllowed
}

// obey takes the site's Crawl-delay over and reports whether it moved the clock.
func (l *loan) obey(delay time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.pace.next
	l.pace.obey(delay)
	return l.pace.next.After(before)
}

// obtainRules asks the shard, then the site. When it has the rules the URL is to
// be judged once more: asking may have taken its time, and the clock has moved.
func (h *hand) obtainRules(l *loan, item *frontier.Item, agent string) judgement {
	origin := string(h.origin)
	f := h.w.cfg.Frontier
	data, ttl, ok, err := f.Robots(l.ctx, l.lane.shard, origin)
	if err != nil {
		h.w.fail(l.ctx, err)
		return judgedOver
	}
	if ok && ttl <= robotsTTL { // longer: the clock that ends them was set back
		if rules := loadRules(data, agent); rules != nil {
			h.w.robots.put(origin, agent, rules, max(ttl, robotsMinKept))
			return judgedWait
		}
		// Of another version, or read under another name.
	}
	rules, ttl, err := h.fetchRobots(l, origin, agent)
	if err != nil {
		return h.unreachable(l, item, err)
	}
	l.obey(rules.Delay())
	if err := h.admitSitemaps(l, rules); err != nil {
		return judgedOver // nothing is kept: the next visit asks again
	}
	h.w.robots.put(origin, agent, rules, ttl)
	if err := f.SetRobots(l.ctx, l.lane.shard, origin, saveRules(rules, agent), ttl); err != nil {
		h.w.fail(l.ctx, err)
		return judgedOver
	}
	return judgedWait
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
func (h *hand) fetchRobots(l *loan, origin, agent string) (*robots.Rules, time.Duration, error) {
	if err := h.parser.Parse(&h.target, []byte(origin+"/robots.txt")); err != nil {
		return nil, 0, err
	}
	h.loan = l
	for range robotsMaxHops + 1 {
		if !sleep(l.ctx, h.w.stopping, l.untilNext()) {
			return nil, 0, context.Canceled
		}
		if err := h.requestRobots(l); err != nil {
			return nil, 0, err
		}
		switch status := h.resp.Status; {
		case status >= 300 && status < 400 && h.resp.Location != "":
			if err := h.parser.Resolve(&h.target, &h.target, []byte(h.resp.Location), nil); err != nil {
				return robots.Parse(nil, agent), robotsTTL, nil
			}
		case status == 429 || status >= 500:
			after, _ := fetch.RetryAfter(h.resp.Header, time.Now())
			l.hold(after)
			return nil, 0, fmt.Errorf("%w: %d %s", errRobotsServer, status, statusText(status))
		case status >= 200 && status < 300:
			return robots.Parse(h.robotsBody, agent), cacheTime(h.resp.Header, robotsTTL), nil
		default:
			return robots.Parse(nil, agent), robotsTTL, nil
		}
	}
	return robots.Parse(nil, agent), robotsTTL, nil // endless redirects: as if there were none
}

// requestRobots asks for h.target. What belongs to the site alone, such as its
// credentials, goes to no other.
func (h *hand) requestRobots(l *loan) error {
	h.robotsBody = h.robotsBody[:0]
	h.req = fetch.Request{URL: string(h.target.Fetch())}
	if h.sites.Of(h.target.Host()).Name == l.visit.Site {
		h.req.Header = l.headers()
	} else {
		h.req.Header = extraHeaders(h.w.policy.Load().settings.UserAgent, nil)
	}
	began := time.Now()
	h.resp.Status = 0
	err := h.w.cfg.Fetcher.Do(l.ctx, &h.req, &h.resp, (*robotsHandler)(h))
	if errors.Is(err, errRobotsEnough) {
		err = nil
	}
	h.tell(began, err, false)
	return err
}

// robotsHandler collects the body of a robots.txt.
type robotsHandler hand

var errRobotsEnough = errors.New("robots.txt: longer than is read")

func (h *robotsHandler) Begin(r *fetch.Response) bool { return r.Status >= 200 && r.Status < 300 }

func (h *robotsHandler) Write(p []byte) (int, error) {
	room := robots.MaxBytes - len(h.robotsBody)
	if len(p) >= room {
		h.robotsBody = append(h.robotsBody, p[:room]...)
		return room, errRobotsEnough
	}
	h.robotsBody = append(h.robotsBody, p...)
	return len(p), nil
}

// unreachable judges a URL whose site's rules cannot be had. The site waits with
// backoff and is asked again; what may not be asked at all is dead, and so is,
// after GiveUp, what cannot be reached. A name that does not resolve says the
// same of the URL as of its robots.txt.
func (h *hand) unreachable(l *loan, item *frontier.Item, err error) judgement {
	if l.ctx.Err() != nil || h.w.isStopping() {
		return judgedOver
	}
	fe, _ := errors.AsType[*fetch.Error](err)
	if fe != nil && fe.Class == fetch.ClassDNS {
		h.begin(l, item)
		h.again(fe.Class, err.Error(), 0)
		if h.page.outcome.Kind == frontier.Dead {
			h.record(nil, true)
			h.page.counted = h.w.budget.bury()
			h.pass()
		} else {
			l.settle(h.page.outcome)
		}
		return judgedSettled
	}
	if fe != nil && !fe.Retry {
		l.setDoom(&doom{fe.Class, err.Error()})
	} else {
		l.refuseRules(err.Error())
	}
	if d := l.doom(); d != nil {
		h.bury(l, item, d.cause, d.text)
		return judgedSettled
	}
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
