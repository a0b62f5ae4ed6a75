package frontier

import (
	"encoding/base64"
	"slices"
	"strings"

	"seine/frontier/canon"
)

// Trail is what the target of a redirect remembers of the URLs that led to it,
// the first one first: 24 bits of each one's key, as four characters of base64. A
// redirect that leads back to one of them is a loop, whoever fetched the hops. It
// takes a URL that it has not met for one of them once in 17 million hops, which is
// far below what a filter does.
type Trail string

const hopSize = 4 // characters

// AddHop is the trail of what a URL with this one redirects to.
func (t Trail) AddHop(from canon.Fingerprint) Trail { return t + Trail(hopOf(from)) }

// Has reports whether a URL was one of the hops.
func (t Trail) Has(u canon.Fingerprint) bool {
	if t == "" {
		return false
	}
	hop := hopOf(u)
	for ; len(t) >= hopSize; t = t[hopSize:] {
		if string(t[:hopSize]) == hop {
			return true
		}
	}
	return false
}

func hopOf(u canon.Fingerprint) string {
	bits := [3]byte{byte(u.Key >> 16), byte(u.Key >> 8), byte(u.Key)}
	return base64.RawURLEncoding.EncodeToString(bits[:])
}

// isTrail reports whether a text can be a trail of some hops.
func isTrail(text string) bool {
	return text != "" && len(text)%hopSize == 0 && !slices.ContainsFunc([]byte(text), func(c byte) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	})
}

// appendHops appends what an entry keeps of the redirects that led to it: where a
// fragment would stand, for programs that do not know of it drop that, the trail,
// and behind a comma the last of their URLs.
func appendHops(dst []byte, site string, e *Entry) []byte {
	dst = append(append(dst, '#'), e.Trail...)
	if e.From != "" {
		form, rest := formOf(site, e.From)
		dst = append(append(dst, ',', '0'+byte(form)), rest...)
	}
	return dst
}

// cutHops splits what appendHops wrote off a URL that is stored with it.
func cutHops(stored, site string) (url string, t Trail, from string) {
	i := strings.LastIndexByte(stored, '#')
	if i < 0 {
		return stored, "", ""
	}
	trail, rest, more := strings.Cut(stored[i+1:], ",")
	if !isTrail(trail) && (trail != "" || !more) {
		return stored, "", ""
	}
	if more {
		var ok bool
		if from, ok = cutForm(rest, site); !ok {
			return stored, "", ""
		}
	}
	return stored[:i], Trail(trail), from
}
