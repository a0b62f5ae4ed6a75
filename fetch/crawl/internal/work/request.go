package work

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxSitemap is the size of the largest sitemap that is read whole, decoded
// (sitemaps.org), whatever the limit of pages is.
const maxSitemap = 50 << 20

// prepareRequest adds to the request of the permit what the URL at hand wants.
func (j *job) prepareRequest() {
	j.req = j.permit.Request
	j.addCookies()
	j.addConditions()
	if j.item.Sitemap {
		j.req.MaxBody = maxSitemap
	}
	if j.cfg.Exchanges {
		j.req.Wire = &j.wire
	}
}

// addCookies adds the site's cookies: behind those that a rule gives the site, and none
// of the same name.
func (j *job) addCookies() {
	if j.permit.Cookies == nil {
		return
	}
	at := slices.IndexFunc(j.req.Header, func(h [2]string) bool { return strings.EqualFold(h[0], "Cookie") })
	if at >= 0 {
		j.given = j.req.Header[at][1]
	}
	if j.cookies = j.permit.Cookies.header(j.permit.URL, j.given); j.cookies == j.given {
		return
	}
	header := slices.Clone(j.req.Header)
	if at < 0 {
		at, header = len(header), append(header, [2]string{"Cookie"})
	}
	header[at][1] = j.cookies
	j.req.Header = header
}

// addConditions asks only for what changed since the last fetch of a URL that is fetched
// again (RFC 9110, section 13.1).
func (j *job) addConditions() {
	last := &j.item.Last
	if !j.isRecrawl() {
		return
	}
	header := slices.Clone(j.req.Header)
	if last.ETag != "" {
		header = append(header, [2]string{"If-None-Match", last.ETag})
	}
	if last.Modified > 0 {
		header = append(header, [2]string{"If-Modified-Since", time.Unix(last.Modified, 0).UTC().Format(http.TimeFormat)})
	}
	j.req.Header = header
}

// isRecrawl reports whether the URL at hand was fetched before by a rule of recrawl.
func (j *job) isRecrawl() bool { return j.item.Last.Interval > 0 }
