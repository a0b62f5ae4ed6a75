package web

import (
	"errors"
	"fmt"
	"iter"
	"time"
)

// Plan is the crawl that is to be judged: where it starts, how far it goes, how
// it behaves. The zero value is a crawl of all sites, each from its root, that
// stays on them and obeys.
type Plan struct {
	Sites          []int         // whose roots are the seeds; default all
	AnyScope       bool          // follows links to other sites; Sites must hold site 0, which leads to all
	MaxDepth       int           // links from a seed; default unlimited. Not with AnyScope or Redirects, where depth is a matter of order
	IgnoreRobots   bool          // fetches what robots.txt forbids
	IgnoreNofollow bool          // follows links of nofollow pages, and nofollow links
	Attempts       int           // requests of a URL that always fails; default 4
	MaxBody        int64         // bytes of a body; default 10 MB
	Delay          time.Duration // between requests to one site; default none
	Slack          time.Duration // by how much a request may come early
}

// Validate names all that is wrong with p for w.
func (w *Web) Validate(p Plan) error {
	var errs []error
	first := p.Sites == nil
	for _, k := range p.Sites {
		if k < 0 || k >= len(w.sizes) {
			errs = append(errs, fmt.Errorf("web: plan: there is no site %d", k))
		}
		first = first || k == 0
	}
	if p.AnyScope && !first {
		errs = append(errs, errors.New("web: plan: AnyScope needs site 0 among the seeds"))
	}
	if p.MaxDepth > 0 && (p.AnyScope || w.cfg.Features&Redirects != 0) {
		errs = append(errs, errors.New("web: plan: MaxDepth has no key together with AnyScope, or on a web with redirects"))
	}
	return errors.Join(errs...)
}

func (p Plan) withDefaults(w *Web) Plan {
	if p.Sites == nil || p.AnyScope {
		p.Sites = nil
		for k := range w.sizes {
			p.Sites = append(p.Sites, k)
		}
	}
	if p.Attempts == 0 {
		p.Attempts = 4
	}
	if p.MaxBody == 0 {
		p.MaxBody = 10 << 20
	}
	return p
}

// Expected is a URL that a right crawl fetches.
type Expected struct {
	URL       string // canonical
	Site      int
	Depth     int    // of the shortest way from a seed
	Requests  int    // how often it is asked for, retries included
	Status    int    // in its record; 0 when a record may say anything
	Title     string // in its record, "" when it has none
	NoIndex   bool
	Truncated bool
}

// Expect lists what a right crawl fetches, in order of sites and pages, without
// robots.txt and what lies behind traps. It takes time linear in the pages and no
// memory.
func (w *Web) Expect(p Plan) iter.Seq[Expected] {
	p = p.withDefaults(w)
	return func(yield func(Expected) bool) {
		for _, site := range p.Sites {
			for n := range w.sizes[site] {
				if !w.expectPage(p, site, n, yield) {
					return
				}
			}
		}
	}
}

// expectPage yields page n, the redirects before it and the extras behind it.
func (w *Web) expectPage(p Plan, site, n int, yield func(Expected) bool) bool {
	depth := w.depth(n)
	if !w.reachable(site, n, view{p.IgnoreRobots, p.IgnoreNofollow}) || (p.MaxDepth > 0 && depth > p.MaxDepth) {
		return true
	}
	t := w.traits(site, n)
	e := Expected{URL: w.URL(site, n), Site: site, Depth: depth, Requests: 1, Status: 200}
	if !t.tiny {
		e.Title, e.NoIndex, e.Truncated = w.title(site, n), t.noindex, int64(t.huge) > p.MaxBody
	}
	if !yield(e) {
		return false
	}
	for step := 1; step <= t.hops; step++ {
		if !yield(Expected{URL: string(w.appendURL(nil, site, kindRedirect, n, step)), Site: site, Depth: depth, Requests: 1, Status: redirectStatus(n)}) {
			return false
		}
	}
	depth++
	if t.tiny || (t.nofollow && !p.IgnoreNofollow) || (p.MaxDepth > 0 && depth > p.MaxDepth) {
		return true
	}
	more := true
	w.extras(site, n, func(k kind) {
		e := Expected{URL: string(w.appendURL(nil, site, k, n, 0)), Site: site, Depth: depth, Requests: 1, Status: 200}
		switch k {
		case kindLoop:
			e.Status = redirectStatus(1)
			more = more && yield(e)
			e.URL = string(w.appendURL(nil, site, k, n, 1))
		case kindGone:
			e.Status = goneStatus(n)
		case kindSoft, kindSlow:
		case kindBusy:
			e.Requests = 1 + busyFor(n)
		case kindBroken:
			e.Requests, e.Status = p.Attempts, 500
		case kindDrip, kindReset:
			e.Requests, e.Status = p.Attempts, 0
		default:
			return // traps, and what is not followed
		}
		more = more && yield(e)
	})
	return more
}

// Canonical is the canonical form of a URL of the web in another spelling.
func (w *Web) Canonical(url string) string {
	host, path := splitURL(url)
	return w.cfg.Scheme + "://" + host + path
}

// Leads calls yield with the canonical URLs that a crawl that obeys takes from
// what stands behind a URL: the links of a page, the target of a redirect.
func (w *Web) Leads(url string, yield func(url string)) {
	host, path := splitURL(url)
	site := w.siteOf(host)
	if site < 0 {
		return
	}
	k, n, step := w.resolve(site, []byte(path))
	switch t := w.traits(site, n); {
	case k == kindPage && !t.tiny && !t.nofollow:
		w.Links(site, n, func(u []byte) { yield(string(u)) })
	case k == kindRedirect && step > 1:
		yield(string(w.appendURL(nil, site, kindRedirect, n, step-1)))
	case k == kindRedirect:
		yield(w.URL(site, n))
	case k == kindLoop:
		yield(string(w.appendURL(nil, site, kindLoop, n, 1-step&1)))
	}
}
