package crawl

import (
	"encoding/base64"
	"math/rand/v2"
	"time"

	"seine/frontier"
)

// Reasons of a site's delay, as kept in its shard between visits.
const (
	whySetting    = "setting"
	whyOverride   = "override"
	whyCrawlDelay = "crawl-delay"
	whyAdaptive   = "adaptive"
)

const (
	maxCrawlDelay = 60 * time.Second
	maxAdaptive   = 60 * time.Second
	maxRetryAfter = time.Hour
	// maxJitter stretches delays by a random factor from 1 to this, so that a
	// fleet's requests do not fall into step.
	maxJitter = 1.5
	// minBackoff is the delay that the first refusal of a site without one sets.
	minBackoff = time.Second
	// startSlack bounds how long after it was sent a request may count as begun.
	// A server sees a request some time after it left; the next one must not
	// seem closer than the delay because this one was slow on its way.
	startSlack = 20 * time.Millisecond
)

// pace is the clock of one site during one visit. Its delay is the longest of
// four: the crawl's setting, the site's override, robots.txt and what the
// site's answers ask for.
type pace struct {
	setting    time.Duration
	override   time.Duration
	crawlDelay time.Duration
	adaptive   time.Duration
	perSite    int
	jitter     float64 // upper factor, 1 = none
	failures   int     // in a row
	next       time.Time
}

// newPace is the clock of a visit just lent: the site may be asked at once.
func newPace(s *frontier.Settings, rule *frontier.SiteRule, v frontier.Visit) pace {
	p := pace{setting: s.Delay, perSite: max(s.PerSite, 1), jitter: maxJitter, failures: v.Failures}
	if rule != nil {
		p.override = rule.Delay
		if rule.PerSite > 0 {
			p.perSite = rule.PerSite
		}
	}
	if v.Why == whyAdaptive {
		p.adaptive = v.Delay
	}
	return p
}

// extraHeaders are the headers a site rule adds to requests of its site.
func extraHeaders(rule *frontier.SiteRule) [][2]string {
	if rule == nil {
		return nil
	}
	var out [][2]string
	for name, value := range rule.Headers {
		out = append(out, [2]string{name, value})
	}
	if rule.Auth != "" {
		out = append(out, [2]string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(rule.Auth))})
	}
	return out
}

// delay is the promised distance between the starts of two requests.
func (p *pace) delay() (time.Duration, string) {
	d, why := p.setting, whySetting
	if p.override > 0 {
		d, why = p.override, whyOverride
	}
	if p.crawlDelay > d {
		d, why = p.crawlDelay, whyCrawlDelay
	}
	if p.adaptive > d {
		d, why = p.adaptive, whyAdaptive
	}
	return d, why
}

// started moves the clock for a request that went out at start and whose first
// byte came back after latency (0 = none came).
func (p *pace) started(start time.Time, latency time.Duration) {
	if latency <= 0 || latency > startSlack {
		latency = startSlack
	}
	d, _ := p.delay()
	if d <= 0 {
		latency = 0
	}
	if p.jitter > 1 {
		d += time.Duration(rand.Float64() * (p.jitter - 1) * float64(d))
	}
	p.holdUntil(start.Add(latency + d))
}

// holdUntil moves the clock forward, never back.
func (p *pace) holdUntil(t time.Time) {
	if t.After(p.next) {
		p.next = t
	}
}

// answered lets what refusals added fall slowly. A site's latency needs no term
// of its own: no more than perSite requests are ever under way, so the next one
// starts, on average, latency/perSite after the last one at the earliest, which
// is what AutoThrottle computes.
func (p *pace) answered() {
	p.failures = 0
	p.adaptive -= p.adaptive / 10
	if p.adaptive < minBackoff/10 {
		p.adaptive = 0
	}
}

// refused doubles the delay: 429, 503, a timeout or a reset. after is what the
// site itself asked for, 0 if nothing.
func (p *pace) refused(after time.Duration) {
	p.failures++
	d, _ := p.delay()
	p.adaptive = min(max(2*d, minBackoff), maxAdaptive)
	if after > 0 {
		p.holdUntil(time.Now().Add(min(after, maxRetryAfter)))
	}
}

// retryDelay is how long the n-th retry (from 0) of a URL waits: 5 s doubling
// up to 1 h, with jitter so that a site's retries do not come back as one.
func retryDelay(n int) time.Duration {
	d := min(5*time.Second<<min(n, 12), time.Hour)
	return d + time.Duration(rand.Int64N(int64(d)/2))
}

// asideAfter is how many failures in a row set a site aside.
const asideAfter = 5

// asideFor is how long a site with n failures in a row waits: 5 s doubling up
// to 1 h.
func asideFor(n int) time.Duration { return min(5*time.Second<<min(max(n-1, 0), 12), time.Hour) }

// asideTotal is how long a site with n failures in a row has waited in all.
func asideTotal(n int) time.Duration {
	var d time.Duration
	for i := 1; i <= min(n, 64); i++ {
		d += asideFor(i)
	}
	return d
}
