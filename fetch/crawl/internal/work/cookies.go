package work

import (
	"strings"
	"sync"

	"seine/fetch/cookie"
	"seine/frontier"
	"seine/frontier/canon"
)

// Cookies are the cookies of a site while it is leased. They are one store for all
// requests of the visit: a request goes with what there is as it starts, an answer's
// cookies are in it when the answer ends, and of two that set the same cookie the one
// that ended last is right.
//
// They count by the shard's time, which all fetchers share.
type Cookies struct {
	now func() int64 // the shard's time, Unix seconds

	mu      sync.Mutex
	jar     cookie.Jar
	changed bool // since they were handed to the settler
}

// OpenCookies reads the cookies of a site as its shard keeps them.
func OpenCookies(stored string, now func() int64) *Cookies {
	return &Cookies{now: now, jar: cookie.Decode(stored)}
}

// Changed is what is to be stored of them, nil when nothing changed since it was
// called last and it need not be stored anyway, or there is no store.
func (c *Cookies) Changed(anyway bool) *string {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed && !anyway {
		return nil
	}
	c.changed = false
	stored := c.jar.Encode()
	return &stored
}

// header is what the Cookie header of a request to a URL of the site would be now, to
// which a rule gives some already.
func (c *Cookies) header(u *canon.URL, given string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jar.Header(cookie.RequestTo(u), given, c.now())
}

// store takes over what an answer of u set.
func (c *Cookies) store(u *canon.URL, lines []string, date string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jar.Take(cookie.RequestTo(u), lines, date, c.now(), frontier.MaxCookies-len(frontier.WantsSign)) {
		c.changed = true
	}
}

// setCookieNames names the cookies that Set-Cookie lines set.
func setCookieNames(lines []string) string {
	var names []string
	for _, line := range lines {
		pair, _, _ := strings.Cut(line, ";")
		if name, _, ok := strings.Cut(pair, "="); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return strings.Join(names, ", ")
}
