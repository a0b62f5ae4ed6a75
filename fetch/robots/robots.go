// Package robots reads robots.txt files and answers whether a path may be
// fetched (RFC 9309, with Google's reading where the RFC leaves room).
//
// Parse keeps only what concerns one agent: the rules of all groups that name
// it, or else of all groups for "*", its crawl delay, and the sitemaps, which
// belong to everybody. The rules are compiled and sorted so that the first one
// that matches decides. Rules do not change after that; they may be used by
// many goroutines, and travel in a compact form (Append, Load), so that a
// fleet fetches and parses a file once.
//
// What Google's parser does and this one too: lines end at LF, CR or CRLF; a
// byte order mark is skipped; blank, unknown and misplaced lines (Crawl-delay,
// Sitemap, Host) end no group; rules before any group are ignored; keys match
// by their beginning, in any case, with common typos; a colon may be missing;
// the agent is the leading token of a value; "Allow: /x/index.html" also allows
// /x/; the longest pattern wins and Allow wins a tie.
//
// Beyond it, digits belong to tokens, so that MJ12bot is not MJ07; a file in
// UTF-16 is read; and escapes are equal to what they stand for (RFC 9309,
// 2.2.2): %7e and ~, ツ and %E3%83%84, "a b" and a%20b, %24 and a $ that ends
// nothing; an escaped star is a star and no wildcard; in a query that a rule
// spells out, also %3A %2F %3F %40 and the characters they stand for. Elsewhere
// %2F is not a slash.
//
// No pattern takes more than linear time to match.
package robots

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/text/encoding/unicode"
)

const (
	// MaxBytes is how much of a file is read; the line it cuts is dropped. RFC
	// 9309 asks for 500 KiB at least.
	MaxBytes = 1 << 20
	// maxLine is how much of a line is read, as Google does.
	maxLine = 8*2083 - 1
	// maxDelay bounds what is taken for a crawl delay at all.
	maxDelay = 24 * time.Hour
)

// Rules is what a robots.txt says to one agent. The zero value, no file,
// allows everything. It is safe for concurrent use.
type Rules struct {
	rules    []rule
	group    string // agent its group named, "*", or ""
	delay    time.Duration
	sitemaps []string
	usage    []usage // what is said of what may be done with pages
	tdm      bool    // the TDM file of the origin was read
}

// Token returns the product token of a User-Agent, "" if it has none: the
// leading letters, digits, "_" and "-" of the first product. One that calls
// itself Mozilla, as browsers do, and then "compatible;", names what follows.
func Token(agent string) string {
	if first := token(agent); strings.EqualFold(first, "Mozilla") {
		lower := strings.ToLower(agent)
		if i := strings.Index(lower, "compatible;"); i >= 0 {
			if t := token(strings.TrimLeft(agent[i+len("compatible;"):], " \t")); t != "" {
				return t
			}
		}
		return first
	}
	return token(agent)
}

// token is the token that s begins with. Files name agents by it. RFC 9309 has
// no digits in it, but names of crawlers do.
func token(s string) string {
	i := 0
	for i < len(s) && isTokenByte(s[i]) {
		i++
	}
	return s[:i]
}

func isTokenByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// Parse reads a robots.txt for the product token of agent. It never fails:
// what is no robots.txt has no rules. Strings are copies; body may be reused.
func Parse(body []byte, agent string) *Rules {
	p := parser{agent: Token(agent)}
	cut := len(body) >= MaxBytes
	if cut {
		body = body[:MaxBytes]
	}
	body = trimMark(fromUTF16(body))
	for line := 1; len(body) > 0; line++ {
		end := bytes.IndexAny(body, "\r\n")
		if end < 0 && cut {
			break
		}
		text := body
		if end < 0 {
			body = nil
		} else {
			text = body[:end]
			if body[end] == '\r' && end+1 < len(body) && body[end+1] == '\n' {
				end++
			}
			body = body[end+1:]
		}
		p.line(text, line)
	}
	return p.rules()
}

