package work

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"seine/frontier/canon"
)

// maxSitemap is the size of the largest sitemap that is read whole, decoded
// (sitemaps.org), whatever the limit of pages is.
const maxSitemap = 50 << 20

// prepareRequest adds to the request of the permit what the URL at hand wants.
func (j *job) prepareRequest() {
	j.req = j.permit.Request
	if r := j.item.Request; r != "" {
		var header [][2]string
		j.req.Method, header, j.req.Body = r.Parts()
		j.req.Header = withHeaders(j.req.Header, header)
	}
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
	var header [][2]string
	if last.ETag != "" {
		header = append(header, [2]string{"If-None-Match", last.ETag})
	}
	if last.Modified > 0 {
		header = append(header, [2]string{"If-Modified-Since", time.Unix(last.Modified, 0).UTC().Format(http.TimeFormat)})
	}
	j.req.Header = withHeaders(j.req.Header, header)
}

// withHeaders are all of more, and those of header that it does not name.
func withHeaders(header, more [][2]string) [][2]string {
	all := make([][2]string, 0, len(header)+len(more))
	for _, h := range header {
		if !slices.ContainsFunc(more, func(m [2]string) bool { return strings.EqualFold(m[0], h[0]) }) {
			all = append(all, h)
		}
	}
	return append(all, more...)
}

// fingerprint is that of the request at hand.
func (j *job) fingerprint() canon.Fingerprint {
	_, url := j.Sites.Fingerprint(j.permit.URL)
	return j.item.Request.Fingerprint(url)
}

// isRecrawl reports whether the URL at hand was fetched before by a rule of recrawl.
func (j *job) isRecrawl() bool { return j.item.Last.Interval > 0 }
