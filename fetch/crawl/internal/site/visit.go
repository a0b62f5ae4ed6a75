package site

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"seine/fetch"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// Config is what all visits of a fetcher share. Its fields mean what those of crawl.Config
// mean.
type Config struct {
	Lease   time.Duration
	Backoff time.Duration
	GiveUp  time.Duration
	GivesUp bool // sites that cannot be reached are given up
}

// Visit is a site leased to this fetcher: the URLs it may fetch, the site's clock while it
// lasts, and the outcome of each URL.
//
// It waits in the Agenda between its requests. One worker at a time, its owner, makes the
// next one start. Outcomes come in from wherever the last verdict on a page's links
// arrives. The site is released when its last request ended. The visit lives on, and its
// lease with it, until its last URL is settled.
type Visit struct {
	frontier.Lease
	Shard      int
	LastChance bool            // a URL of it was lost twice
	Ctx        context.Context // ends when the lease is lost or the program is
	Cancel     context.CancelFunc

	override string
	urls     []leasedURL
	usual    int           // URLs; of further ones none is asked for
	until    time.Duration // after this time, by Config.Elapsed
	changed  atomic.Bool   // it waits to be settled

	// Of the owner:
	policy *work.Policy // that clock and headers were made of
	Naming Naming       // of the host that is asked next
	Rules  RulesHop     // how far the way to its rules of robots.txt is

	mu          sync.Mutex
	next        int // of urls: that starts next
	underway    int
	parked      bool // no owner: as many requests are under way as may be, or all have started
	over        bool // no further request starts
	clock       Clock
	headers     [][2]string   // of this site only; replaced, never changed
	signs       bool          // the site asks for signed requests
	newSigns    bool          // it was not stored yet
	unsigned    bool          // its rule has another user agent, which a signature would belie
	stored      string        // cookies as the shard had them
	cookies     *work.Cookies // nil where the crawl keeps none
	credentials string        // of the site's origins, as frontier.CredentialsFor reads them
	bind        string        // that its requests leave from, by its rule
	left        bool          // to fetchers that can
	legacy      bool          // its server needs old key exchanges
	deadline    time.Duration // of the lease, by Config.Elapsed
	dead        *Dead         // why no URL of this visit is asked for, once that is known
	backedOff   bool          // no further request in this visit: its site failed too often
	walls       frontier.Walls
	newWalls    *frontier.Walls // for the next settlement
	wallEnd     time.Time       // no request before: the fleet backs off from the walls of the site
	open        int             // URLs not settled yet
	outcomes    []frontier.Outcome
	release     *frontier.Release
	released    bool
	asked       int           // requests for pages
	queued      time.Duration // that they waited for their share of an address, in all
}

// Naming is how a host's name is resolved before a worker is needed.
type Naming struct {
	Host     string // last asked for
	Reserved bool   // R may be used
	R        fetch.Reservation
	Err      error
}

// NewVisit returns the visit of a site that was just leased until deadline. After until no
// more than usual of its URLs are asked for. Both are times of Config.Elapsed.
func NewVisit(ctx context.Context, shard int, leased *frontier.Visit, deadline, until time.Duration, usual int) *Visit {
	v := &Visit{
		Lease: leased.Lease, Shard: shard, LastChance: leased.LastChance(), override: leased.Override, urls: leasedURLs(leased.Items),
		usual: usual, until: until, deadline: deadline, open: len(leased.Items), credentials: leased.Credentials,
	}
	v.stored, v.signs = strings.CutPrefix(leased.Cookies, frontier.WantsSign)
	v.Ctx, v.Cancel = context.WithCancel(ctx)
	v.clock, v.walls = Clock{Failures: leased.Failures}, frontier.Walls{Count: leased.Walls}
	if !leased.First { // the shard kept this delay since the last request, and knew no longer one
		v.clock.begun = time.Now().Add(-leased.Delay)
	}
	if leased.Why == WhyAdaptive {
		v.clock.Adaptive = leased.Delay
	}
	return v
}

// KeepCookies has requests carry the cookies of the site, as its shard keeps them; now is
// the shard's time, Unix seconds. What changed of them goes with the next outcome or with
// the site, whichever is first, so that a page is settled with its cookies or after them.
func (v *Visit) KeepCookies(now func() int64) { v.cookies = work.OpenCookies(v.stored, now) }

// Cookies are those of the site, nil where the crawl keeps none.
func (v *Visit) Cookies() *work.Cookies { return v.cookies }

