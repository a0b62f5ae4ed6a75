package canon

import (
	"errors"
	"fmt"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/idna"
	"golang.org/x/text/encoding"
)

// The defaults of Config. The real web stays far below them; what lies above
// is nearly always a program that links to itself without end. The length is the
// most that a crawl may allow; the crawl's own bound is a setting of it.
const (
	DefaultMaxLength   = 64 << 10
	DefaultMaxSegments = 32
	DefaultMaxRepeats  = 2
	DefaultMaxArgs     = 32
)

// Config of a Parser; zero fields are the documented defaults, negative ones
// switch a guard off. The guards keep a crawl out of endless webs; each has an
// error of its own, so that callers can count what they refuse by name.
type Config struct {
	// MaxLength bounds the fetch form in bytes; 0 = 65,536. ErrTooLong.
	MaxLength int
	// MaxSegments bounds the segments of the path, "/a/b" has two; 0 = 32.
	// ErrTooDeep.
	MaxSegments int
	// MaxRepeats bounds how often one segment may stand in a path; 0 = 2, which
	// refuses "/a/b/a/b/a/b". Empty segments and those of digits alone (dates,
	// numbered directories) do not count. ErrRepeats.
	MaxRepeats int
	// MaxArgs bounds the parameters of the query; 0 = 32. ErrTooManyArgs.
	MaxArgs int

	StripParams bool // key rule: drop tracking parameters and session ids
	SortQuery   bool // key rule: sort the query by name, equal names as they stood
}

// Validate reports all faults of c.
func (c Config) Validate() error {
	var errs []error
	if c.MaxLength > 0 && c.MaxLength < len("http://a/") {
		errs = append(errs, fmt.Errorf("canon: MaxLength %d is shorter than any URL: use at least %d, or a negative number for no bound",
			c.MaxLength, len("http://a/")))
	}
	if c.MaxLength > 1<<20 {
		errs = append(errs, fmt.Errorf("canon: MaxLength %d is above %d", c.MaxLength, 1<<20))
	}
	return errors.Join(errs...)
}

// withDefaults fills in zero fields.
func (c Config) withDefaults() Config {
	for _, f := range []struct {
		field *int
		value int
	}{
		{&c.MaxLength, DefaultMaxLength},
		{&c.MaxSegments, DefaultMaxSegments},
		{&c.MaxRepeats, DefaultMaxRepeats},
		{&c.MaxArgs, DefaultMaxArgs},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return c
}

// Parser turns text into URLs. It belongs to one goroutine.
type Parser struct {
	cfg   Config
	rules flag // the opt-in key rules, as handed to each URL

	seen   sketch // of the path up to seenTo, where that is not 0
	seenTo int

	// For what the fast path leaves over; see slow.go.
	lib      url.Parser
	idna     *idna.Profile
	text     []byte // the link, cleaned
	name     string // the host that stands behind the library's placeholder
	baseText []byte // the base last handed to the library, and
	base     *url.Url
	query    queryEncoder
}

// NewParser returns a parser. Costs some microseconds; keep it.
func NewParser(cfg Config) *Parser {
	p := &Parser{cfg: cfg.withDefaults()}
	if cfg.StripParams {
		p.rules |= stripParams
	}
	if cfg.SortQuery {
		p.rules |= sortQuery
	}
	p.initLibrary()
	return p
}

// Parse parses raw as an absolute URL into dst.
func (p *Parser) Parse(dst *URL, raw []byte) error { return p.Resolve(dst, nil, raw, nil) }

// Resolve parses raw, a link as its attribute holds it after entities were
// decoded, against base (nil: raw must be absolute) into dst. Bytes that are no
// UTF-8 count as U+FFFD. enc is the page's encoding, in which browsers escape
// what is not ASCII in a query; nil for UTF-8 and UTF-16.
//
// dst may be base, whose old value is then lost; raw must not be memory of dst.
// After an error dst is empty. Plain links cost tens of nanoseconds and no
// allocation once dst has grown; others microseconds.
func (p *Parser) Resolve(dst, base *URL, raw []byte, enc encoding.Encoding) error {
	if base != nil && len(base.buf) == 0 {
		base = nil
	}
	var err error
	p.seenTo = 0
	if !p.fast(dst, base, raw, enc != nil) {
		err = p.slow(dst, base, raw, enc)
	}
	if err == nil {
		err = p.guard(dst)
	}
	if err != nil {
		dst.reset()
	}
	return err
}
