package work

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"seine/extract"
	"seine/extract/mediatype"
	"seine/extract/sink"
	"seine/fetch"
	"seine/fetch/wall"
	"seine/frontier"
	"seine/frontier/canon"
)

// leastMaxTag is how many bytes of a tag are read at least. A tag has room for a URL
// as long as the crawl takes, entities and other attributes.
const leastMaxTag = 64 << 10

// newScanner returns the scanner of pages under the rules of pol.
func (cfg *Config) newScanner(pol *Policy) *extract.Page {
	parsing := cfg.Canon
	parsing.MaxLength = pol.Settings.LongestURL()
	return extract.NewPage(extract.PageConfig{
		Config:         extract.Config{Robots: cfg.Agent(), Text: cfg.Fields.Has(sink.FieldText), SimHash: cfg.Fields.Has(sink.FieldSimHash), MaxText: cfg.MaxText, MaxTag: max(leastMaxTag, 2*parsing.MaxLength)},
		Canon:          parsing,
		LimitBy:        cfg.LimitBy,
		Follow:         pol.follow,
		IgnoreNofollow: pol.Settings.IgnoreNofollow,
		MaxLinks:       cfg.MaxLinks,
	})
}

// Begin implements fetch.Handler.
func (j *job) Begin(r *fetch.Response) bool {
	if !j.readPreferences(r) {
		return false
	}
	switch {
	case r.Status >= 400: // error pages are read for their size and digest, without links
		return true
	case r.Status >= 300 && r.Location != "" || r.Status == http.StatusNotModified:
		return false
	} // a 3xx that leads nowhere is the page that browsers show
	if !j.item.Sitemap && !j.cfg.Accepts(r) {
		return false
	}
	j.scan = true
	if j.cfg.Rules != nil {
		j.rules = j.cfg.Rules.For(j.permit.Site, string(j.permit.URL.Host()))
	}
	if j.scanner, _ = j.policy.scanners.Get().(*extract.Page); j.scanner == nil {
		j.scanner = j.cfg.newScanner(j.policy)
	}
	j.listing = j.item.Sitemap || j.policy.Settings.Sitemaps && isSitemap(j.permit.URL, r.Type)
	j.scanner.Reset(extract.Doc{
		Base:        j.permit.URL,
		ContentType: r.Type,
		Link:        r.Header.Values("Link"),
		Refresh:     r.Header.Values("Refresh"),
		Said:        j.said,
		Sitemap:     j.listing,
		SitemapOf:   j.src.host,
	}, j.onLink)
	return true
}

// isSitemap reports whether a document that nobody named as one is read as a
// sitemap: by its type, or by its name where the type says little.
func isSitemap(u *canon.URL, contentType string) bool {
	essence, _, _ := mediatype.Parse(contentType)
	return strings.Contains(essence, "xml") && !strings.Contains(essence, "xhtml") ||
		bytes.Contains(u.Path(), []byte("sitemap")) && !strings.Contains(essence, "html")
}

// Write implements fetch.Handler. The body is held back until its start is judged.
func (j *job) Write(p []byte) (int, error) {
	n := len(p)
	if !j.judged {
		if p = j.holdBack(p); p == nil {
			return n, nil
		}
	}
	if j.isWalled() { // nothing of it is read
		return n, nil
	}
	j.readBody(p)
	if j.isRefused() {
		return n, errRefused
	}
	return n, nil
}

// holdBack keeps p until so much of the body is there as is judged, and returns nil. Then
// it returns what is still to be read.
func (j *job) holdBack(p []byte) []byte {
	if len(j.first) == 0 && len(p) >= wall.Bytes {
		j.judge(p)
		return p
	}
	n := min(wall.Bytes-len(j.first), len(p))
	j.first = append(j.first, p[:n]...)
	if len(j.first) < wall.Bytes {
		return nil
	}
	j.endHoldBack()
	return p[n:]
}

// endHoldBack judges the answer by what is held back of its body, and reads that.
func (j *job) endHoldBack() {
	j.judge(j.first)
	if len(j.first) > 0 && !j.isWalled() {
		j.readBody(j.first)
	}
}

// readBody reads some of the body.
func (j *job) readBody(p []byte) {
	if j.refuses == 0 {
		j.keepBody(p)
	}
	if j.scan {
		j.scanner.Write(p) //nolint:errcheck // it never fails
		j.holdText(len(j.scanner.Facts().Text))
		j.checkPreferences()
	}
}

// keepBody adds a piece of the body to what is made of it as a whole.
func (j *job) keepBody(p []byte) {
	if j.digest == nil {
		if j.digest, _ = j.cfg.digests.Get().(*digest); j.digest == nil {
			j.digest = new(digest)
		}
		j.digest.begin(j.policy.Settings.DigestKind())
	}
	j.digest.write(p)
	if j.rules != nil || j.cfg.Handle != nil || j.cfg.Fields.Has(sink.FieldBody) {
		j.body = append(j.body, p...)
	}
}

