package crawl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"seine/extract"
	"seine/frontier"
	"seine/frontier/canon"
)

// policy is the compiled form of the settings that decide which links become
// candidates and how urgent they are.
type policy struct {
	settings *frontier.Settings
	allow    []*regexp.Regexp
	deny     []*regexp.Regexp
	classify func(url []byte) (class uint8, ok bool) // by the crawl's rules
	skipExt  map[string]bool
	follow   extract.Kinds
}

// defaultClass is the class of a link that no priority rule names; redirect
// targets go before it.
const defaultClass = 1

// refusal says why a link did not become a candidate.
type refusal uint8

const (
	accepted refusal = iota
	refusedScope
	refusedDepth
	refusedRule
	refusedExtension
	refusedNofollow
	refusedInvalid
	refusedScheme
	refusedGuard
	refusedOver
	refusals
)

// refusalNames are the values of the reason label.
var refusalNames = [refusals]string{"", "scope", "depth", "rule", "extension", "nofollow", "invalid", "scheme", "guard", "over"}

func newPolicy(s *frontier.Settings) (*policy, error) {
	p := &policy{settings: s, skipExt: make(map[string]bool, len(s.SkipExt))}
	var err error
	if p.allow, err = compileAll("allow", s.Allow); err != nil {
		return nil, err
	}
	if p.deny, err = compileAll("deny", s.Deny); err != nil {
		return nil, err
	}
	if p.classify, err = frontier.Classifier(s.Priority); err != nil {
		return nil, err
	}
	if p.follow, err = extract.ParseKinds(s.Follow); err != nil {
		return nil, err
	}
	for _, e := range s.SkipExt {
		p.skipExt[strings.ToLower(strings.TrimPrefix(e, "."))] = true
	}
	return p, nil
}

func compileAll(name string, exprs []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for _, e := range exprs {
		re, err := regexp.Compile(e)
		if err != nil {
			return nil, fmt.Errorf("crawl: %s rule %q: %w", name, e, err)
		}
		out = append(out, re)
	}
	return out, nil
}

// source is the page a link stands on, as scope sees it.
type source struct {
	site string
	host []byte
}

// inScope reports whether a link to u of site belongs to the crawl when found
// on a page of src.
func (p *policy) inScope(src source, u *canon.URL, site string) bool {
	switch p.settings.Scope {
	case "any":
		return true
	case "host":
		return bytes.Equal(u.Host(), src.host)
	default:
		return site == src.site
	}
}

// filter applies depth and the rules that read the URL itself.
func (p *policy) filter(u *canon.URL, depth uint32) refusal {
	if p.settings.MaxDepth > 0 && depth > uint32(p.settings.MaxDepth) {
		return refusedDepth
	}
	if len(p.skipExt) > 0 && p.skipExt[extension(u)] {
		return refusedExtension
	}
	if p.denies(u) || len(p.allow) > 0 && !matchesAny(p.allow, u) {
		return refusedRule
	}
	return accepted
}

// denies reports whether a rule of the crawl forbids u.
func (p *policy) denies(u *canon.URL) bool { return matchesAny(p.deny, u) }

func matchesAny(rules []*regexp.Regexp, u *canon.URL) bool {
	for _, re := range rules {
		if re.Match(u.Fetch()) {
			return true
		}
	}
	return false
}

// class is the priority of a link by the first rule that matches.
func (p *policy) class(u *canon.URL) uint8 {
	if class, ok := p.classify(u.Fetch()); ok {
		return class
	}
	return defaultClass
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

// rule is the first site rule of the crawl that matches, or what the shard
// keeps for this very site; nil when nothing overrides.
func (p *policy) rule(site, override string) *frontier.SiteRule {
	if override != "" {
		r := new(frontier.SiteRule)
		if json.Unmarshal([]byte(override), r) == nil {
			return r
		}
	}
	return p.settings.Rule(site)
}
