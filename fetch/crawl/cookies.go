package crawl

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"seine/fetch/cookie"
	"seine/frontier"
	"seine/frontier/canon"
)

// siteCookies are the cookies of a site while it is lent, where the crawl keeps any.
// They are one store for all requests of the visit: a request goes with what stands as
// it starts, an answer's cookies are in it when the answer ends, and of two that set
// the same cookie the one that ended last is right. What changed goes with the next
// outcome or with the site, whichever is first, so that a page is settled with its
// cookies or after them.
//
// They count by the shard's time, which all fetchers share.
type siteCookies struct {
	jar     cookie.Jar
	changed bool  // since it was handed to the settler
	start   int64 // the shard's time when Config.Elapsed was 0, milliseconds
}

// cookiesOf opens the cookies of a site that was just lent, nil where the crawl keeps
// none. A visit keeps to the setting that it began with.
func cookiesOf(l *shardLoop, lent *frontier.Visit) *siteCookies {
	if !l.crawler.policy.Load().settings.KeepsCookies() {
		return nil
	}
	return &siteCookies{jar: cookie.Decode(lent.Cookies), start: l.then - l.thenAt.Milliseconds()}
}

// take is what is to be settled of them, nil when nothing changed.
func (c *siteCookies) take() *string {
	if c == nil || !c.changed {
		return nil
	}
	c.changed = false
	stored := c.jar.Encode()
	return &stored
}

// shardTime is the time of the visit's shard, Unix seconds.
func (v *visit) shardTime() int64 {
	return max(1, (v.cookies.start+v.loop.crawler.cfg.Elapsed().Milliseconds())/1000)
}

// addCookies adds the site's cookies to the request for the URL at hand: behind those
// that a rule gives the site, and none of the same name.
func (w *worker) addCookies() {
	if w.visit.cookies == nil {
		return
	}
	at := slices.IndexFunc(w.req.Header, func(h [2]string) bool { return strings.EqualFold(h[0], "Cookie") })
	if w.given = ""; at >= 0 {
		w.given = w.req.Header[at][1]
	}
	if w.asked = w.cookiesFor(&w.url); w.asked == w.given {
		return
	}
	header := slices.Clone(w.req.Header)
	if at < 0 {
		at, header = len(header), append(header, [2]string{"Cookie"})
	}
	header[at][1] = w.asked
	w.req.Header = header
}

// cookiesFor is what the Cookie header of a request to a URL of the site would be now.
func (w *worker) cookiesFor(u *canon.URL) string {
	v := w.visit
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.cookies.jar.Header(cookie.RequestTo(u), w.given, v.shardTime())
}

// takeCookies takes over what the answer at hand set.
func (w *worker) takeCookies() {
	v := w.visit
	if v.cookies == nil || w.resp.Status == 0 || w.resp.Header == nil {
		return
	}
	lines := w.resp.Header.Values("Set-Cookie")
	if lines == nil {
		return
	}
	date := w.resp.Header.Get("Date")
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cookies.jar.Take(cookie.RequestTo(&w.url), lines, date, v.shardTime(), frontier.MaxCookies) {
		v.cookies.changed = true
	}
}

// bouncesAsIs reports whether a redirect of the URL at hand to itself would bring the
// same answer again: no other cookies would go with it.
func (w *worker) bouncesAsIs() bool {
	return w.visit.cookies == nil || w.cookiesFor(&w.url) == w.asked
}

// isLoop reports whether a redirect leads to where it came from: to the same URL, and
// where its cookies are known, with the same ones.
func (w *worker) isLoop(site string, target canon.Fingerprint) bool {
	if w.visit.cookies != nil && site == w.visit.lent.Site {
		return w.item.Trail.Has(withCookies(target, w.cookiesFor(&w.target)))
	}
	return w.item.Trail.Has(target)
}

// trail is that of what the URL at hand, whose fingerprint is from, redirects to.
func (w *worker) trail(from canon.Fingerprint) frontier.Trail {
	t := w.item.Trail.Add(from)
	if w.visit.cookies != nil {
		t = t.Add(withCookies(from, w.asked))
	}
	return t
}

// withCookies is what stands in a trail for a URL asked for with a Cookie header.
func withCookies(u canon.Fingerprint, header string) canon.Fingerprint {
	u.Key ^= xxhash.Sum64String("cookies " + header)
	return u
}

// otherCookies is the request id of a URL that is asked for again because it gets
// other cookies now. Every answer has its own: cookies may be gone, and be set anew,
// any number of times.
func (w *worker) otherCookies() string {
	return "cookies:" + strconv.FormatInt(w.resp.Start.UnixMilli(), 36)
}

// wantsCookies names the cookies that a page set which redirects in a circle: sites do
// so to whoever does not bring them back.
func (w *worker) wantsCookies() string {
	var names []string
	for _, line := range w.resp.Header.Values("Set-Cookie") {
		pair, _, _ := strings.Cut(line, ";")
		if name, _, ok := strings.Cut(pair, "="); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	if names == nil || w.visit.cookies != nil {
		return ""
	}
	return "; it may want its cookies back, as --cookies site has it: " + strings.Join(names, ", ")
}
