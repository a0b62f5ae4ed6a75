package site

import (
	"cmp"
	"encoding/base64"
	"math/rand/v2"
	"net/textproto"
	"sync"
	"time"

	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// Reasons of a site's delay, as kept in its shard between visits.
const (
	WhySetting    = "setting"
	WhyOverride   = "override"
	WhyCrawlDelay = "crawl-delay"
	WhyAdaptive   = "adaptive"
	WhyBind       = "bind"    // a fetcher left the site to others: it lacks the addresses of its rule
	WhyAddress    = "address" // other hosts of its address are asked in between
)

const (
	maxAdaptive = 60 * time.Second
	// minAdaptive is the delay that the first refusal of a site without one sets.
	minAdaptive = time.Second
	// StartSlack bounds how long after it was sent a request may count as begun.
	// A server sees a request some time after it left; the next one must not
	// seem closer than the delay because this one was slow on its way.
	StartSlack = 50 * time.Millisecond
)

// Clock is the clock of one site during one visit. Its delay is the longest
// of three: the crawl's setting or what overrides it for this site, robots.txt,
// and what the site's answers ask for.
type Clock struct {
	setting    time.Duration
	override   *time.Duration // nil: none
	crawlDelay time.Duration
	crawlCap   time.Duration // the longest of these
	Adaptive   time.Duration
	PerSite    int
	jitter     float64       // delays are stretched by a random factor from 1 to 1 + jitter
	Failures   int           // in a row
	Latency    time.Duration // of the last request to its first byte, 0 = unknown
	doubled    time.Time     // when adaptive was doubled last
	begun      time.Time     // of the last request, as its server may see it
	Next       time.Time
}

// SetRule takes over what the crawl says, and a rule for this site if there is one.
func (sc *Clock) SetRule(s *frontier.Settings, rule *frontier.SiteRule) {
	sc.setting, sc.PerSite, sc.jitter, sc.override = s.Delay, max(s.PerSite, 1), s.Jitter, nil
	sc.crawlCap = s.CrawlDelayCap()
	if rule == nil {
		return
	}
	sc.override = rule.Delay
	if rule.PerSite > 0 {
		sc.PerSite = rule.PerSite
	}
}

// Headers are the headers of requests to one site: the crawl's user agent
// and what a rule adds for this site.
func Headers(agent string, rule *frontier.SiteRule) [][2]string {
	var out [][2]string
	if rule != nil {
		agent = cmp.Or(rule.UserAgent, agent)
		for name, value := range rule.Headers {
			out = append(out, [2]string{name, value})
			if textproto.CanonicalMIMEHeaderKey(name) == "User-Agent" {
				agent = ""
			}
		}
		if rule.Auth != "" {
			out = append(out, [2]string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(rule.Auth))})
		}
	}
	if agent != "" {
		out = append(out, [2]string{"User-Agent", agent})
	}
	return out
}

// Delay is the promised distance between the starts of two requests.
func (sc *Clock) Delay() (time.Duration, string) {
	d, why := sc.setting, WhySetting
	if sc.override != nil {
		d, why = *sc.override, WhyOverride
	}
	if sc.crawlDelay > d {
		d, why = sc.crawlDelay, WhyCrawlDelay
	}
	if sc.Adaptive > d {
		d, why = sc.Adaptive, WhyAdaptive
	}
	return d, why
}

// Started moves the clock for a request that went out at start and whose first
// byte came back after latency (0 = none came).
func (sc *Clock) Started(start time.Time, latency time.Duration) {
	if latency <= 0 || latency > StartSlack {
		latency = StartSlack
	}
	sc.begun = start.Add(latency)
	if d, _ := sc.Delay(); d > 0 {
		sc.HoldUntil(sc.begun.Add(d + time.Duration(rand.Float64()*sc.jitter*float64(d))))
	}
}

