package canon

import (
	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/text/encoding"
)

// URL is one canonical http or https URL. The zero value is empty; parsing
// into it reuses its memory, and slices it returns are valid until then.
type URL struct {
	fetch []byte
	key   []byte
	host  []byte
}

// Fetch is the fetch form: the WHATWG href without fragment.
func (u *URL) Fetch() []byte { return u.fetch }

// Key is the key form: URLs with equal keys are the same URL.
func (u *URL) Key() []byte { return u.key }

// Host is the host without port, in ASCII, an IPv6 literal in brackets.
func (u *URL) Host() []byte { return u.host }

// Config of a Parser; zero fields are the documented defaults.
type Config struct {
	MaxLength   int  // bytes of the fetch form, default 2048
	MaxSegments int  // default none
	MaxRepeats  int  // default none
	MaxArgs     int  // default none
	StripParams bool // key rule: drop tracking parameters
	SortQuery   bool // key rule: sort the query
}

// Parser turns text into URLs. One per goroutine.
type Parser struct {
	cfg Config
	lib url.Parser
}

// NewParser returns a parser.
func NewParser(cfg Config) *Parser { return &Parser{cfg: cfg, lib: url.NewParser()} }

// Parse parses raw as an absolute URL into dst.
func (p *Parser) Parse(dst *URL, raw []byte) error { return p.Resolve(dst, nil, raw, nil) }

// Resolve parses raw against base (nil: raw must be absolute). enc is the
// page's encoding for the query when it is not UTF-8, else nil.
func (p *Parser) Resolve(dst *URL, base *URL, raw []byte, enc encoding.Encoding) error {
	var u *url.Url
	var err error
	if base == nil {
		u, err = p.lib.Parse(string(raw))
	} else {
		u, err = p.lib.ParseRef(string(base.fetch), string(raw))
	}
	if err != nil {
		return ErrInvalid
	}
	if s := u.Scheme(); s != "http" && s != "https" {
		return ErrNotCrawlable
	}
	dst.fetch = append(dst.fetch[:0], u.Href(true)...)
	dst.key = append(dst.key[:0], dst.fetch...)
	dst.host = append(dst.host[:0], u.Hostname()...)
	return nil
}
