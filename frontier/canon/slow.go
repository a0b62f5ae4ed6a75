package canon

import (
	"bytes"
	"strings"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/idna"
	"golang.org/x/text/encoding"
)

// The slow path hands a link to the library, which walks the states of the
// standard one by one, and corrects where the library differs:
//
//   - hosts are made ASCII here (domain), and the library carries a placeholder
//     through its own checks: it refuses "xn--" labels that the standard takes,
//     reads "1.-2" as an address, and trims brackets without counting them;
//   - '^' is escaped in paths;
//   - queries in legacy encodings arrive escaped, since the library knows only
//     single-byte ones and would apply them to path and host too;
//   - the scheme is looked at first, so that the library never sees any but
//     http and https.

const (
	placeholder = "h" // a host that the library leaves as it is
	badHost     = "|" // a host that the library refuses
)

// initLibrary sets up what the slow path needs.
func (p *Parser) initLibrary() {
	p.idna = idna.New(
		idna.MapForLookup(),
		idna.ValidateLabels(true), // sets some of the following
		idna.BidiRule(),
		idna.CheckHyphens(false),
		idna.CheckJoiners(true),
		idna.StrictDomainName(false),
		idna.Transitional(false),
		idna.VerifyDNSLength(false),
	)
	p.lib = url.NewParser(
		url.WithPathPercentEncodeSet(url.PathPercentEncodeSet.Set('^')),
		url.WithPreParseHostFunc(func(_ *url.Url, host string) string { return p.beforeHost(host) }),
		url.WithPostParseHostFunc(func(*url.Url, string) string { return p.name }),
	)
}

// beforeHost gives the library a host that it will read right.
func (p *Parser) beforeHost(host string) string {
	if strings.HasPrefix(host, "[") {
		if strings.Count(host, "[")+strings.Count(host, "]") != 2 {
			return badHost
		}
		return host
	}
	name := p.domain(host)
	switch {
	case name == "":
		return badHost
	case !endsInNumber(name):
		p.name = name
		return placeholder
	case strings.Trim(name, "0123456789abcdefx.") != "":
		return badHost
	}
	return name
}

// slow resolves what fast left over.
func (p *Parser) slow(dst, base *URL, raw []byte, enc encoding.Encoding) error {
	if scheme := schemeOf(trim(raw)); scheme != nil && !isHTTP(scheme) {
		return ErrNotCrawlable // before a long data URL is copied
	}
	p.text = clean(p.text[:0], raw)
	switch scheme := schemeOf(p.text); {
	case scheme != nil && !isHTTP(scheme):
		return ErrNotCrawlable
	case scheme == nil && base == nil:
		return ErrInvalid
	}
	if err := p.guardText(p.text); err != nil {
		return err
	}
	text := p.text
	if enc != nil {
		text = p.query.escape(text, enc)
	}
	from, err := p.libraryBase(base)
	if err != nil {
		return ErrInvalid
	}
	u, err := p.lib.BasicParser(string(text), from, nil, url.NoState)
	if err != nil {
		return ErrInvalid
	}
	dst.buf = append(dst.buf[:0], u.Href(true)...)
	dst.index()
	dst.flags = p.rules | hasPercent
	return nil
}

// libraryBase returns base as the library knows it; pages have many links, so
// the last one is kept.
func (p *Parser) libraryBase(base *URL) (*url.Url, error) {
	if base == nil {
		return nil, nil
	}
	if p.base == nil || !bytes.Equal(p.baseText, base.buf) {
		u, err := p.lib.Parse(string(base.buf))
		if err != nil {
			return nil, err
		}
		p.base, p.baseText = u, append(p.baseText[:0], base.buf...)
	}
	return p.base, nil
}

// trim cuts C0 controls and spaces off both ends.
func trim(raw []byte) []byte {
	for len(raw) > 0 && raw[0] <= ' ' {
		raw = raw[1:]
	}
	for len(raw) > 0 && raw[len(raw)-1] <= ' ' {
		raw = raw[:len(raw)-1]
	}
	return raw
}

// clean appends raw as the standard has it: trimmed, without tabs and line
// ends. Of the fragment only its '#' stays, which guards a space before it.
func clean(dst, raw []byte) []byte {
	for _, c := range trim(raw) {
		switch c {
		case '\t', '\n', '\r':
		case '#':
			return append(dst, c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// schemeOf returns the scheme that text starts with, nil if none.
func schemeOf(text []byte) []byte {
	if len(text) == 0 || text[0]|0x20 < 'a' || text[0]|0x20 > 'z' {
		return nil
	}
	for i, c := range text {
		if class[c]&notScheme != 0 {
			if c == ':' {
				return text[:i]
			}
			return nil
		}
	}
	return nil
}

func isHTTP(scheme []byte) bool {
	return bytes.EqualFold(scheme, []byte("http")) || bytes.EqualFold(scheme, []byte("https"))
}