// Len is the number of its URLs.
func (v *Visit) Len() int { return len(v.urls) }

// URL is the i-th of them as stored.
func (v *Visit) URL(i int) string { return v.urls[i].url }

// Follow takes the crawl's settings over, which may change during a visit.
func (v *Visit) Follow(pol *work.Policy) {
	if pol == v.policy {
		return
	}
	v.policy = pol
	rule := pol.SiteRule(v.Site, v.override)
	headers := Headers(pol.Settings.UserAgent, rule)
	v.mu.Lock()
	v.headers = headers
	v.legacy, v.bind, v.unsigned = false, "", false
	if rule != nil {
		v.legacy, v.bind, v.unsigned = rule.TLSLegacy, rule.Bound(), rule.HasAgent()
	}
	v.clock.SetRule(pol.Settings, rule)
	v.mu.Unlock()
}

// NextItem fills in the URL that is asked for next. It reports false when none is to be
// asked for at now, by Config.Elapsed: none is left, the lease is short, the crawl backed
// off from the site, or a visit that is long for want of a delay is slow all the same. A
// quarter of the lease must be left, so that the request is on the wire before anybody
// else may ask the site, however long name and connection take.
func (v *Visit) NextItem(item *frontier.Item, now time.Duration, cfg *Config) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.next >= len(v.urls) || v.next >= v.usual && now > v.until || v.backedOff || !v.wallEnd.IsZero() || v.deadline-now <= cfg.Lease/4 {
		return false
	}
	v.urls[v.next].item(item)
	return true
}

// NextRequest is when the site's clock allows the next request, zero = at any time.
func (v *Visit) NextRequest() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.clock.Next
}

// SkipURL passes the next URL without a request.
func (v *Visit) SkipURL() {
	v.mu.Lock()
	v.next++
	v.mu.Unlock()
}

// StartURL counts a request for the next URL as under way. It reports whether the site is
// asked for one page at a time.
func (v *Visit) StartURL() (exclusive bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.next++
	v.underway++
	v.asked++
	return v.clock.PerSite <= 1
}

// NoteQueued notes that a request waits for its share of an address.
func (v *Visit) NoteQueued(d time.Duration) {
	v.mu.Lock()
	v.queued += d
	v.mu.Unlock()
}

// Request asks for a URL of this site, with what its rule adds, and the credentials of its
// origin, which a rule's Authorization beats.
func (v *Visit) Request(url string) fetch.Request {
	v.mu.Lock()
	defer v.mu.Unlock()
	return fetch.Request{URL: frontier.WithCredentials(url, v.credentials), Header: v.headers, Bind: v.bind, TLSLegacy: v.legacy, Sign: v.signs, Unsigned: v.unsigned}
}

// RequestSent moves the clock for a request that has just gone out.
func (v *Visit) RequestSent(now time.Time) {
	v.mu.Lock()
	v.clock.Started(now, v.clock.Latency)
	v.mu.Unlock()
}

// Next is when the next request of a visit may start.
type Next struct {
	Starts bool // it waits for this, and may start at At
	At     time.Time
	Last   bool // no request follows, and none is under way: the site is to be released
}

// HandOver is called when a request of a site that may be asked side by side has gone out:
// the next one may start beside it.
func (v *Visit) HandOver() Next {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.parked = v.underway >= v.clock.PerSite
	return Next{Starts: !v.parked, At: v.clock.Next}
}

// EndRequest is called when a request of the owner ended.
func (v *Visit) EndRequest() {
	v.mu.Lock()
	v.underway--
	v.mu.Unlock()
}

// EndHandedOver is called when a request ended whose worker is no longer the owner. The
// next one starts if it waited for that.
func (v *Visit) EndHandedOver() Next {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.underway--
	n := Next{Starts: v.parked, At: v.clock.Next, Last: v.over && v.underway == 0}
	v.parked = false
	return n
}

// Finish is called by the owner when no further request starts. URLs that were not asked
// for go back, and there is an outcome of each. It reports whether no request is under way
// either: the site is to be released.
func (v *Visit) Finish() (requeued, last bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	rest := v.urls[v.next:]
	for i := range rest {
		v.outcomes = append(v.outcomes, frontier.Outcome{Index: int(rest[i].index), Kind: frontier.Requeue})
	}
	v.next, v.over = len(v.urls), true
	return len(rest) > 0, v.underway == 0
}

