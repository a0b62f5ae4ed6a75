package work

import (
	"bytes"
	"cmp"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"seine/frontier"
	"seine/frontier/canon"
)

// followRedirect makes of the Location of a redirect a candidate of the first class that
// keeps depth, meta and seed scope.
func (j *job) followRedirect() {
	status := j.resp.Status
	if !j.res.Reply.Answered || status < 300 || status >= 400 || j.resp.Location == "" {
		return
	}
	if err := j.Parser.Resolve(&j.Target, j.permit.URL, []byte(j.resp.Location), nil); err != nil {
		j.rec.Location = frontier.HideCredentials(Clip(j.resp.Location, maxErrorText))
		j.refuseTarget(RefusalOf(err))
		return
	}
	j.rec.Location = string(j.Target.AppendRedacted(nil))
	request, ok := j.item.Request.Redirected(status, bytes.Equal(j.Target.Origin(), j.permit.URL.Origin()))
	if !ok {
		j.refuseTarget(RefusedRequest)
		return
	}
	from := j.fingerprint()
	site, fp := j.Sites.Fingerprint(&j.Target)
	fp = request.Fingerprint(fp)
	refetch := ""
	if fp == from {
		if bytes.Equal(j.Target.Fetch(), j.permit.URL.Fetch()) {
			if j.bouncesAsIs() {
				j.endLoop("redirects to itself" + j.wantsCookies())
				return
			}
			refetch = j.otherCookies()
		} else {
			refetch = "redirect" // the same URL to the frontier, another spelling to the server
		}
	}
	if int(j.item.Redirects) >= j.cfg.MaxRedirects {
		j.endLoop("too many redirects in a row")
		return
	}
	j.res.From = from
	if j.isLoop(site.Name, fp) {
		j.endLoop("redirects back to where it came from" + j.wantsCookies())
		return
	}
	if refetch == "" && j.item.Trail.Has(fp) {
		refetch = j.otherCookies()
	}
	if r := j.targetRefusal(site.Name); r != Accepted {
		j.refuseTarget(r)
		return
	}
	if refetch == "" && !j.item.Sitemap && j.cfg.Known(fp) {
		j.known++
		j.rec.Seen = true
		return
	}
	c := frontier.Candidate{
		URL:         string(j.Target.Fetch()),
		Site:        site.Name,
		Fingerprint: fp,
		Depth:       j.item.Depth,
		Redirects:   j.item.Redirects + 1,
		Trail:       j.trail(from),
		Seed:        j.item.Seed,
		Meta:        j.item.Meta,
		Refetch:     refetch,
		Referrer:    j.item.Referrer,
		From:        j.res.Name,
		Request:     request,
	}
	if j.item.Sitemap {
		s := SitemapCandidate(&j.Target, site.Name, fp, j.src.host)
		c.Sitemap, c.SitemapOf, c.Refetch = true, s.SitemapOf, cmp.Or(refetch, s.Refetch)
	}
	j.addCandidate(c, 0)
}

// endLoop makes a URL dead whose redirects lead nowhere.
func (j *job) endLoop(text string) {
	j.res.Outcome = Dead(j.item, CauseRedirectLoop, text)
	j.res.Outcome.Tries = 1
}

// refuseTarget notes that the target of a redirect is not followed.
func (j *job) refuseTarget(r Refusal) {
	j.refused[r]++
	j.rec.Refused = RefusalNames[r]
}

// targetRefusal says why the target of a redirect is not followed. That of a seed is
// in scope wherever it leads, as the seed is, and that of a sitemap; only what is
// denied or too long is refused.
func (j *job) targetRefusal(site string) Refusal {
	if j.item.Seed || j.item.Sitemap {
		return j.policy.Denies(&j.Target)
	}
	if !j.policy.InScope(j.src, &j.Target, site) {
		return RefusedScope
	}
	return j.policy.Filter(&j.Target, j.item.Depth)
}

// bouncesAsIs reports whether a redirect of the URL at hand to itself would bring the
// same answer again: no other cookies would go with it.
func (j *job) bouncesAsIs() bool {
	return j.permit.Cookies == nil || j.permit.Cookies.header(j.permit.URL, j.given) == j.cookies
}

// isLoop reports whether a redirect leads to where it came from: to the same URL, and
// where its cookies are known, with the same ones.
func (j *job) isLoop(site string, target canon.Fingerprint) bool {
	if j.permit.Cookies != nil && site == j.permit.Site {
		return j.item.Trail.Has(withCookies(target, j.permit.Cookies.header(&j.Target, j.given)))
	}
	return j.item.Trail.Has(target)
}

// trail is that of what the URL at hand, whose fingerprint is from, redirects to.
func (j *job) trail(from canon.Fingerprint) frontier.Trail {
	t := j.item.Trail.AddHop(from)
	if j.permit.Cookies != nil {
		t = t.AddHop(withCookies(from, j.cookies))
	}
	return t
}

// withCookies is what is in a trail for a URL asked for with a Cookie header.
func withCookies(u canon.Fingerprint, header string) canon.Fingerprint {
	u.Key ^= xxhash.Sum64String("cookies " + header)
	return u
}

// otherCookies is the request id of a URL that is asked for again because it gets
// other cookies now. Every answer has its own: cookies may be gone, and be set anew,
// any number of times.
func (j *job) otherCookies() string {
	return "cookies:" + strconv.FormatInt(j.resp.Start.UnixMilli(), 36)
}

// wantsCookies names the cookies that a page set which redirects in a circle: sites do
// so to whoever does not bring them back.
func (j *job) wantsCookies() string {
	names := setCookieNames(j.resp.Header.Values("Set-Cookie"))
	if names == "" || j.permit.Cookies != nil {
		return ""
	}
	return "; it may want its cookies back, as --cookies site has it: " + names
}
