package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"seine/fetch"
)

// web is what the fetchers crawl. All of it follows from the seed, but for how often
// each URL was asked for.
type web struct {
	w     *world
	sites []*site
	of    map[string]*site // by host
}

// site is one site of the web.
type site struct {
	host       string
	delay      time.Duration // by the crawl's settings
	robots     string        // a kind below
	robotsFail int           // failures before robots.txt is answered
	robotsFrom *site         // whose robots.txt it redirects to
	crawlDelay time.Duration
	kind       string
	capped     int64
	latency    time.Duration
	pages      []*page
	at         map[string]*page

	// What was seen of it.
	last      time.Duration // start of the last request, -1 = there was none
	lastDoubt bool          // that request was made under a lease that a failover took
	knows     bool          // its Crawl-delay was answered
	since     time.Duration // when it asked for
	until     time.Duration // no request before this
	asked     map[string]int
	failed    int // in a row
	mostFail  int
}

// Kinds of sites.
const (
	siteUsual  = "usual"
	siteTrap   = "trap"    // links without end
	siteGone   = "gone"    // takes no connection
	siteNoName = "no name" // is not in the DNS
)

// Kinds of robots.txt.
const (
	robotsNone     = "none"
	robotsRules    = "rules"
	robotsRedirect = "redirect"
	robotsDown     = "down"
)

// page is one URL of a site and what it answers.
type page struct {
	site   *site
	url    string
	kind   string
	fails  int // failures before it answers
	links  []string
	target string
	slow   time.Duration // between two parts of the body
}

// Kinds of pages.
const (
	pageOK       = "page"
	pageMissing  = "missing"
	pageRedirect = "redirect"
	pageStatus   = "status"  // 500, always
	pageReset    = "reset"   // the connection is lost, some times
	pageTimeout  = "timeout" // no answer in time, some times
	page500      = "500"     // some times
	page429      = "429"     // with Retry-After, some times
	page503      = "503"     // with Retry-After, some times
	pageShort    = "short"   // the body ends early, some times
	pageDenied   = "denied"  // robots.txt disallows it
	pageLoop     = "loop"    // of two that redirect to each other
	pageSelf     = "self"    // redirects to itself
	pageEndless  = "endless" // redirects to the next
	maxRedirects = 10        // of the crawl
	maxTries     = 4         // of the crawl
	fetchTimeout = 20 * time.Second
	retryAfter   = 40 * time.Second
)

// newWeb draws a web.
func newWeb(w *world) *web {
	p := w.plan
	b := &web{w: w, of: make(map[string]*site)}
	for i := range p.Sites {
		r := w.q.random("site " + strconv.Itoa(i))
		s := &site{host: fmt.Sprintf("s%d.example", i), at: make(map[string]*page), asked: make(map[string]int), last: -1, kind: siteUsual, robots: robotsNone}
		s.latency = time.Duration(5+r.IntN(300)) * time.Millisecond
		if r.IntN(10) == 0 {
			s.latency = time.Duration(1+r.IntN(4)) * time.Second
		}
		switch r.IntN(20) {
		case 0:
			s.kind = siteTrap
			s.capped = int64(5 + r.IntN(20))
		case 1:
			if i > 0 {
				s.kind = siteGone
			}
		case 2:
			if i > 0 {
				s.kind = siteNoName
			}
		}
		switch r.IntN(12) {
		case 0, 1, 2, 3, 4:
			s.robots = robotsRules
			if r.IntN(4) == 0 {
				s.crawlDelay = seconds(2 + r.IntN(6))
			}
		case 5:
			if i > 0 {
				s.robots = robotsRedirect
			}
		case 6:
			if i > 0 && r.IntN(4) == 0 {
				s.robots = robotsDown
			}
		}
		s.robotsFail = max(0, r.IntN(12)-9)
		s.delay = time.Second
		b.sites = append(b.sites, s)
		b.of[s.host] = s
	}
	for i, s := range b.sites {
		r := w.q.random("pages " + strconv.Itoa(i))
		if s.robots == robotsRedirect {
			from := b.sites[r.IntN(i)]
			if from.kind != siteUsual || from.robots == robotsRedirect || from.robots == robotsDown {
				s.robots = robotsNone
			} else {
				s.robotsFrom, s.crawlDelay = from, from.crawlDelay
			}
		}
		b.drawPages(s, r)
	}
	return b
}