// fromUTF16 returns a file in UTF-16 as UTF-8, and any other as it is. Without a
// byte order mark the zero beside its first character shows it.
func fromUTF16(body []byte) []byte {
	if len(body) < 2 {
		return body
	}
	order := unicode.LittleEndian
	switch a, b := body[0], body[1]; {
	case a == 0xff && b == 0xfe, a != 0 && a < 0x80 && b == 0:
	case a == 0xfe && b == 0xff, a == 0 && b != 0 && b < 0x80:
		order = unicode.BigEndian
	default:
		return body
	}
	text, err := unicode.UTF16(order, unicode.UseBOM).NewDecoder().Bytes(body)
	if err != nil {
		return body
	}
	return text
}

// trimMark drops a UTF-8 byte order mark, or what there is of one.
func trimMark(body []byte) []byte {
	for _, c := range []byte{0xef, 0xbb, 0xbf} {
		if len(body) == 0 || body[0] != c {
			break
		}
		body = body[1:]
	}
	return body
}

// scope collects what groups for one agent say.
type scope struct {
	open  bool // the current group is for it
	seen  bool // some group was
	rules []rule
	usage []usage
	delay time.Duration
}

type parser struct {
	agent    string
	own, all scope // groups that name agent; groups for "*"
	grouped  bool  // a group began
	ruled    bool  // the current group has a rule, so the next agent begins another
	sitemaps []string
	licenses []usage // outside of groups
}

// line reads one line.
func (p *parser) line(text []byte, number int) {
	key, value := split(text[:min(len(text), maxLine)])
	if len(key) == 0 {
		return
	}
	switch keyOf(key) {
	case keyAgent:
		p.agentLine(value)
	case keyAllow:
		p.rule(value, true, number)
		// Google takes an index page for its directory.
		if i := bytes.LastIndexByte(value, '/'); i >= 0 && bytes.HasPrefix(value[i:], []byte("/index.htm")) {
			p.rule(append(bytes.Clone(value[:i+1]), '$'), true, number)
		}
	case keyDisallow:
		p.rule(value, false, number)
	case keySitemap:
		if len(value) > 0 {
			p.sitemaps = append(p.sitemaps, string(value))
		}
	case keyDelay:
		if s := p.current(); s != nil {
			s.delay = max(s.delay, delayOf(value))
		}
	case keyUnknown:
		if label := labelOf(key); label >= 0 {
			p.usageLine(label, value, number)
		}
	}
}

// usageLine adds a line that says what may be done with pages. A Content-Usage is a rule of
// its group, and so is a Content-Signal; a License stands in a group or outside.
func (p *parser) usageLine(label int, value []byte, number int) {
	s, u := p.current(), newUsage(label, value, number)
	switch {
	case label == labelLicense && !p.grouped:
		p.licenses = append(p.licenses, u)
	case s != nil && len(s.usage) < maxUsage:
		s.usage = append(s.usage, u)
	}
	p.ruled = p.ruled || label != labelLicense
}

// split finds key and value of a line, without comment and blanks. Without a
// colon it takes two words for them.
func split(text []byte) (key, value []byte) {
	if i := bytes.IndexAny(text, "#\x00"); i >= 0 {
		text = text[:i]
	}
	text = trim(text)
	sep := bytes.IndexByte(text, ':')
	if sep < 0 {
		if sep = bytes.IndexAny(text, " \t"); sep < 0 {
			return nil, nil
		}
		if bytes.ContainsAny(trim(text[sep:]), " \t") {
			return nil, nil
		}
	}
	return trim(text[:sep]), trim(text[sep+1:])
}

func trim(b []byte) []byte { return bytes.Trim(b, " \t\v\f\r\n") }

type lineKey uint8

const (
	keyUnknown lineKey = iota
	keyAgent
	keyAllow
	keyDisallow
	keySitemap
	keyDelay
)

