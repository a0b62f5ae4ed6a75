package canon

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/net/publicsuffix"
)

// SuffixVersion names the public suffix list that this program was built with.
// Sites depend on it, so it is part of a crawl's layout.
func SuffixVersion() string { return publicsuffix.List.String() }

// LimitBy is the rule that maps a host to its site.
type LimitBy string

// The site rules.
const (
	ByDomain LimitBy = "site" // registrable domain by the public suffix list
	ByHost   LimitBy = "host"
)

// Validate reports an unknown rule.
func (r LimitBy) Validate() error {
	if r != ByDomain && r != ByHost {
		return fmt.Errorf("canon: site rule %q is unknown: use %q or %q", string(r), ByDomain, ByHost)
	}
	return nil
}

// SiteOf returns the site of a host (without port): in lower case, without the
// dot that may end a name. An IP literal is its own site, and so is a name of
// one label and a public suffix itself ("github.io", "co.uk").
func (r LimitBy) SiteOf(host string) string {
	host = strings.ToLower(host)
	if name := strings.TrimRight(host, "."); name != "" {
		host = name
	}
	if r == ByHost || strings.HasPrefix(host, "[") {
		return host
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	if s, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return s
	}
	return host
}

// Site is a site and its hash.
type Site struct {
	Name string
	Hash uint64 // XXH64 of Name: Fingerprint.Site
}

// siteSlots is the size of the cache of Sites: one page links to few sites. Each
// of thousands of workers has one.
const siteSlots = 32

// Sites maps hosts to sites and remembers the last ones, since the suffix list
// costs half a microsecond a look. It belongs to one goroutine.
type Sites struct {
	rule  LimitBy
	last  int
	slots []siteSlot // a power of two
}

type siteSlot struct {
	host []byte
	site Site
}

// NewSites returns a cache for rule, of some 2 KB.
func NewSites(rule LimitBy) *Sites { return &Sites{rule: rule, slots: make([]siteSlot, siteSlots)} }

// NewFewSites is NewSites for one that meets one or two hosts at a time, of some
// 200 bytes.
func NewFewSites(rule LimitBy) *Sites { return &Sites{rule: rule, slots: make([]siteSlot, 4)} }

// Of returns the site of host, as URL.Host has it. It allocates only when the
// host is new to the cache.
func (s *Sites) Of(host []byte) Site {
	if e := &s.slots[s.last]; string(e.host) == string(host) && e.site.Name != "" {
		return e.site
	}
	s.last = int(xxhash.Sum64(host) & uint64(len(s.slots)-1))
	e := &s.slots[s.last]
	if string(e.host) != string(host) || e.site.Name == "" {
		name := s.rule.SiteOf(string(host))
		e.host = append(e.host[:0], host...)
		e.site = Site{Name: name, Hash: xxhash.Sum64String(name)}
	}
	return e.site
}

// Fingerprint returns the site of u and its identity.
func (s *Sites) Fingerprint(u *URL) (Site, Fingerprint) {
	site := s.Of(u.Host())
	return site, Fingerprint{Site: site.Hash, Key: xxhash.Sum64(u.Key())}
}

// IsSuffix reports whether a domain, in lower case, is a public suffix, under which
// others than its owner have names: one of the list, or a name of one label.
func IsSuffix(domain string) bool {
	suffix, _ := publicsuffix.PublicSuffix(domain)
	return suffix == domain
}
