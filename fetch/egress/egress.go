// Package egress chooses the addresses of this machine that connections leave from.
//
// The nouns: a List is what an operator names, addresses and networks. Its sources are
// what connections can be bound to. Each address of the list is one, and each address of a
// small network. A large network is one as a whole: each site has an address of its own in it.
// A Pair is what one site has: a Local of each family that the list has.
//
// A site chooses by rendezvous hashing (Thaler and Ravishankar, 1998): the source whose
// hash with the site's name is the highest. So the order of a list does not matter, all
// who have the same list choose the same, and a source that is lost moves only its own
// sites. Of each family one is chosen, for a host may have addresses of one only.
//
// A source of an address that this machine has no more rests for a while: its sites have
// another one until then. A crash loses nothing but that.
package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
)

// mostExpanded is how many addresses a network may have that are sources each.
const mostExpanded = 256

// mostSources is how many sources a list may have: each is compared for each request.
const mostSources = 4096

// rest is how long an address is not chosen after it was found lost.
const rest = 30 * time.Second

// Errors of a list.
var (
	ErrLacking = errors.New("this machine does not have the address")
	ErrRoute   = errors.New("this machine has no local route to the network")
	errLost    = errors.New("egress: this machine has lost all the addresses that requests are to leave from")
)

// source is what connections can be bound to.
type source struct {
	network  netip.Prefix // of one address, or more
	hash     uint64
	entry    int  // of the list
	freebind bool // of IPv6: only a route leads here, and the system binds it when asked to
	until    atomic.Int64
}

// List is addresses and networks, as Open found them. It is safe for any number of
// goroutines.
type List struct {
	sources [2][]*source // IPv4, IPv6
}

// Local is where a connection leaves from; the zero value leaves that to the system.
type Local struct {
	Addr   netip.Addr
	source *source
}

// Entry is the index of the list's entry that has it.
func (l Local) Entry() int { return l.source.entry }

// Lost has other sources chosen for a while: the address could not be bound.
func (l Local) Lost(now time.Time) { l.source.until.Store(now.Add(rest).UnixNano()) }

// Pair is where the connections of one site leave from, one of each family; the zero value
// leaves that to the system.
type Pair struct{ V4, V6 Local }

// IsBound reports whether anything is bound.
func (p *Pair) IsBound() bool { return p.V4.source != nil || p.V6.source != nil }

// To is where connections to an address leave from. It is false where nothing of its
// family is bound, and others are.
func (p *Pair) To(remote netip.Addr) (l Local, ok bool) {
	if l = p.V6; remote.Unmap().Is4() {
		l = p.V4
	}
	return l, l.source != nil || !p.IsBound()
}

// Has reports whether a connection that was bound to an address, the zero one for none,
// is as one of the pair would be.
func (p *Pair) Has(bound netip.Addr) bool {
	if !bound.IsValid() {
		return !p.IsBound()
	}
	return bound == p.V4.Addr || bound == p.V6.Addr
}

// Families are those that are bound, for people: "IPv4", "IPv6" or both.
func (p *Pair) Families() string {
	switch {
	case p.V6.source == nil:
		return "IPv4"
	case p.V4.source == nil:
		return "IPv6"
	}
	return "IPv4 and IPv6"
}

// Parse reads an address or a network, which has to be written by its first address.
func Parse(entry string) (netip.Prefix, error) {
	text := strings.TrimSpace(entry)
	network, err := netip.ParsePrefix(text)
	if err != nil {
		var a netip.Addr
		if a, err = netip.ParseAddr(text); err == nil && a.Zone() == "" {
			network = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
		}
	}
	a := network.Addr()
	switch {
	case !network.IsValid(), a.Is4In6():
		return network, fmt.Errorf("egress: %q is not an IP address such as 192.0.2.7, or a network such as 2001:db8::/64", entry)
	case network != network.Masked():
		return network, fmt.Errorf("egress: %q is not a network: write %s", entry, network.Masked())
	case a.IsUnspecified(), a.IsMulticast(), a.IsLinkLocalUnicast():
		return network, fmt.Errorf("egress: %q: nobody answers to such an address", entry)
	}
	return network, nil
}