// keyOf knows a key by its beginning.
func keyOf(key []byte) lineKey {
	has := func(names ...string) bool {
		for _, n := range names {
			if len(key) >= len(n) && strings.EqualFold(string(key[:len(n)]), n) {
				return true
			}
		}
		return false
	}
	switch key[0] | 0x20 {
	case 'u':
		if has("user-agent", "useragent", "user agent") {
			return keyAgent
		}
	case 'a':
		if has("allow") {
			return keyAllow
		}
	case 'd':
		if has("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw") {
			return keyDisallow
		}
	case 's':
		if has("sitemap", "site-map") {
			return keySitemap
		}
	case 'c':
		if has("crawl-delay", "crawldelay", "crawl delay") {
			return keyDelay
		}
	}
	return keyUnknown
}

// agentLine opens a group, or adds an agent to the one just opened.
func (p *parser) agentLine(value []byte) {
	p.grouped = true
	if p.ruled {
		p.own.open, p.all.open, p.ruled = false, false, false
	}
	if len(value) > 0 && value[0] == '*' && (len(value) == 1 || bytes.IndexByte([]byte(" \t\v\f"), value[1]) >= 0) {
		p.all.open, p.all.seen = true, true
		return
	}
	if token := token(string(value)); token != "" && strings.EqualFold(token, p.agent) {
		p.own.open, p.own.seen = true, true
	}
}

// current is where what a line says belongs, nil if it is not for us.
func (p *parser) current() *scope {
	switch {
	case p.own.open:
		return &p.own
	case p.all.open:
		return &p.all
	}
	return nil
}

// rule adds one pattern. Empty ones say nothing but count as rules.
func (p *parser) rule(pattern []byte, allow bool, number int) {
	p.ruled = true
	if s := p.current(); s != nil && len(pattern) > 0 {
		s.rules = append(s.rules, compile(pattern, allow, number))
	}
}

// delayOf reads a number of seconds; what is none is 0.
func delayOf(value []byte) time.Duration {
	if i := bytes.IndexAny(value, " \t"); i >= 0 {
		value = value[:i]
	}
	s, err := strconv.ParseFloat(string(value), 64)
	if err != nil || !(s > 0) || math.IsInf(s, 0) {
		return 0
	}
	if s >= maxDelay.Seconds() {
		return maxDelay
	}
	return time.Duration(s * float64(time.Second))
}

// rules chooses the groups that count and puts their rules in order.
func (p *parser) rules() *Rules {
	r := &Rules{sitemaps: p.sitemaps}
	var lines []usage
	switch {
	case p.own.seen:
		r.group, r.rules, r.delay, lines = strings.ToLower(p.agent), sorted(p.own.rules), p.own.delay, p.own.usage
	case p.all.seen:
		r.group, r.rules, r.delay, lines = "*", sorted(p.all.rules), p.all.delay, p.all.usage
	}
	r.usage = within(append(lines, p.licenses...))
	return r
}

// Delay is the crawl delay asked for, 0 if none; at most a day.
func (r *Rules) Delay() time.Duration { return r.delay }

// Sitemaps are the sitemap lines of the file as written; do not change them.
func (r *Rules) Sitemaps() []string { return r.sitemaps }

// Len is the number of rules for our agent.
func (r *Rules) Len() int { return len(r.rules) }

// Bytes is about how much memory r takes: up to ten times the file, for a file of
// nothing but short rules.
func (r *Rules) Bytes() int {
	n := int(unsafe.Sizeof(*r)) + len(r.group)
	for i := range r.rules {
		n += int(unsafe.Sizeof(r.rules[i])) + cap(r.rules[i].pattern)
	}
	for _, s := range r.sitemaps {
		n += int(unsafe.Sizeof(s)) + len(s)
	}
	for i := range r.usage {
		n += int(unsafe.Sizeof(r.usage[i])) + int(unsafe.Sizeof(rule{})) + cap(r.usage[i].rule().pattern) + len(r.usage[i].value)
	}
	return n
}