// Failed is what follows for a site from a failure.
type Failed struct {
	BackedOff bool      // just now
	Fresh     bool      // and it was well before
	RetryAt   time.Time // when the next request may start
	GivesUp   time.Time // when it is given up, zero = never
	Dead      *Dead     // it is given up
}

// TakeReply takes in what a request brought: the clock moves whatever came of it, and the
// delay falls or rises.
func (v *Visit) TakeReply(r *work.Reply, now time.Time, cfg *Config) (f Failed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock.Latency = r.Latency
	if !r.Sent {
		v.clock.Started(r.Began, r.Latency)
	}
	if r.Answered {
		v.clock.Answered()
	}
	if r.Page {
		v.endWalls()
	}
	switch {
	case r.Wall != "":
		f = v.noteWall(r, now, cfg)
	case r.Failure != nil:
		f = v.noteFailure(r.Began, now, r.Failure, cfg)
	}
	return f
}

// SignRequests has requests to the site signed from now on, as it asked for. It reports
// whether that is news.
func (v *Visit) SignRequests() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.signs {
		return false
	}
	v.signs, v.newSigns = true, true
	return true
}

// noteWall counts a wall that answered in place of the site. After some in a row the whole
// fleet backs off from the site; one URL is tried each time it comes back. Called with mu.
func (v *Visit) noteWall(r *work.Reply, now time.Time, cfg *Config) (f Failed) {
	v.clock.HoldUntil(now.Add(min(r.Failure.After, work.MaxRetryAfter)))
	if !v.wallEnd.IsZero() || v.dead != nil { // one of requests that were under way together
		return f
	}
	v.walls.Count++
	v.walls.Vendor = r.Wall
	soFar, pause := walledFor(v.walls.Count), frontier.WallPause(v.walls.Count)
	switch {
	case pause == 0:
	case cfg.GivesUp && soFar >= cfg.GiveUp:
		v.dead = &Dead{Cause: frontier.CauseWall, Text: r.Failure.Text}
		f.Dead, pause = v.dead, 0
	default:
		if cfg.GivesUp {
			pause = min(pause, cfg.GiveUp)
		}
		v.wallEnd = now.Add(pause)
		f = v.backOff(v.wallEnd, v.walls.Count == frontier.WallsInRow, now, soFar, cfg)
	}
	v.walls.Pause = pause
	walls := v.walls
	v.newWalls = &walls
	return f
}

// endWalls ends the row of walls, and the back-off that it began: a page came. Called with
// mu.
func (v *Visit) endWalls() {
	if v.walls.Count > 0 {
		v.walls, v.newWalls, v.wallEnd = frontier.Walls{}, &frontier.Walls{}, time.Time{}
	}
}

// walledFor is how long the fleet backed off in all before the last of so many walls.
func walledFor(count int) (d time.Duration) {
	for i := range min(count-frontier.WallsInRow, 64) {
		d += frontier.WallPause(frontier.WallsInRow + i)
	}
	return d
}

// RefuseRules counts that robots.txt could not be had. The crawl backs off from the site at
// once, for nothing may be fetched without it.
func (v *Visit) RefuseRules(fail *work.Failure, now time.Time, cfg *Config) Failed {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock.Failures = max(v.clock.Failures, BackOffAfter-1)
	return v.noteFailure(now, now, fail, cfg)
}

// noteFailure counts a failure. The crawl backs off from a site that fails too often in a
// row: more of its URLs would only lose their tries. One is tried each time it comes back,
// another each time. Called with mu.
func (v *Visit) noteFailure(began, now time.Time, fail *work.Failure, cfg *Config) (f Failed) {
	v.clock.Refused(now, began, *fail)
	if v.clock.Failures < BackOffAfter || v.backedOff || !v.wallEnd.IsZero() || v.dead != nil {
		return f
	}
	soFar := v.clock.BackedOffFor(cfg.Backoff)
	if cfg.GivesUp && soFar >= cfg.GiveUp {
		cause := work.CauseUnreachable
		if fail.Cause == frontier.CauseWall { // of its robots.txt
			cause = frontier.CauseWall
		}
		v.dead = &Dead{Cause: cause, Text: fail.Text}
		return Failed{Dead: v.dead}
	}
	v.backedOff = true
	v.clock.BackOff(now, cfg.Backoff, cfg.GiveUp, cfg.GivesUp)
	return v.backOff(v.clock.Next, v.clock.Failures == BackOffAfter, now, soFar, cfg)
}

