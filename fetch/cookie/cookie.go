// Package cookie keeps the cookies of one site as RFC 6265 has it, in a form that can
// be stored: net/http/cookiejar cannot be.
//
// A Jar belongs to one site, and nothing of it ever goes to another: what a host sets
// for its whole domain goes to the hosts of that domain that are of the site. It knows
// host-only cookies, Domain, Path, Secure, Max-Age and Expires; of HttpOnly and
// SameSite, which guard people at browsers, it knows nothing. Ports do not matter.
//
// Time is that of the caller, in Unix seconds from 1 on, and is the same for all who share a
// stored Jar. A server's own time counts only against itself: an Expires is so long
// from now as it is after the Date of its answer.
package cookie

import (
	"encoding/binary"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"seine/frontier/canon"
)

// Jar is the cookies of one site, the oldest first. The zero Jar is empty. It is not
// safe for concurrent use.
type Jar struct{ list []cookie }

type cookie struct {
	name, value string
	host        string // that set it, or the domain that it is for
	path        string
	domain      bool // it goes to the hosts below host, too
	secure      bool
	expires     int64 // Unix seconds, 0 = as long as the jar is kept
}

// size is what a cookie takes in the stored form.
func (c *cookie) size() int { return len(c.append(nil)) }

// Request is what of a request decides which cookies it takes.
type Request struct {
	Host   string // lower case, without port
	Path   string // up to the query
	Secure bool   // https
}

// RequestTo is the Request for a URL.
func RequestTo(u *canon.URL) Request {
	return Request{Host: string(u.Host()), Path: string(u.Path()), Secure: u.Scheme() == "https"}
}

// Header is the value of the Cookie header that a request gets, "" for none: first
// those of given, which is such a value, and then, the longest paths first, what the
// jar has under other names.
func (j *Jar) Header(r Request, given string, now int64) string {
	var fits []*cookie
	for i := range j.list {
		if c := &j.list[i]; c.alive(now) && c.goesTo(r) && !names(given, c.name) {
			fits = append(fits, c)
		}
	}
	if fits == nil {
		return given
	}
	slices.SortStableFunc(fits, func(a, b *cookie) int { return len(b.path) - len(a.path) })
	var out strings.Builder
	out.WriteString(strings.TrimRight(given, "; "))
	for _, c := range fits {
		if out.Len() > 0 {
			out.WriteString("; ")
		}
		out.WriteString(c.name + "=" + c.value)
	}
	return out.String()
}

// names reports whether the value of a Cookie header has a cookie of that name.
func names(header, name string) bool {
	for pair := range strings.SplitSeq(header, ";") {
		if has, _, _ := strings.Cut(pair, "="); strings.TrimSpace(has) == name {
			return true
		}
	}
	return false
}

func (c *cookie) alive(now int64) bool { return c.expires == 0 || c.expires > now }

// goesTo is RFC 6265, section 5.4.
func (c *cookie) goesTo(r Request) bool {
	if c.secure && !r.Secure || c.host != r.Host && !(c.domain && below(r.Host, c.host)) {
		return false
	}
	rest, ok := strings.CutPrefix(r.Path, c.path)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(c.path, "/"))
}

// below reports whether a host is one of a domain, and not an address.
func below(host, domain string) bool {
	if !strings.HasSuffix(host, "."+domain) {
		return false
	}
	_, err := netip.ParseAddr(host)
	return err != nil
}

// Take takes over what an answer to a request set: lines are its Set-Cookie headers,
// date its Date. What does not fit into most bytes of the stored form goes, the oldest
// first. It reports whether the jar is another one now.
func (j *Jar) Take(r Request, lines []string, date string, now int64, most int) (changed bool) {
	for _, line := range lines {
		if c, ok := parse(line, r, date, now); ok && c.size() < most {
			changed = j.putCookie(c, now) || changed
		}
	}
	if !changed {
		return false
	}
	j.list = slices.DeleteFunc(j.list, func(c cookie) bool { return !c.alive(now) })
	size, drop := 1, 0
	for i := range j.list {
		size += j.list[i].size()
	}
	for ; size > most; drop++ {
		size -= j.list[drop].size()
	}
	j.list = slices.Delete(j.list, 0, drop)
	return true
}

// putCookie adds a cookie, or replaces the one that it is a new value of, which keeps its
// age. One that is not alive takes that away.
func (j *Jar) putCookie(c cookie, now int64) (changed bool) {
	at := slices.IndexFunc(j.list, func(o cookie) bool {
		return o.name == c.name && o.host == c.host && o.domain == c.domain && o.path == c.path
	})
	switch {
	case at < 0 && !c.alive(now):
		return false
	case at < 0:
		j.list = append(j.list, c)
	case j.list[at] == c:
		return false
	default:
		j.list[at] = c
	}
	return true
}