// drawPages draws the pages of a site. Page n links to 2n+1 and 2n+2, so all are found.
func (b *web) drawPages(s *site, r *rand.Rand) {
	if s.kind == siteTrap {
		b.page(s.host, "/t/0")
		return
	}
	n := 1 + r.IntN(b.w.plan.Pages)
	add := func(path string) *page {
		p := &page{site: s, url: "http://" + s.host + path, kind: pageOK}
		s.at[path] = p
		s.pages = append(s.pages, p)
		return p
	}
	for i := range n {
		add("/p" + strconv.Itoa(i))
	}
	for i := range n {
		p := s.pages[i]
		for _, next := range []int{2*i + 1, 2*i + 2} {
			if next < n {
				p.links = append(p.links, s.pages[next].url)
			}
		}
		for range r.IntN(4) {
			other := b.sites[r.IntN(len(b.sites))]
			path := "/p0"
			if other.kind == siteTrap {
				path = "/t/" + strconv.Itoa(r.IntN(50))
			}
			p.links = append(p.links, "http://"+other.host+path)
		}
		if r.IntN(8) == 0 {
			p.slow = time.Duration(r.IntN(2000)) * time.Millisecond
		}
	}
	special := func(kind string, target *page, fails int) *page {
		p := add(fmt.Sprintf("/%s%d", strings.ReplaceAll(kind, " ", ""), len(s.pages)))
		if p.kind, p.fails = kind, fails; target != nil {
			p.target = target.url
		}
		return p
	}
	link := func(to string) {
		from := s.pages[r.IntN(n)]
		from.links = append(from.links, to)
	}
	for _, kind := range []string{pageMissing, pageRedirect, pageStatus, pageReset, pageTimeout, page500, page429, page503, pageShort, pageDenied, pageLoop, pageSelf, pageEndless} {
		if r.IntN(6) > 0 {
			continue
		}
		switch kind {
		case pageRedirect:
			other := b.sites[r.IntN(len(b.sites))]
			p := special(kind, nil, 0)
			p.target = "http://" + other.host + "/p0"
			if other.kind == siteTrap {
				p.target = "http://" + other.host + "/t/3"
			}
			link(p.url)
		case pageLoop:
			x, y := special(kind, nil, 0), special(kind, nil, 0)
			x.target, y.target = y.url, x.url
			link(x.url)
		case pageSelf:
			p := special(kind, nil, 0)
			p.target = p.url
			link(p.url)
		case pageEndless:
			for i := range maxRedirects + 2 {
				add("/r/" + strconv.Itoa(i)).kind = pageEndless
			}
			for i := range maxRedirects + 1 {
				s.at["/r/"+strconv.Itoa(i)].target = s.at["/r/"+strconv.Itoa(i+1)].url
			}
			link(s.at["/r/0"].url)
		default:
			p := special(kind, nil, 1+r.IntN(2))
			if kind == pageDenied && s.rules() == nil {
				p.kind = pageOK
			}
			link(p.url)
			if p.kind != pageDenied { // what only this one leads to
				extra := add(fmt.Sprintf("/after%d", len(s.pages)))
				p.links = append(p.links, extra.url)
			}
		}
	}
}

// rules is the site whose robots.txt counts for this one, nil where there are none.
func (s *site) rules() *site {
	if s.robotsFrom != nil {
		return s.robotsFrom.rules()
	}
	if s.robots == robotsRules {
		return s
	}
	return nil
}

// page is a page of the web, nil where there is none.
func (b *web) page(host, path string) *page {
	s := b.of[host]
	if s == nil {
		return nil
	}
	if p := s.at[path]; p != nil {
		return p
	}
	n, err := strconv.Atoi(strings.TrimPrefix(path, "/t/"))
	if s.kind != siteTrap || err != nil {
		return nil
	}
	p := &page{site: s, url: "http://" + host + path, kind: pageOK}
	for _, next := range []int{2*n + 1, 2*n + 2, 3*n + 7} {
		p.links = append(p.links, fmt.Sprintf("http://%s/t/%d", host, next%1_000_000_007))
	}
	s.at[path] = p
	return p
}

