package crawl

import (
	"encoding/json"
	"errors"
	"sync"

	"seine/extract"
	"seine/frontier"
	"seine/frontier/canon"
)

// policy is the compiled form of the settings that decide which links become
// candidates and how urgent they are.
type policy struct {
	settings *frontier.Settings
	scope    *frontier.Scope
	classify func(url []byte) (class uint8, ok bool)        // by the crawl's rules
	recrawl  func(url []byte) (r frontier.Recrawl, ok bool) // nil: nothing is fetched again
	looks    bool                                           // the contents of pages are compared
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
	refusedHandler
	refusedDuplicate
	refusedTooLong
	refusals
)

// refusalNames are the values of the reason label.
var refusalNames [refusals]string = frontier.ReasonNames

func newPolicy(s *frontier.Settings) (*policy, error) {
	pol := &policy{settings: s, looks: s.DuplicatesRule() != frontier.DuplicatesOff}
	var err error
	if pol.scope, err = frontier.NewScope(s); err != nil {
		return nil, err
	}
	if pol.classify, err = frontier.Classifier(s.Priority); err != nil {
		return nil, err
	}
	if pol.recrawl, err = frontier.Recrawler(s.Recrawl); err != nil {
		return nil, err
	}
	if pol.follow, err = extract.ParseKinds(s.Follow); err != nil {
		return nil, err
	}
	return pol, nil
}

// source is the page a link stands on, as scope sees it.
type source struct {
	site string
	host []byte
}

// inScope reports whether a link to u of site belongs to the crawl when found
// on a page of src.
func (pol *policy) inScope(src source, u *canon.URL, site string) bool {
	return pol.scope.Within(src.site, src.host, u, site)
}

// filter applies depth and the rules that read the URL itself.
func (pol *policy) filter(u *canon.URL, depth uint32) refusal {
	switch pol.scope.Judge(u, depth).Reason {
	case "":
		return accepted
	case frontier.ReasonTooLong:
		return refusedTooLong
	case frontier.ReasonDepth:
		return refusedDepth
	case frontier.ReasonExtension:
		return refusedExtension
	default:
		return refusedRule
	}
}

// bars says why u is not followed though it is in scope wherever it leads: it is
// too long, or a rule of the crawl forbids it.
func (pol *policy) bars(u *canon.URL) refusal {
	if pol.scope.TooLong(u) {
		return refusedTooLong
	}
	if _, denied := pol.scope.Denies(u); denied {
		return refusedRule
	}
	return accepted
}

// refusalOf is why a text is not followed that canon refuses.
func refusalOf(err error) refusal {
	switch {
	case errors.Is(err, canon.ErrNotCrawlable):
		return refusedScheme
	case errors.Is(err, canon.ErrInvalid):
		return refusedInvalid
	case errors.Is(err, canon.ErrTooLong):
		return refusedTooLong
	}
	return refusedGuard
}

// class is the priority of a link by the first rule that matches.
func (pol *policy) class(u *canon.URL) uint8 {
	if class, ok := pol.classify(u.Fetch()); ok {
		return class
	}
	return defaultClass
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