// backOff is what follows from a back-off until retryAt; soFar is how long the site was
// kept waiting before.
func (v *Visit) backOff(retryAt time.Time, fresh bool, now time.Time, soFar time.Duration, cfg *Config) Failed {
	f := Failed{BackedOff: true, Fresh: fresh, RetryAt: retryAt}
	if cfg.GivesUp {
		if f.GivesUp = now.Add(cfg.GiveUp - soFar); f.GivesUp.Before(f.RetryAt) {
			f.GivesUp = f.RetryAt // it is asked once more
		}
	}
	return f
}

// Obey takes the site's Crawl-delay over and reports whether it moved the clock.
func (v *Visit) Obey(delay time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.clock.Next
	v.clock.Obey(delay)
	return v.clock.Next.After(before)
}

// HoldFor moves the clock as far as the site asked for.
func (v *Visit) HoldFor(d time.Duration, now time.Time) {
	v.mu.Lock()
	v.clock.HoldUntil(now.Add(min(d, work.MaxRetryAfter)))
	v.mu.Unlock()
}

// Bind is what the rule of the site has its requests leave from, as fetch.Request has it.
func (v *Visit) Bind() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bind
}

// Leave leaves the site to other fetchers, which may lease it after a while.
func (v *Visit) Leave(d time.Duration, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.left = true
	v.clock.HoldUntil(now.Add(d))
}

// IsLeft reports whether the site was left to other fetchers.
func (v *Visit) IsLeft() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.left
}

// Dead is why nothing of this visit is asked for, nil as long as it is.
func (v *Visit) Dead() *Dead {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dead
}

// SetDead has nothing more asked for.
func (v *Visit) SetDead(d *Dead) {
	v.mu.Lock()
	v.dead = d
	v.mu.Unlock()
}

// Extend moves the end of the lease.
func (v *Visit) Extend(deadline time.Duration) {
	v.mu.Lock()
	v.deadline = deadline
	v.mu.Unlock()
}

// Release has the site released with the next settlement: its last request has ended.
func (v *Visit) Release(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	d, why := v.clock.Delay()
	if each := v.queued / time.Duration(max(v.asked, 1)); each > d && why != WhyAdaptive {
		d, why = d+each, WhyAddress
	}
	if v.left && why != WhyAdaptive {
		why = WhyBind
	}
	next := v.clock.Next
	if next.Before(v.wallEnd) {
		next = v.wallEnd
	}
	v.release = &frontier.Release{Remain: max(0, next.Sub(now)), Delay: d, Why: why, Failures: v.clock.Failures}
	if !v.wallEnd.IsZero() {
		walls := v.walls
		walls.Pause = max(0, v.wallEnd.Sub(now)) // as long as the site waits
		v.newWalls = &walls
	}
}

// AddOutcome records the outcome of one URL.
func (v *Visit) AddOutcome(o frontier.Outcome) {
	v.mu.Lock()
	v.outcomes = append(v.outcomes, o)
	v.mu.Unlock()
}

// MarkChanged reports whether the visit is to be added to those that wait to be settled.
func (v *Visit) MarkChanged() bool { return !v.changed.Swap(true) }

// Settlement is what there is to settle since the last call.
func (v *Visit) Settlement() frontier.Settlement {
	v.changed.Store(false) // what comes from now on is of the next settlement
	v.mu.Lock()
	defer v.mu.Unlock()
	s := frontier.Settlement{Lease: v.Lease, Outcomes: v.outcomes, Release: v.release}
	if len(s.Outcomes) > 0 || s.Release != nil {
		s.Cookies = v.changedCookies()
		s.Walls, v.newWalls = v.newWalls, nil
	}
	v.outcomes, v.release = nil, nil
	return s
}

// changedCookies is what the shard is to keep, nil where it has it. Called with mu.
func (v *Visit) changedCookies() *string {
	text := v.cookies.Changed(v.newSigns)
	if text == nil && v.newSigns { // the crawl keeps none
		text = &v.stored
	}
	if v.newSigns = false; text == nil || !v.signs {
		return text
	}
	marked := frontier.WantsSign + *text
	return &marked
}

// Settled takes in that a settlement was accepted, and reports whether the visit is over:
// its last URL is settled and its site released.
func (v *Visit) Settled(s *frontier.Settlement) (over bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open -= len(s.Outcomes)
	v.released = v.released || s.Release != nil
	return v.open <= 0 && v.released
}