// find is the page of a URL.
func (b *web) find(text string) *page {
	u, err := url.Parse(text)
	if err != nil {
		return nil
	}
	return b.page(u.Host, u.Path)
}

// seeds are the URLs that a crawl begins with.
func (b *web) seeds() (list []string) {
	for i, s := range b.sites {
		if i%3 == 0 || i == 0 || len(b.sites) > 500 {
			if s.kind == siteTrap {
				list = append(list, "http://"+s.host+"/t/0")
			} else {
				list = append(list, "http://"+s.host+"/p0")
			}
		}
	}
	return list
}

// answer is what comes back.
type answer struct {
	class    string // of an error instead of an answer
	status   int
	header   headerMap
	location string
	body     []string // parts
	pause    time.Duration
	short    bool // the body ends early
}

// answerTo is what a site answers to the nth request for a URL, and so is what follows
// for what is known of it.
func (b *web) answerTo(s *site, path string, n int) (a answer) {
	defer func() {
		if a.class != "" || a.status == 429 || a.status >= 500 {
			s.failed++
			s.mostFail = max(s.mostFail, s.failed)
		} else {
			s.failed = 0
		}
	}()
	if path == "/robots.txt" {
		return s.robotsAnswer(n)
	}
	p := b.page(s.host, path)
	if p == nil {
		b.w.fail("there is no %s on %s", path, s.host)
		return answer{status: 404}
	}
	fails := n <= p.fails
	switch p.kind {
	case pageMissing:
		return answer{status: 404, body: []string{"none"}}
	case pageRedirect, pageLoop, pageSelf, pageEndless:
		if p.target != "" {
			return answer{status: 302, location: p.target}
		}
	case pageStatus:
		return answer{status: 500}
	case pageDenied:
		b.w.fail("%s was asked for, which robots.txt disallows", p.url)
	case pageReset:
		if fails {
			return answer{class: fetch.ClassReset}
		}
	case pageTimeout:
		if fails {
			return answer{class: fetch.ClassTimeout}
		}
	case page500:
		if fails {
			return answer{status: 500}
		}
	case page429, page503:
		if fails {
			status, _ := strconv.Atoi(p.kind)
			return answer{status: status, header: headerMap{{"Retry-After", strconv.Itoa(int(retryAfter.Seconds()))}}}
		}
	case pageShort:
		if fails {
			return answer{status: 200, body: []string{"<p>half"}, short: true}
		}
	}
	var body strings.Builder
	fmt.Fprintf(&body, "<title>%s</title>", p.url)
	for _, l := range p.links {
		fmt.Fprintf(&body, "<p><a href=%q>%s</a>", l, l)
	}
	text := body.String()
	half := len(text) / 2
	return answer{status: 200, body: []string{text[:half], text[half:]}, pause: p.slow}
}

func (s *site) robotsAnswer(n int) answer {
	if n <= s.robotsFail || s.robots == robotsDown {
		if n%2 == 0 {
			return answer{class: fetch.ClassReset}
		}
		return answer{status: 503}
	}
	switch {
	case s.robotsFrom != nil:
		return answer{status: 301, location: "http://" + s.robotsFrom.host + "/robots.txt"}
	case s.robots == robotsRules:
		text := "user-agent: *\ndisallow: /denied\n"
		if s.crawlDelay > 0 {
			text += fmt.Sprintf("crawl-delay: %d\n", int(s.crawlDelay.Seconds()))
		}
		return answer{status: 200, body: []string{text}}
	}
	return answer{status: 404}
}

// headerMap is a header in order.
type headerMap [][2]string

// Get implements fetch.Header.
func (h headerMap) Get(name string) string {
	if v := h.Values(name); len(v) > 0 {
		return v[0]
	}
	return ""
}

// Values implements fetch.Header.
func (h headerMap) Values(name string) (list []string) {
	for _, f := range h {
		if strings.EqualFold(f[0], name) {
			list = append(list, f[1])
		}
	}
	return list
}