// Obey takes over what robots.txt says; it holds from the last request on, which
// may have been that for robots.txt.
func (sc *Clock) Obey(delay time.Duration) {
	delay = min(delay, sc.crawlCap)
	if sc.crawlDelay == delay {
		return
	}
	sc.crawlDelay = delay
	if d, _ := sc.Delay(); d > 0 && !sc.begun.IsZero() {
		sc.HoldUntil(sc.begun.Add(d))
	}
}

// HoldUntil moves the clock forward, never back.
func (sc *Clock) HoldUntil(t time.Time) {
	if t.After(sc.Next) {
		sc.Next = t
	}
}

// Answered lets what refusals added fall slowly. A site's latency needs no term
// of its own: no more than perSite requests are ever under way, so the next one
// starts, on average, latency/perSite after the last one at the earliest, which
// is what AutoThrottle computes.
func (sc *Clock) Answered() {
	sc.Failures = 0
	sc.Adaptive -= sc.Adaptive / 10
	if sc.Adaptive < minAdaptive/10 {
		sc.Adaptive = 0
	}
}

// Refused counts a failure of a request that began then, and doubles the delay
// for one that says so: once for all requests that were under way together.
func (sc *Clock) Refused(now, began time.Time, f work.Failure) {
	sc.Failures++
	if f.After > 0 {
		sc.HoldUntil(now.Add(min(f.After, work.MaxRetryAfter)))
	}
	if !f.Slower || began.Before(sc.doubled) {
		return
	}
	d, _ := sc.Delay()
	sc.Adaptive = min(max(2*d, minAdaptive), maxAdaptive)
	sc.doubled = now
	sc.HoldUntil(began.Add(sc.Adaptive))
}

// BackOffAfter is how many failures in a row have a fetcher back off from a site.
const BackOffAfter = 5

// BackOff keeps the site waiting: backoff at first, doubling up to an hour.
// Where it is given up after so long in all, it is never kept waiting longer
// than that at once.
func (sc *Clock) BackOff(now time.Time, backoff, giveUp time.Duration, givesUp bool) {
	d := work.Doubled(backoff, sc.Failures-BackOffAfter)
	if givesUp {
		d = min(d, giveUp)
	}
	sc.HoldUntil(now.Add(d))
}

// BackedOffFor is how long the site has been kept waiting in all.
func (sc *Clock) BackedOffFor(backoff time.Duration) time.Duration {
	var d time.Duration
	for i := range min(sc.Failures-BackOffAfter, 64) {
		d += work.Doubled(backoff, i)
	}
	return d
}

// Dead is why the URLs of a site end without being asked for.
type Dead struct{ Cause, Text string }

// DeadSites remembers sites that were given up, so that what they still have is
// dead without another request. Each is asked once more after hold.
type DeadSites struct {
	mu    sync.Mutex
	sites map[string]deadSiteEntry
	hold  time.Duration
	most  int // sites
}

type deadSiteEntry struct {
	why   *Dead
	until time.Time
}

// deadSiteBytes is what such a site takes: its name, why it was given up, its place.
const deadSiteBytes = 512

// NewDeadSites returns a table that takes up to a 64th of the memory.
func NewDeadSites(hold time.Duration, memory int64) *DeadSites {
	return &DeadSites{sites: make(map[string]deadSiteEntry), hold: hold, most: int(max(10_000, memory/64/deadSiteBytes))}
}

// AddSite remembers a site.
func (ds *DeadSites) AddSite(site string, d *Dead) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if _, there := ds.sites[site]; !there && len(ds.sites) >= ds.most {
		for other := range ds.sites { // some: it costs one more request
			delete(ds.sites, other)
			break
		}
	}
	ds.sites[site] = deadSiteEntry{d, time.Now().Add(ds.hold)}
}

// Get is why a site was given up, nil if it was not, or long ago.
func (ds *DeadSites) Get(site string) *Dead {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	e, ok := ds.sites[site]
	if !ok {
		return nil
	}
	if time.Now().After(e.until) {
		delete(ds.sites, site)
		return nil
	}
	return e.why
}