// foundLink receives each link of the page once.
func (j *job) foundLink(ln *extract.Found) {
	if j.cfg.Fields.Has(sink.FieldLinksOut) {
		j.linksOut = append(j.linksOut, string(ln.URL.AppendRedacted(nil)))
	}
	if j.cfg.Handle != nil {
		j.linkText = ln.URL.AppendRedacted(j.linkText)
		j.links = append(j.links, foundLink{end: len(j.linkText), kind: ln.Kind, follow: ln.Follow})
	}
	j.met++
	if ln.Foreign {
		j.refused[RefusedForeign]++
		return
	}
	if !ln.Follow {
		j.refuseLink(RefusedNofollow)
		return
	}
	if ln.Kind == extract.Index {
		j.foundSitemap(ln)
		return
	}
	if !j.policy.InScope(j.src, ln.URL, ln.Site) {
		j.refuseLink(RefusedScope)
		return
	}
	if r := j.policy.Filter(ln.URL, j.res.LinkDepth); r != Accepted {
		j.refuseLink(r)
		return
	}
	within := j.refetchWithin(ln)
	if within == 0 && j.cfg.Known(ln.Fingerprint) {
		j.known++
		return
	}
	class := j.policy.Class(ln.URL)
	if within == 0 {
		j.addLink(ln, class)
		return
	}
	j.addCandidate(frontier.Candidate{
		URL: string(ln.URL.Fetch()), Site: ln.Site, Fingerprint: ln.Fingerprint,
		Priority: class, Depth: j.res.LinkDepth, Referrer: j.res.Referrer,
	}, within)
}

// refuseLink counts the link at hand, which is not followed, and adds it to those
// of the page.
func (j *job) refuseLink(r Refusal) {
	j.refused[r]++
	j.refusedHash = j.refusedHash*refusedPrime + j.met
}

// refusedPrime is that of FNV-1a for 64 bits.
const refusedPrime = 1099511628211

// foundSitemap takes a sitemap that an index names. Of the crawl's rules only
// those that deny bind it; indexes of indexes are as many as redirects may be.
func (j *job) foundSitemap(ln *extract.Found) {
	if int(j.item.Redirects) >= j.cfg.MaxRedirects {
		j.refused[RefusedDepth]++
		return
	}
	if r := j.policy.Denies(ln.URL); r != Accepted {
		j.refused[r]++
		return
	}
	c := SitemapCandidate(ln.URL, ln.Site, ln.Fingerprint, j.src.host)
	c.Depth, c.Redirects, c.Referrer = j.item.Depth, j.item.Redirects+1, j.res.Referrer
	j.addCandidate(c, j.refetchWithin(ln))
}

// SitemapCandidate is a sitemap that host named.
func SitemapCandidate(u *canon.URL, site string, fp canon.Fingerprint, host []byte) frontier.Candidate {
	c := frontier.Candidate{
		URL: string(u.Fetch()), Site: site, Fingerprint: fp,
		Sitemap: true, Refetch: frontier.SitemapRequest(string(host)),
	}
	if !bytes.Equal(u.Host(), host) {
		c.SitemapOf = string(host)
	}
	return c
}

// refetchWithin is when a URL that a sitemap or feed lists is refetched at the latest,
// 0 for when it is anyway: now if it changed since the list was read last, else as
// often as the list says that it changes, but not more often than the crawl's rule.
func (j *job) refetchWithin(ln *extract.Found) time.Duration {
	if j.policy.recrawl == nil || ln.LastMod == nil && ln.ChangeFreq == nil {
		return 0
	}
	rule, ok := j.policy.recrawl(ln.URL.Fetch())
	if !ok {
		return 0
	}
	if read := j.item.Last.At; read > 0 && changedBy(string(ln.LastMod)).After(time.Unix(read, 0)) {
		return time.Millisecond
	}
	if often, ok := changeFreqs[strings.ToLower(string(ln.ChangeFreq))]; ok {
		return max(often, rule.Min)
	}
	return 0
}

const day = 24 * time.Hour

// changeFreqs are what sitemaps.org has a page's rate of change called; never says
// nothing about what is sooner.
var changeFreqs = map[string]time.Duration{
	"always": time.Millisecond, "hourly": time.Hour, "daily": day, "weekly": 7 * day, "monthly": 30 * day, "yearly": 365 * day,
}

// changedBy is the latest moment that a date of a sitemap or feed may mean, zero for
// none: of a day its end.
func changedBy(text string) time.Time {
	for _, layout := range []struct {
		form string
		end  func(time.Time) time.Time
	}{
		{time.RFC3339, nil},
		{"2006-01-02T15:04Z07:00", func(t time.Time) time.Time { return t.Add(time.Minute) }},
		{time.DateOnly, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
		{"2006-01", func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }},
		{"2006", func(t time.Time) time.Time { return t.AddDate(1, 0, 0) }},
		{time.RFC1123Z, nil},
		{time.RFC1123, nil},
	} {
		t, err := time.Parse(layout.form, text)
		if err == nil && layout.end != nil {
			return layout.end(t)
		}
		if err == nil {
			return t
		}
	}
	return time.Time{}
}
