package canon

import (
	"net/netip"

	"golang.org/x/net/publicsuffix"
)

// LimitBy is the rule that maps a host to its site.
type LimitBy string

// The site rules.
const (
	ByDomain LimitBy = "site" // registrable domain by the public suffix list
	ByHost   LimitBy = "host"
)

// SiteOf returns the site of a host (without port).
func (r LimitBy) SiteOf(host string) string {
	if r == ByHost {
		return host
	}
	if len(host) > 0 && host[0] == '[' {
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