// Field implements fetch.Header.
func (h headerMap) Field(i int) (name, value []byte) {
	if i >= len(h) {
		return nil, nil
	}
	return []byte(h[i][0]), []byte(h[i][1])
}

// Each implements fetch.Header.
func (h headerMap) Each(f func(name, value string)) {
	for _, x := range h {
		f(x[0], x[1])
	}
}

// Do implements fetch.Doer: one request to the web.
func (f *fetcher) Do(ctx context.Context, req *fetch.Request, resp *fetch.Response, h fetch.Handler) error {
	f.requests.Add(1)
	defer f.requests.Add(-1)
	x := &exchange{url: req.URL, parts: make(chan part, 8)}
	c := &call{from: f, name: "get " + req.URL, end: make(chan struct{})}
	c.start = func(c *call) { f.w.web.take(c, x) }
	f.w.q.ask(c)
	*resp = fetch.Response{}
	for {
		select {
		case p := <-x.parts:
			if p.begins {
				resp.Start = time.Now()
				if req.Sent != nil {
					req.Sent()
				}
				continue
			}
			if p.answer != nil {
				a := p.answer
				resp.Status, resp.Header, resp.Location, resp.FirstByte = a.status, a.header, a.location, time.Since(resp.Start)
				resp.ContentType, resp.Type = "text/html; charset=utf-8", "text/html; charset=utf-8"
				x.wanted = h.Begin(resp)
				continue
			}
			if p.body != "" {
				if !x.wanted {
					continue
				}
				resp.Bytes += int64(len(p.body))
				resp.WireBytes += int64(len(p.body))
				if _, err := h.Write([]byte(p.body)); err != nil {
					x.abandon()
					return err
				}
				continue
			}
			resp.Took = time.Since(resp.Start)
			if p.class != "" {
				resp.Truncated = resp.Status > 0
				return &fetch.Error{Class: p.class, Retry: fetch.Retryable(p.class), Err: errors.New("simulated")}
			}
			return nil
		case <-ctx.Done():
			x.abandon()
			return &fetch.Error{Class: fetch.ClassCanceled, Retry: true, Err: context.Cause(ctx)}
		case <-f.dead:
			x.abandon()
			return &fetch.Error{Class: fetch.ClassCanceled, Retry: true, Err: errKilled}
		}
	}
}

// exchange is one request under way.
type exchange struct {
	url    string
	parts  chan part
	wanted bool // the body, by the fetcher

	abandoned atomic.Bool
}

// part is what the fetcher gets of it.
type part struct {
	begins bool
	answer *answer
	body   string
	class  string // at the end, of an error
}

func (x *exchange) abandon() { x.abandoned.Store(true) }

// take plans a request to the web.
func (b *web) take(c *call, x *exchange) {
	u, err := url.Parse(x.url)
	s := b.of[u.Host]
	if err != nil || s == nil {
		b.w.fail("%s: there is no such site", x.url)
		return
	}
	f, r := c.from, b.w.q.random(c.id)
	over := func(class string) string {
		if !x.abandoned.Load() {
			x.parts <- part{class: class}
		}
		return class
	}
	if n := f.requests.Load(); n > int64(f.concurrency) {
		b.w.fail("%s has %d requests under way, %d are allowed", f.id, n, f.concurrency)
	}
	switch s.kind {
	case siteGone:
		b.w.q.after(time.Duration(r.IntN(8000))*time.Millisecond, c.id+" refused", func() string { s.failed++; s.mostFail = max(s.mostFail, s.failed); return over(fetch.ClassConnect) })
		return
	case siteNoName:
		b.w.q.after(time.Duration(r.IntN(3000))*time.Millisecond, c.id+" refused", func() string { return over(fetch.ClassNoName) })
		return
	}
	connect := time.Duration(0)
	if r.IntN(3) == 0 {
		connect = time.Duration(r.IntN(1500)) * time.Millisecond
	}
	path, asked := u.Path, b.w.q.now()
	b.w.q.after(connect, c.id+" begins", func() string {
		if x.abandoned.Load() || f.killed {
			return "never sent"
		}
		doubt := b.checkRequest(f, s, x.url, path, asked)
		s.asked[path]++
		a := b.answerTo(s, path, s.asked[path])
		x.parts <- part{begins: true}
		late := s.latency + time.Duration(r.Float64()*float64(s.latency))
		if a.class == fetch.ClassTimeout {
			late = fetchTimeout
		}
		if a.class != "" {
			b.w.q.after(late, c.id+" ends", func() string { return over(a.class) })
			return "fails"
		}
		b.w.q.after(late, c.id+" answers", func() string {
			if !x.abandoned.Load() {
				x.parts <- part{answer: &a}
				b.noteAnswer(f, s, path, &a, doubt)
			}
			return strconv.Itoa(a.status)
		})
		for i, text := range a.body {
			late += a.pause
			b.w.q.after(late, fmt.Sprintf("%s part %d", c.id, i), func() string {
				if !x.abandoned.Load() {
					x.parts <- part{body: text}
				}
				return ""
			})
		}
		b.w.q.after(late, c.id+" ends", func() string {
			if a.short {
				return over(fetch.ClassShort)
			}
			return over("")
		})
		return "asks"
	})
}

