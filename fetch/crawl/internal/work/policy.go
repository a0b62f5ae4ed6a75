package work

import (
	"encoding/json"
	"errors"
	"sync"

	"seine/extract"
	"seine/extract/preference"
	"seine/frontier"
	"seine/frontier/canon"
)

// Policy is the compiled form of the settings that decide which links become
// candidates and how urgent they are.
type Policy struct {
	Settings *frontier.Settings
	scope    *frontier.Scope
	classify func(url []byte) (class uint8, ok bool)                // by the crawl's rules
	recrawl  func(url []byte) (r frontier.RecrawlInterval, ok bool) // nil: nothing is recrawled
	looks    bool                                                   // the contents of pages are compared
	follow   extract.Kinds
	purpose  preference.Purpose // what pages are wanted for, as far as sites may refuse it
	scanners sync.Pool          // of *extract.Page, made by these rules
}

// defaultClass is the class of a link that no priority rule names; redirect
// targets go before it.
const defaultClass = 1

// Refusal says why a link did not become a candidate.
type Refusal uint8

const (
	Accepted Refusal = iota
	RefusedScope
	RefusedDepth
	RefusedRule
	RefusedExtension
	RefusedNofollow
	RefusedInvalid
	RefusedScheme
	RefusedGuard
	RefusedOver
	RefusedForeign
	RefusedHandler
	RefusedDuplicate
	RefusedTooLong
	RefusedRequest
	Refusals
)

// RefusalNames are the values of the reason label.
var RefusalNames [Refusals]string = frontier.ReasonNames

// NewPolicy compiles settings, whose rules it checks.
func NewPolicy(s *frontier.Settings) (*Policy, error) {
	pol := &Policy{Settings: s, looks: s.DuplicatesRule() != frontier.DuplicatesOff}
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
	if pol.purpose, err = preference.ParsePurpose(s.Purpose); err != nil {
		return nil, err
	}
	if pol.follow, err = extract.ParseKinds(s.Follow); err != nil {
		return nil, err
	}
	return pol, nil
}

// Refuses is why a page may not even be asked for, of which a robots.txt said so much: ""
// where it may.
func (pol *Policy) Refuses(said *preference.Set) string {
	return said.Why(said.Refused(pol.purpose))
}

// Source is the page a link is on, as scope sees it.
type Source struct {
	site string
	host []byte
}

// InScope reports whether a link to u of site belongs to the crawl when found
// on a page of src.
func (pol *Policy) InScope(src Source, u *canon.URL, site string) bool {
	return pol.scope.Within(src.site, src.host, u, site)
}

// Filter applies depth and the rules that read the URL itself.
func (pol *Policy) Filter(u *canon.URL, depth uint32) Refusal {
	switch pol.scope.RuleFor(u, depth).Reason {
	case "":
		return Accepted
	case frontier.ReasonTooLong:
		return RefusedTooLong
	case frontier.ReasonDepth:
		return RefusedDepth
	case frontier.ReasonExtension:
		return RefusedExtension
	default:
		return RefusedRule
	}
}

// Denies is why u is not followed though it is in scope wherever it leads: it is
// too long, or a rule of the crawl forbids it.
func (pol *Policy) Denies(u *canon.URL) Refusal {
	if pol.scope.TooLong(u) {
		return RefusedTooLong
	}
	if _, denied := pol.scope.Denies(u); denied {
		return RefusedRule
	}
	return Accepted
}

// RefusalOf is why a text is not followed that canon refuses.
func RefusalOf(err error) Refusal {
	switch {
	case errors.Is(err, canon.ErrNotCrawlable):
		return RefusedScheme
	case errors.Is(err, canon.ErrInvalid):
		return RefusedInvalid
	case errors.Is(err, canon.ErrTooLong):
		return RefusedTooLong
	}
	return RefusedGuard
}

// Class is the priority of a link by the first rule that matches.
func (pol *Policy) Class(u *canon.URL) uint8 {
	if class, ok := pol.classify(u.Fetch()); ok {
		return class
	}
	return defaultClass
}

// SiteRule is the first site rule of the crawl that matches, or what the shard
// keeps for this very site; nil when nothing overrides.
func (pol *Policy) SiteRule(site, override string) *frontier.SiteRule {
	if override != "" {
		r := new(frontier.SiteRule)
		if json.Unmarshal([]byte(override), r) == nil {
			return r
		}
	}
	return pol.Settings.Rule(site)
}
