package extract

import (
	"bytes"

	"seine/extract/charset"
)

// robots is what a page asks of crawlers.
type robots uint8

const (
	noIndex robots = 1 << iota
	noFollow
)

// robots adds the directives of a robots meta element; of several the
// strictest counts, so "all" and "index" lift nothing.
func (c *collector) robots(content []byte) {
	c.obey(directives(content))
}

func (c *collector) obey(r robots) {
	c.pages |= r
	c.facts.NoIndex = c.pages&noIndex != 0
	c.facts.NoFollow = c.pages&noFollow != 0
}

// directives reads a list of robots directives, separated by commas or white
// space. What stands behind a colon is a value: "max-image-preview: none" is not
// "none".
func directives(b []byte) robots {
	var r robots
	value := false
	for len(b) > 0 {
		n := 0
		for n < len(b) && b[n] != ',' && b[n] != ';' && !isSpace(b[n]) {
			n++
		}
		switch t := b[:n]; {
		case n == 0:
		case t[n-1] == ':':
			value = n == 1 || valued(t[:n-1])
		case value:
			value = false
		case charset.EqualFold(t, "none"):
			r |= noIndex | noFollow
		case charset.EqualFold(t, "noindex"):
			r |= noIndex
		case charset.EqualFold(t, "nofollow"):
			r |= noFollow
		}
		b = b[min(n+1, len(b)):]
	}
	return r
}

// robotsHeader reads one X-Robots-Tag value: "[agent:] directive, ...", where
// an agent's name may stand before any of the directives and holds from there
// on. Directives of other agents are not ours.
func robotsHeader(v, own string) robots {
	var r robots
	ours := true
	for part := range bytes.SplitSeq([]byte(v), []byte{','}) {
		part = trim(part)
		if i := bytes.IndexByte(part, ':'); i >= 0 && isAgent(trim(part[:i])) {
			agent := trim(part[:i])
			ours = charset.EqualFold(agent, "*") || charset.EqualFold(agent, "robots") || own != "" && charset.EqualFold(agent, own)
			part = part[i+1:]
		}
		if ours {
			r |= directives(part)
		}
	}
	return r
}

// isAgent reports whether what stands before a colon may be an agent's name. The
// rest of a date with a time has white space.
func isAgent(b []byte) bool { return !valued(b) && !bytes.ContainsAny(b, " \t") }

// valued reports whether a directive is one that takes a value after a colon.
func valued(b []byte) bool {
	for _, s := range []string{"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"} {
		if charset.EqualFold(b, s) {
			return true
		}
	}
	return false
}