// parse reads a Set-Cookie line as RFC 6265, sections 5.2 and 5.3, have it: of two
// attributes of one name the last counts, and what an attribute cannot mean is as if
// it were not there.
func parse(line string, r Request, date string, now int64) (c cookie, ok bool) {
	pair, attributes, _ := strings.Cut(line, ";")
	name, value, ok := strings.Cut(pair, "=")
	c = cookie{name: strings.Trim(name, " \t"), value: strings.Trim(value, " \t"), host: r.Host}
	if !ok || c.name == "" || strings.ContainsFunc(c.name+c.value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return c, false
	}
	domain, lives, untilDate := "", int64(-1), int64(-1) // seconds, -1 = not given
	for attribute := range strings.SplitSeq(attributes, ";") {
		name, value, _ := strings.Cut(attribute, "=")
		value = strings.Trim(value, " \t")
		switch strings.ToLower(strings.Trim(name, " \t")) {
		case "domain":
			if value != "" {
				domain = strings.TrimPrefix(strings.ToLower(value), ".")
			}
		case "path":
			c.path = value
		case "secure":
			c.secure = true
		case "max-age":
			if seconds, ok := maxAgeOf(value); ok {
				lives = seconds
			}
		case "expires":
			if t, ok := parseDate(value); ok {
				from, err := http.ParseTime(date)
				if err != nil {
					from = time.Now()
				}
				untilDate = max(0, int64(t.Sub(from)/time.Second))
			}
		}
	}
	if domain != "" {
		switch {
		case domain == r.Host:
			_, err := netip.ParseAddr(strings.Trim(domain, "[]"))
			c.domain = err != nil && !canon.IsSuffix(domain)
		case below(r.Host, domain) && !canon.IsSuffix(domain):
			c.host, c.domain = domain, true
		default:
			return c, false
		}
	}
	if !strings.HasPrefix(c.path, "/") {
		c.path = r.Path[:max(1, strings.LastIndexByte(r.Path, '/'))]
	}
	if lives < 0 { // Max-Age wins
		lives = untilDate
	}
	if lives >= 0 {
		c.expires = now + min(lives, maxAge)
	}
	return c, true
}

// maxAge bounds how long a cookie lives: ten years of seconds.
const maxAge = 10 * 365 * 24 * 3600

// maxAgeOf reads a Max-Age (RFC 6265, section 5.2.2), at least 0 and at most maxAge
// seconds; ok is false where it is no number.
func maxAgeOf(v string) (seconds int64, ok bool) {
	digits := strings.TrimPrefix(v, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil && v == digits { // larger than any number
		n = maxAge
	}
	return max(0, min(n, maxAge)), true
}

// version begins the stored form of a jar: then per cookie name, value, host and
// path, each behind its length, flags, and when it expires. Numbers are varints.
const version = '1'

const (
	flagDomain = 1 << iota
	flagSecure
)

func (c *cookie) append(dst []byte) []byte {
	for _, text := range [...]string{c.name, c.value, c.host, c.path} {
		dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
	}
	flags := byte(0)
	if c.domain {
		flags |= flagDomain
	}
	if c.secure {
		flags |= flagSecure
	}
	return binary.AppendUvarint(append(dst, flags), uint64(c.expires))
}

// Encode is the stored form, "" of an empty jar.
func (j *Jar) Encode() string {
	if len(j.list) == 0 {
		return ""
	}
	dst := []byte{version}
	for i := range j.list {
		dst = j.list[i].append(dst)
	}
	return string(dst)
}

// Decode reads a stored form. One of another version, or that is broken, is of an
// empty jar: sites set their cookies anew.
func Decode(stored string) Jar {
	if stored == "" || stored[0] != version {
		return Jar{}
	}
	var j Jar
	for b := []byte(stored[1:]); len(b) > 0; {
		var c cookie
		for _, text := range [...]*string{&c.name, &c.value, &c.host, &c.path} {
			n, size := binary.Uvarint(b)
			if size <= 0 || n > uint64(len(b)-size) {
				return Jar{}
			}
			*text, b = string(b[size:size+int(n)]), b[size+int(n):]
		}
		if len(b) == 0 {
			return Jar{}
		}
		c.domain, c.secure = b[0]&flagDomain != 0, b[0]&flagSecure != 0
		expires, size := binary.Uvarint(b[1:])
		if size <= 0 {
			return Jar{}
		}
		c.expires, b = int64(expires), b[1+size:]
		j.list = append(j.list, c)
	}
	return j
}
