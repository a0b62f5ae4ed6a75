package crawl

import (
	"bytes"
	"strings"

	"seine/frontier"
	"seine/frontier/canon"
)

// redirect turns Location into a candidate of the first class that keeps depth,
// meta and seed standing.
func (h *hand) redirect() {
	if err := h.parser.Resolve(&h.target, &h.url, []byte(h.resp.Location), nil); err != nil {
		h.rec.Location = redacted(clip(h.resp.Location, maxErrorText))
		h.refused[refusedInvalid]++
		return
	}
	h.rec.Location = string(h.target.AppendRedacted(nil))
	again := ""
	if bytes.Equal(h.target.Key(), h.url.Key()) {
		if bytes.Equal(h.target.Fetch(), h.url.Fetch()) {
			h.dead(causeRedirectLoop, "redirects to itself")
			return
		}
		again = "redirect" // the same URL to the frontier, another spelling to the server
	}
	if int(h.item.Redirects) >= h.w.cfg.MaxRedirects {
		h.dead(causeRedirectLoop, "too many redirects in a row")
		return
	}
	site, fp := h.sites.Fingerprint(&h.target)
	if r := h.refuses(&h.target, site.Name); r != accepted {
		h.refused[r]++
		return
	}
	if again == "" && h.w.laneOf(fp).known.has(fp) {
		h.known++
		h.rec.Seen = true
		return
	}
	h.page.addLink(frontier.Candidate{
		URL:         string(h.target.Fetch()),
		Site:        site.Name,
		Fingerprint: fp,
		Depth:       h.item.Depth,
		Redirects:   h.item.Redirects + 1,
		Seed:        h.item.Seed,
		Meta:        h.item.Meta,
		Again:       again,
	})
}

// refuses says why the target of a redirect is not followed. That of a seed is
// in scope wherever it leads, as the seed is; only what is denied is refused.
func (h *hand) refuses(target *canon.URL, site string) refusal {
	if h.item.Seed {
		if h.policy.denies(target) {
			return refusedRule
		}
		return accepted
	}
	if !h.policy.inScope(h.src, target, site) {
		return refusedScope
	}
	return h.policy.filter(target, h.item.Depth)
}

// redacted takes credentials out of a text that should be a URL and is none.
func redacted(text string) string {
	slashes := strings.Index(text, "//")
	if slashes < 0 {
		return text
	}
	rest := text[slashes+2:]
	end := strings.IndexAny(rest, "/?#\\")
	if end < 0 {
		end = len(rest)
	}
	if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
		return text[:slashes+2] + rest[at+1:]
	}
	return text
}
