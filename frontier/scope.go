package frontier

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"seine/frontier/canon"
)

// Scope is the compiled form of the settings that decide which links are followed.
// It is safe for concurrent use.
type Scope struct {
	settings *Settings
	allow    []*regexp.Regexp
	deny     []*regexp.Regexp
	skipExt  map[string]bool
}

// Ruling is what a Scope says of a link.
type Ruling struct {
	Reason string // why it is not followed, "" = it is
	Rule   string // the expression of allow or deny, or the extension, that decides; "" with ReasonRule: none of allow matches
}

// NewScope compiles the rules of settings, which must not change afterwards.
func NewScope(s *Settings) (*Scope, error) {
	sc := &Scope{settings: s, skipExt: make(map[string]bool, len(s.SkipExt))}
	var err error
	if sc.allow, err = compileAll("allow", s.Allow); err != nil {
		return nil, err
	}
	if sc.deny, err = compileAll("deny", s.Deny); err != nil {
		return nil, err
	}
	for _, e := range s.SkipExt {
		sc.skipExt[strings.ToLower(strings.TrimPrefix(e, "."))] = true
	}
	return sc, nil
}

func compileAll(name string, exprs []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for _, e := range exprs {
		re, err := regexp.Compile(e)
		if err != nil {
			return nil, fmt.Errorf("frontier: settings: %s rule %q: %w", name, e, err)
		}
		out = append(out, re)
	}
	return out, nil
}

// Within reports whether a link to u of site, found on a page of a host and its
// site, belongs to the crawl.
func (sc *Scope) Within(fromSite string, fromHost []byte, u *canon.URL, site string) bool {
	switch sc.settings.Scope {
	case "any":
		return true
	case "host":
		return bytes.Equal(u.Host(), fromHost)
	default:
		return site == fromSite
	}
}

// RuleFor applies length, depth and the rules that read the URL itself.
func (sc *Scope) RuleFor(u *canon.URL, depth uint32) Ruling {
	if sc.TooLong(u) {
		return Ruling{Reason: ReasonTooLong}
	}
	if sc.settings.MaxDepth > 0 && depth > uint32(sc.settings.MaxDepth) {
		return Ruling{Reason: ReasonDepth}
	}
	if len(sc.skipExt) > 0 {
		if e := extension(u); sc.skipExt[e] {
			return Ruling{ReasonExtension, e}
		}
	}
	if rule, ok := sc.Denies(u); ok {
		return Ruling{ReasonRule, rule}
	}
	if _, ok := match(sc.allow, u); !ok && len(sc.allow) > 0 {
		return Ruling{Reason: ReasonRule}
	}
	return Ruling{}
}

// TooLong reports whether u is longer than the crawl takes.
func (sc *Scope) TooLong(u *canon.URL) bool { return len(u.Fetch()) > sc.settings.LongestURL() }

// Denies reports whether a rule of the crawl forbids u, and which.
func (sc *Scope) Denies(u *canon.URL) (rule string, ok bool) { return match(sc.deny, u) }

// match finds the first of some rules that matches.
func match(rules []*regexp.Regexp, u *canon.URL) (rule string, ok bool) {
	for _, re := range rules {
		if re.Match(u.Fetch()) {
			return re.String(), true
		}
	}
	return "", false
}

// extension is the lower-case file extension of the path, without dot.
func extension(u *canon.URL) string {
	path := u.Path()
	name := path[bytes.LastIndexByte(path, '/')+1:]
	dot := bytes.LastIndexByte(name, '.')
	if dot < 0 || len(name)-dot > 12 {
		return ""
	}
	return string(bytes.ToLower(name[dot+1:]))
}
