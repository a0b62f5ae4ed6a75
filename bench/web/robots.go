package web

import (
	"fmt"
	"time"
)

// robotsForm is the form of a site's robots.txt.
type robotsForm uint8

const (
	robotsMissing robotsForm = iota // 404
	robotsEmpty                     // forbids nothing
	robotsPlain                     // forbids /private/ to all
	robotsOwn                       // forbids all to others, /private/ to us
	robotsWild                      // by a pattern
	robotsDelay                     // and asks for a delay
	robotsMoved                     // behind a redirect
	robotsLongest                   // with BOM, CRLF, and rules that the longest decides
	robotsForms
)

// robotsOf is the form of a site; that of site 0 forbids.
func robotsOf(w *Web, site int) robotsForm {
	switch {
	case w.cfg.Features&Robots == 0:
		return robotsMissing
	case site == 0:
		return robotsPlain
	}
	return robotsForm(w.roll(site, 0, forSite) % uint64(robotsForms))
}

// forbids reports whether the file keeps us from /private/.
func (f robotsForm) forbids() bool { return f >= robotsPlain }

// delayOf is the crawl delay that a site asks for.
func (w *Web) delayOf(site int) time.Duration {
	if robotsOf(w, site) == robotsDelay {
		return w.cfg.CrawlDelay
	}
	return 0
}

// robotsFile is the text of a robots.txt; missing ones are answered by status.
func (w *Web) robotsFile(f robotsForm) string {
	switch f {
	case robotsEmpty:
		return "User-agent: *\nDisallow:\n"
	case robotsOwn:
		return fmt.Sprintf("User-agent: *\nDisallow: /\n\nUser-agent: %s\nDisallow: /private/\n", w.cfg.Agent)
	case robotsWild:
		return "User-agent: *\nDisallow: /*vate/p*.html$\n"
	case robotsDelay:
		return fmt.Sprintf("User-agent: *\nCrawl-delay: %g\nDisallow: /private/\n", w.cfg.CrawlDelay.Seconds())
	case robotsLongest:
		return "\ufeffUser-agent: *\r\nDisallow: /private\r\nAllow: /\r\nUnknown: x\r\n\r\nSitemap: /sitemap.xml\r\n"
	}
	return "User-agent: *\nDisallow: /private/ # not for robots\n"
}