// noteAnswer keeps what a site asked a fetcher for.
func (b *web) noteAnswer(f *fetcher, s *site, path string, a *answer, doubt bool) {
	if f.killed {
		return
	}
	if !doubt && !b.w.isDropped(f, s.host) && a.header.Get("Retry-After") != "" {
		s.since, s.until = b.w.q.now(), b.w.q.now()+retryAfter
	}
	if path == "/robots.txt" && a.status == 200 {
		s.knows = true
	}
}

// checkRequest checks a request that begins.
func (b *web) checkRequest(f *fetcher, s *site, url, path string, asked time.Duration) (doubt bool) {
	now := b.w.q.now()
	doubt = b.w.checkLease(f, s, url, path, asked)
	least := s.delay
	if path != "/robots.txt" && s.robots == robotsRules && s.knows {
		least = max(least, s.crawlDelay)
	}
	slack := time.Duration(0)
	if b.w.plan.has(faultClock) { // what a clock jumped by is known to within a hundredth of the time between two ticks
		slack = 50 * time.Millisecond
	}
	if gap := now - s.last; s.last >= 0 && gap < least-slack {
		if doubt || s.lastDoubt {
			b.w.doubtful++
		} else {
			b.w.fail("%s asks %s for %s %v after the last request, its delay is %v", f.id, s.host, path, gap, least)
		}
	}
	if asked > s.since && now < s.until-slack && !doubt {
		b.w.fail("%s asks %s for %s, which asked for no request for another %v", f.id, s.host, path, s.until-now)
	}
	s.last, s.lastDoubt = now, doubt
	return doubt
}

// reachable are the URLs that a crawl finds, each with whether it may end dead; dead
// ones that were lost lead nowhere. Traps are left out.
func (b *web) reachable(leads func(*page) bool) map[string]*page {
	found := make(map[string]*page)
	queue := b.seeds()
	for len(queue) > 0 {
		u := queue[0]
		queue = queue[1:]
		p := b.find(u)
		if p == nil || found[u] != nil || p.site.kind == siteTrap {
			continue
		}
		found[u] = p
		if !leads(p) {
			continue
		}
		switch {
		case p.kind == pageOK, p.kind == pageReset, p.kind == pageTimeout, p.kind == page500, p.kind == page429, p.kind == page503, p.kind == pageShort:
			queue = append(queue, p.links...)
		case p.target != "":
			queue = append(queue, p.target)
		}
	}
	return found
}

// isDead says whether a page ends dead, and whether that depends on which was found first.
func (p *page) isDead() (dead, either bool) {
	switch {
	case p.site.kind == siteGone, p.site.kind == siteNoName, p.site.robots == robotsDown:
		return true, false
	case p.kind == pageStatus, p.kind == pageDenied, p.kind == pageSelf:
		return true, false
	case p.kind == pageLoop:
		return false, true
	case p.kind == pageEndless:
		n, _ := strconv.Atoi(p.url[strings.LastIndexByte(p.url, '/')+1:])
		return n >= maxRedirects, false
	}
	return false, false
}

// canBeGivenUp reports whether a site failed so often in a row that a fetcher may give
// it up.
func (s *site) canBeGivenUp() bool { return s.mostFail >= 10 }
