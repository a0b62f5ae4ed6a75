package frontier

import (
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"

	"seine/frontier/canon"
)

// RefetchFingerprint is the fingerprint of a URL that is refetched under a request id. It lives
// in the filter of the plain one, whatever its own bits say.
func (c *Candidate) RefetchFingerprint() canon.Fingerprint {
	var room [64]byte
	id := append(c.Fingerprint.Append(room[:0]), c.Refetch...)
	return canon.Fingerprint{Site: c.Fingerprint.Site, Key: xxhash.Sum64(id)}
}

// Entry is what the candidate leaves in a queue.
func (c *Candidate) Entry() Entry {
	return Entry{URL: c.URL, Priority: c.Priority, Depth: c.Depth, Redirects: c.Redirects, Trail: c.Trail, Seed: c.Seed, Meta: c.Meta, Sitemap: c.Sitemap, SitemapOf: c.SitemapOf,
		Referrer: c.Referrer, From: c.From, Request: c.Request}
}

// Begins reports whether reports tell of a URL as a seed: one that links led to, or a
// redirect, is none, nor is a sitemap.
func (e *Entry) Begins() bool { return e.Seed && e.Depth == 0 && e.Redirects == 0 && !e.Sitemap }

// Maker makes candidates of texts, such as seeds and elements of a feed, by
// the key and site rules of one crawl. One per goroutine.
type Maker struct {
	MaxURL int // bytes of the longest URL that it takes, Settings.LongestURL; 0 = the most that any crawl takes

	parser *canon.Parser
	sites  *canon.Sites
	url    canon.URL
}

// NewMaker returns a maker of candidates for a crawl of this layout.
func NewMaker(layout Layout) *Maker {
	return &Maker{
		parser: canon.NewParser(layout.CanonConfig()),
		sites:  canon.NewSites(layout.LimitBy),
	}
}

// Make parses an absolute URL. The candidate has seed scope, class 0 and
// memory of its own; its credentials are for its whole origin. Errors are those of
// canon.
func (m *Maker) Make(raw string) (Candidate, error) { return m.make(raw, true) }

// make is Make; keep reports whether credentials are for the origin, or stay in the
// URL and are for it alone.
func (m *Maker) make(raw string, keep bool) (Candidate, error) {
	if err := m.parser.Parse(&m.url, []byte(raw)); err != nil {
		return Candidate{}, err
	}
	if n := len(m.url.Fetch()); m.MaxURL > 0 && n > m.MaxURL {
		return Candidate{}, fmt.Errorf("%w: it has %d bytes, and the crawl takes %d (--max-url)", canon.ErrTooLong, n, m.MaxURL)
	}
	site, fingerprint := m.sites.Fingerprint(&m.url)
	c := Candidate{Site: site.Name, Fingerprint: fingerprint, Seed: true}
	if !keep || !m.url.HasUserinfo() {
		c.URL = string(m.url.Fetch())
		return c, nil
	}
	if tooLong(&m.url) {
		return Candidate{}, fmt.Errorf("credentials and origin have more than %d bytes", CredentialBytes)
	}
	c.URL, c.Credentials = m.url.String(), string(m.url.Userinfo())
	return c, nil
}

// sitemapRequest starts request ids of sitemaps.
const sitemapRequest = "sitemap:"

// SitemapRequest is the request id, for Candidate.Refetch, of a sitemap that host
// named: it is read once for each that names it, though its URL be known as a
// page, or as somebody else's sitemap.
func SitemapRequest(host string) string { return sitemapRequest + host }

// SiteOf is the site that a host, or a URL, belongs to by the rule of a crawl.
func (l Layout) SiteOf(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text + "/"
	}
	c, err := NewMaker(l).Make(text)
	if err != nil {
		return "", fmt.Errorf("frontier: site %s: %w", LogText(text), err)
	}
	return c.Site, nil
}
