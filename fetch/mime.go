package fetch

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"seine/extract/mediatype"
)

// DefaultTypes are the media types fetched by default: HTML, XML
// and plain text.
func DefaultTypes() []string {
	return []string{"text/html", "application/xhtml+xml", "text/xml", "application/xml", "*/*+xml", "text/plain"}
}

// Types is a set of media types. The zero value accepts nothing.
type Types struct {
	exact    map[string]bool
	majors   []string // "text/"
	suffixes []string // "+xml"
	all      bool
}

// NewTypes reads patterns: "text/html", "text/*", "*/*+xml", "*/*".
func NewTypes(patterns []string) (*Types, error) {
	t := &Types{exact: make(map[string]bool)}
	for _, raw := range patterns {
		p := strings.ToLower(strings.TrimSpace(raw))
		major, minor, ok := strings.Cut(p, "/")
		switch {
		case !ok || major == "" || minor == "" || strings.ContainsAny(p, "; \t,"):
			return nil, fmt.Errorf("fetch: media type %q is not of the form type/subtype", raw)
		case p == "*/*":
			t.all = true
		case strings.HasPrefix(p, "*/*+"):
			t.suffixes = append(t.suffixes, p[len("*/*"):])
		case minor == "*" && major != "*":
			t.majors = append(t.majors, major+"/")
		case strings.Contains(p, "*"):
			return nil, fmt.Errorf("fetch: media type %q: * may stand for a whole type or subtype, or before +suffix", raw)
		default:
			t.exact[p] = true
		}
	}
	return t, nil
}

// Accept says whether a Content-Type, whatever its parameters and case, is in the set.
func (t *Types) Accept(contentType string) bool {
	if t.all {
		return true
	}
	m, _ := mediatype.Extract(contentType)
	if t.exact[m] {
		return true
	}
	for _, s := range t.majors {
		if strings.HasPrefix(m, s) {
			return true
		}
	}
	for _, s := range t.suffixes {
		if strings.HasSuffix(m, s) {
			return true
		}
	}
	return false
}

// sniffLen is how many bytes Sniff looks at.
const sniffLen = 512

// Sniff guesses the media type from the first bytes of a body (the WHATWG
// algorithm of net/http; text/xml for XML, application/octet-stream when in
// doubt).
func Sniff(b []byte) string {
	m, _ := mediatype.Extract(http.DetectContentType(b))
	return m
}

// Accepts says whether a body is of a type that the client was configured to
// fetch: by Response.Type. A body without any byte is of every type.
func (c *Client) Accepts(resp *Response) bool {
	t := resp.Type
	if t == "" { // of a Response that is not this client's
		t = cmp.Or(ReadType(resp.ContentType), resp.Sniffed)
	}
	return c.cfg.FetchAll || t == "" || c.types.Accept(t)
}

// RetryAfter reads the header of that name (RFC 9110, section 10.2.3): seconds,
// or a date seen from now. A time in the past is zero, a number beyond all
// others the longest time there is. The caller bounds it.
func RetryAfter(h Header, now time.Time) (time.Duration, bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(v, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n > math.MaxInt64/uint64(time.Second):
		return math.MaxInt64, true
	case err == nil:
		return time.Duration(n) * time.Second, true
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return max(t.Sub(now), 0), true
}
