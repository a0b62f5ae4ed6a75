package crawl

import (
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
	whySetting    = "setting"
	whyOverride   = "override"
	whyCrawlDelay = "crawl-delay"
	whyAdaptive   = "adaptive"
	whyAddress    = "address" // other hosts of its address are asked in between
)

const (
	maxAdaptive = 60 * time.Second
	// minAdaptive is the delay that the first refusal of a site without one sets.
	minAdaptive = time.Second
	// startSlack bounds how long after it was sent a request may count as begun.
	// A server sees a request some time after it left; the next one must not
	// seem closer than the delay because this one was slow on its way.
	startSlack = 50 * time.Millisecond
)

// siteClock is the clock of one site during one visit. Its delay is the longest
// of three: the crawl's setting or what overrides it for this site, robots.txt,
// and what the site's answers ask for.
type siteClock struct {
	setting    time.Duration
	override   *time.Duration // nil: none
	crawlDelay time.Duration
	crawlCap   time.Duration // the longest of these
	adaptive   time.Duration
	perSite    int
	jitter     float64       // delays are stretched by a random factor from 1 to 1 + jitter
	failures   int           // in a row
	latency    time.Duration // of the last request to its first byte, 0 = unknown
	doubled    time.Time     // when adaptive was doubled last
	begun      time.Time     // of the last request, as its server may see it
	next       time.Time
}

// set takes over what the crawl says, and a rule for this site if there is one.
func (sc *siteClock) set(s *frontier.Settings, rule *frontier.SiteRule) {
	sc.setting, sc.perSite, sc.jitter, sc.override = s.Delay, max(s.PerSite, 1), s.Jitter, nil
	sc.crawlCap = s.CrawlDelayCap()
	if rule == nil {
		return
	}
	sc.override = rule.Delay
	if rule.PerSite > 0 {
		sc.perSite = rule.PerSite
	}
}

// extraHeaders are the headers of requests to one site: the crawl's user agent
// and what a rule adds for this site.
func extraHeaders(agent string, rule *frontier.SiteRule) [][2]string {
	var out [][2]string
	if rule != nil {
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

// delay is the promised distance between the starts of two requests.
func (sc *siteClock) delay() (time.Duration, string) {
	d, why := sc.setting, whySetting
	if sc.override != nil {
		d, why = *sc.override, whyOverride
	}
	if sc.crawlDelay > d {
		d, why = sc.crawlDelay, whyCrawlDelay
	}
	if sc.adaptive > d {
		d, why = sc.adaptive, whyAdaptive
	}
	return d, why
}

// started moves the clock for a request that went out at start and whose first
// byte came back after latency (0 = none came).
func (sc *siteClock) started(start time.Time, latency time.Duration) {
	if latency <= 0 || latency > startSlack {
		latency = startSlack
	}
	sc.begun = start.Add(latency)
	if d, _ := sc.delay(); d > 0 {
		sc.holdUntil(sc.begun.Add(d + time.Duration(rand.Float64()*sc.jitter*float64(d))))
	}
}

// obey takes over what robots.txt says; it holds from the last request on, which
// may have been that for robots.txt.
func (sc *siteClock) obey(delay time.Duration) {
	delay = min(delay, sc.crawlCap)
	if sc.crawlDelay == delay {
		return
	}
	sc.crawlDelay = delay
	if d, _ := sc.delay(); d > 0 && !sc.begun.IsZero() {
		sc.holdUntil(sc.begun.Add(d))
	}
}

// holdUntil moves the clock forward, never back.
func (sc *siteClock) holdUntil(t time.Time) {
	if t.After(sc.next) {
		sc.next = t
	}
}

// answered lets what refusals added fall slowly. A site's latency needs no term
// of its own: no more than perSite requests are ever under way, so the next one
// starts, on average, latency/perSite after the last one at the earliest, which
// is what AutoThrottle computes.
func (sc *siteClock) answered() {
	sc.failures = 0
	sc.adaptive -= sc.adaptive / 10
	if sc.adaptive < minAdaptive/10 {
		sc.adaptive = 0
	}
}

// refused counts a failure of a request that began then, and doubles the delay
// for one that says so: once for all requests that were under way together.
func (sc *siteClock) refused(began time.Time, f work.Failure) {
	sc.failures++
	if f.After > 0 {
		sc.holdUntil(time.Now().Add(min(f.After, work.MaxRetryAfter)))
	}
	if !f.Slower || began.Before(sc.doubled) {
		return
	}
	d, _ := sc.delay()
	sc.adaptive = min(max(2*d, minAdaptive), maxAdaptive)
	sc.doubled = time.Now()
	sc.holdUntil(began.Add(sc.adaptive))
}

// asideAfter is how many failures in a row set a site aside.
const asideAfter = 5

// setAside keeps the site waiting: backoff at first, doubling up to an hour.
// Where it is given up after so long in all, it is never kept waiting longer
// than that at once.
func (sc *siteClock) setAside(backoff, giveUp time.Duration, givesUp bool) {
	d := work.Doubled(backoff, sc.failures-asideAfter)
	if givesUp {
		d = min(d, giveUp)
	}
	sc.holdUntil(time.Now().Add(d))
}

// asideSoFar is how long the site has been kept waiting in all.
func (sc *siteClock) asideSoFar(backoff time.Duration) time.Duration {
	var d time.Duration
	for i := range min(sc.failures-asideAfter, 64) {
		d += work.Doubled(backoff, i)
	}
	return d
}

// deadSites remembers sites that were given up, so that what they still have is
// dead without another request. Each is asked once more after hold.
type deadSites struct {
	mu    sync.Mutex
	sites map[string]deadSiteEntry
	hold  time.Duration
	most  int // sites
}

type deadSiteEntry struct {
	why   *deadSite
	until time.Time
}

// deadSiteBytes is what such a site takes: its name, why it was given up, its place.
const deadSiteBytes = 512

// newDeadSites returns a table that takes up to a 64th of the memory.
func newDeadSites(hold time.Duration, memory int64) *deadSites {
	return &deadSites{sites: make(map[string]deadSiteEntry), hold: hold, most: int(max(10_000, memory/64/deadSiteBytes))}
}

func (ds *deadSites) put(site string, d *deadSite) {
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

func (ds *deadSites) get(site string) *deadSite {
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
