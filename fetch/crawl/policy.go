package crawl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

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
	scanners sync.Pool // of *extract.Page, made by these rules
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
	refusedForeign
	refusals
)

// refusalNames are the values of the reason label.
var refusalNames = [refusals]string{"", "scope", "depth", "rule", "extension", "nofollow", "invalid", "scheme", "guard", "over", "foreign"}

func newPolicy(s *frontier.Settings) (*policy, error) {
	pol := &policy{settings: s, skipExt: make(map[string]bool, len(s.SkipExt))}
	var err error
	if pol.allow, err = compileAll("allow", s.Allow); err != nil {
		return nil, err
	}
	if pol.deny, err = compileAll("deny", s.Deny); err != nil {
		return nil, err
	}
	if pol.classify, err = frontier.Classifier(s.Priority); err != nil {
		return nil, err
	}
	if pol.follow, err = extract.ParseKinds(s.Follow); err != nil {
		return nil, err
	}
	for _, e := range s.SkipExt {
		pol.skipExt[strings.ToLower(strings.TrimPrefix(e, "."))] = true
	}
	return pol, nil
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
func (pol *policy) inScope(src source, u *canon.URL, site string) bool {
	switch pol.settings.Scope {
	case "any":
		return true
	case "host":
		return bytes.Equal(u.Host(), src.host)
	default:
		return site == src.site
	}
}

// filter applies depth and the rules that read the URL itself.
func (pol *policy) filter(u *canon.URL, depth uint32) refusal {
	if pol.settings.MaxDepth > 0 && depth > uint32(pol.settings.MaxDepth) {
		return refusedDepth
	}
	if len(pol.skipExt) > 0 && pol.skipExt[extension(u)] {
		return refusedExtension
	}
	if pol.denies(u) || len(pol.allow) > 0 && !matchesAny(pol.allow, u) {
		return refusedRule
	}
	return accepted
}

// denies reports whether a rule of the crawl forbids u.
func (pol *policy) denies(u *canon.URL) bool { return matchesAny(pol.deny, u) }

func matchesAny(rules []*regexp.Regexp, u *canon.URL) bool {
	for _, re := range rules {
		if re.Match(u.Fetch()) {
			return true
		}
	}
	return false
}

// class is the priority of a link by the first rule that matches.
func (pol *policy) class(u *canon.URL) uint8 {
	if class, ok := pol.classify(u.Fetch()); ok {
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
func (pol *policy) rule(site, override string) *frontier.SiteRule {
	if override != "" {
		r := new(frontier.SiteRule)
		if json.Unmarshal([]byte(override), r) == nil {
			return r
		}
	}
	return pol.settings.Rule(site)
}
