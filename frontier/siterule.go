package frontier

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// SiteRule overrides settings for the sites that match; the first match wins.
type SiteRule struct {
	Match     string            `json:"match"` // host, or *.domain
	Delay     time.Duration     `json:"delay,omitempty"`
	PerSite   int               `json:"per_site,omitempty"`
	MaxPages  int64             `json:"max_pages,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Auth      string            `json:"auth,omitempty"`       // user:password, never logged
	TLSLegacy bool              `json:"tls_legacy,omitempty"` // key exchanges that only old servers need are offered
}

// Rule is the first rule for a site, nil when there is none.
func (s *Settings) Rule(site string) *SiteRule {
	for i := range s.Sites {
		if r := &s.Sites[i]; r.matches(site) {
			return r
		}
	}
	return nil
}

// DelayOf is the delay of a site by the settings alone: its rule's, or the
// crawl's.
func (s *Settings) DelayOf(site string) time.Duration {
	if r := s.Rule(site); r != nil && r.Delay > 0 {
		return r.Delay
	}
	return s.Delay
}

// CapOf is how many URLs the settings let a site have, 0 = any: its rule's, or
// the crawl's.
func (s *Settings) CapOf(site string) int64 {
	if r := s.Rule(site); r != nil && r.MaxPages > 0 {
		return r.MaxPages
	}
	return s.MaxPerSite
}

// Caps says whether any site is capped by the settings.
func (s *Settings) Caps() bool {
	return s.MaxPerSite > 0 || slices.ContainsFunc(s.Sites, func(r SiteRule) bool { return r.MaxPages > 0 })
}

// matches says whether the rule, for a name or *.domain, is for a site.
func (r *SiteRule) matches(site string) bool {
	domain, ok := strings.CutPrefix(r.Match, "*.")
	if !ok {
		return r.Match == site
	}
	return site == domain || strings.HasSuffix(site, "."+domain)
}

func (r *SiteRule) validate() error {
	host := strings.TrimPrefix(r.Match, "*.")
	switch {
	case host == "" || strings.ContainsAny(host, "*/: \t") && !strings.HasPrefix(host, "["):
		return fmt.Errorf("frontier: settings: sites: match is %q, must be a host or *.domain", r.Match)
	case r.Delay < 0 || r.PerSite < 0 || r.MaxPages < 0:
		return fmt.Errorf("frontier: settings: sites: %s: values must not be negative", r.Match)
	case r.Auth != "" && !strings.Contains(r.Auth, ":"):
		return fmt.Errorf("frontier: settings: sites: %s: auth must be user:password", r.Match)
	}
	for name, value := range r.Headers {
		if name == "" || strings.ContainsAny(name, " :\r\n") || strings.ContainsAny(value, "\r\n") {
			return fmt.Errorf("frontier: settings: sites: %s: header %q is not one line of name and value", r.Match, name)
		}
	}
	return nil
}
