package crawl

import (
	"bytes"
	"errors"
	"strings"

	"seine/fetch/robots"
	"seine/frontier"
	"seine/frontier/canon"
)

// maxSitemaps are taken from one robots.txt.
const maxSitemaps = 1000

// noRoomPause is how long a site is left alone whose sitemaps found no room, in
// times of Config.Backoff.
const noRoomPause = 12

// admitSitemaps queues the sitemaps that robots.txt names, where the crawl wants
// them and they are in its scope. They do not wait for room, for that would hold
// a slot and a visit, of each new site: their site does.
func (h *hand) admitSitemaps(l *loan, rules *robots.Rules) error {
	p := h.w.policy.Load()
	if !p.settings.Sitemaps {
		return nil
	}
	src := source{site: l.visit.Site, host: h.url.Host()}
	var found []frontier.Candidate
	for _, text := range rules.Sitemaps() {
		if len(found) == maxSitemaps || h.parser.Parse(&h.target, []byte(text)) != nil {
			continue
		}
		site, fp := h.sites.Fingerprint(&h.target)
		if p.inScope(src, &h.target, site.Name) && !p.denies(&h.target) {
			found = append(found, frontier.Candidate{URL: string(h.target.Fetch()), Site: site.Name, Fingerprint: fp})
		}
	}
	err := h.w.admit(l.ctx, found, true)
	if errors.Is(err, frontier.ErrFull) {
		l.hold(noRoomPause * h.w.cfg.Backoff)
	}
	return err
}

// isSitemap reports whether a document is read as a sitemap: by its type, or by
// its name where the type says little.
func isSitemap(u *canon.URL, contentType string) bool {
	return strings.Contains(contentType, "xml") && !strings.Contains(contentType, "xhtml") ||
		bytes.Contains(u.Path(), []byte("sitemap")) && !strings.Contains(contentType, "html")
}
