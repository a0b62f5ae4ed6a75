package fetch

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// guard refuses addresses that are not part of the public internet (IANA
// special-purpose registries, RFC 6890) unless a prefix allows them.
type guard struct{ allow []netip.Prefix }

// refused are the special-purpose blocks and what they are. For IPv6 only
// 2000::/3 is global unicast; the rest is refused as a whole.
var refused = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local (metadata services)"},
	{netip.MustParsePrefix("168.63.129.16/32"), "metadata service"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local NAT64"},
	{netip.MustParsePrefix("fc00::/7"), "unique local"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments (Teredo)"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour     = netip.MustParsePrefix("2002::/16")
)

// check says why a may not be dialled, nil if it may. An address that carries
// an IPv4 address inside (mapped, NAT64, 6to4) is judged as that address.
func (g *guard) check(a netip.Addr) error {
	a = a.Unmap()
	if g.allowed(a) {
		return nil
	}
	if inner, ok := embedded(a); ok {
		if g.allowed(inner) || reason(inner) == "" {
			return nil
		}
		return refusal(a, reason(inner)+" "+inner.String()+" inside")
	}
	if what := reason(a); what != "" {
		return refusal(a, what)
	}
	return nil
}

func refusal(a netip.Addr, what string) error {
	bits := 32
	if a.Is6() {
		bits = 128
	}
	return fmt.Errorf("address %s is refused: %s; --allow-net %s/%d would permit it",
		a, what, a.WithZone(""), bits)
}

func (g *guard) allowed(a netip.Addr) bool {
	a = a.WithZone("") // a prefix has no address with a zone
	for _, p := range g.allow {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// embedded takes the IPv4 address out of NAT64 (RFC 6052) and 6to4 (RFC 3056).
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return a, false
	}
	b, z := a.As16(), a.WithZone("")
	switch {
	case nat64.Contains(z):
		return v4(b[12:16]), true
	case sixToFour.Contains(z):
		return v4(b[2:6]), true
	}
	return a, false
}

func v4(b []byte) netip.Addr {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(b))
	return netip.AddrFrom4(a)
}

// reason names the special block a lies in, "" if it is public.
func reason(a netip.Addr) string {
	if a.Zone() != "" {
		return "zoned"
	}
	for i := range refused {
		if refused[i].prefix.Contains(a) {
			return refused[i].what
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return "not global unicast"
	}
	return ""
}