// Open reads a list and looks for its addresses on this machine. It returns what it found
// beside an error, too. An address that the machine does not have is an ErrLacking. A large
// network that no local route leads to is an ErrRoute. Of a network of up to 256 addresses
// those count that the machine has, at least one.
func Open(entries []string) (*List, error) {
	l := &List{}
	reserved := reservedAddrs()
	var faults []error
	for i, entry := range entries {
		network, err := Parse(entry)
		if err == nil {
			err = l.add(network, i, reserved)
		}
		if err != nil {
			faults = append(faults, err)
		}
	}
	if n := len(l.sources[0]) + len(l.sources[1]); n > mostSources {
		faults = append(faults, fmt.Errorf("egress: the list has %d addresses, must be at most %d", n, mostSources))
	}
	return l, errors.Join(faults...)
}

// IsEmpty reports whether nothing of the list is this machine's.
func (l *List) IsEmpty() bool { return len(l.sources[0])+len(l.sources[1]) == 0 }

// add adds the sources of a network.
func (l *List) add(network netip.Prefix, entry int, reserved map[netip.Addr]bool) error {
	bits := network.Addr().BitLen() - network.Bits()
	if 1<<min(bits, 32) > mostExpanded {
		if !hasRoute(network) {
			return fmt.Errorf("egress: %s: %w; add one: ip %sroute add local %s dev lo", network, ErrRoute, option(network.Addr()), network)
		}
		l.append(network, entry, network.Addr().Is6())
		return nil
	}
	found := false
	for a := network.Addr(); network.Contains(a); a = a.Next() {
		one := netip.PrefixFrom(a, a.BitLen())
		if reserved[a] {
			continue
		}
		isOwn := hasAddress(a)
		if isOwn || hasRoute(one) {
			found = true
			l.append(one, entry, !isOwn)
		}
	}
	if !found && bits == 0 {
		return fmt.Errorf("egress: %s: %w", network.Addr(), ErrLacking)
	} else if !found {
		return fmt.Errorf("egress: %s: %w of any of its addresses", network, ErrLacking)
	}
	return nil
}

func option(a netip.Addr) string {
	if a.Is4() {
		return ""
	}
	return "-6 "
}

func (l *List) append(network netip.Prefix, entry int, freebind bool) {
	family := &l.sources[1]
	if network.Addr().Is4() {
		family = &l.sources[0]
	}
	if !slices.ContainsFunc(*family, func(s *source) bool { return s.network == network }) {
		*family = append(*family, &source{network: network, hash: xxhash.Sum64String(network.String()), entry: entry, freebind: freebind})
	}
}

// hasAddress reports whether the system lets an address be bound: it is one of this
// machine, or a local route of IPv4 leads to it.
func hasAddress(a netip.Addr) bool {
	nc, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
	if err == nil {
		nc.Close()
	}
	return err == nil
}

// reservedAddrs are the first and the last address of each network that an interface of
// this machine is in, but for its own. They stand for the network itself and for all in it:
// they can be bound, but no connection leaves from them.
func reservedAddrs() map[netip.Addr]bool {
	reserved := make(map[netip.Addr]bool)
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		network, err := netip.ParsePrefix(a.String())
		if err != nil || network.Addr().Is6() || network.Bits() > 30 {
			continue
		}
		for _, end := range []netip.Addr{network.Masked().Addr(), within(network.Masked(), 1<<32-1)} {
			reserved[end] = end != network.Addr()
		}
	}
	return reserved
}

// Choose is where the connections of a site leave from. It fails where all addresses of
// the list are lost.
func (l *List) Choose(site string, now time.Time) (p Pair, err error) {
	hash := xxhash.Sum64String(site)
	p.V4, p.V6 = choose(l.sources[0], hash, now), choose(l.sources[1], hash, now)
	if !p.IsBound() {
		return p, errLost
	}
	return p, nil
}

func choose(sources []*source, site uint64, now time.Time) Local {
	var best *source
	var weight uint64
	for _, s := range sources {
		w := mix(site ^ s.hash)
		if best != nil && w <= weight {
			continue
		}
		if until := s.until.Load(); until != 0 && now.UnixNano() < until {
			continue
		}
		best, weight = s, w
	}
	if best == nil {
		return Local{}
	}
	return Local{Addr: within(best.network, weight), source: best}
}

// within is the address of a network whose host part is that of a hash; of an IPv6
// network of more than 2^64 addresses, in its first 2^64.
func within(network netip.Prefix, hash uint64) netip.Addr {
	a := network.Addr().AsSlice()
	host := len(a)*8 - network.Bits()
	if host < 64 {
		hash &= 1<<host - 1
	}
	for i := len(a) - 1; hash > 0; i-- {
		a[i] |= byte(hash)
		hash >>= 8
	}
	addr, _ := netip.AddrFromSlice(a)
	return addr
}

// mix is the finisher of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
