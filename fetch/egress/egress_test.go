package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func open(tb testing.TB, entries ...string) *List {
	tb.Helper()
	l, err := Open(entries)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func TestParse(t *testing.T) {
	for entry, want := range map[string]string{
		"127.0.0.2": "127.0.0.2/32", " 127.0.0.2 ": "127.0.0.2/32", "127.0.0.8/29": "127.0.0.8/29", "::1": "::1/128",
		"2001:db8::/64": "2001:db8::/64", "::ffff:127.0.0.2": "127.0.0.2/32",
		"": "", "a.example": "", "127.0.0.9/29": "", "0.0.0.0": "", "::": "", "fe80::1": "", "fe80::1%lo": "", "224.0.0.1": "", "::ffff:127.0.0.0/120": "",
	} {
		got, err := Parse(entry)
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q", entry)) {
			t.Errorf("%q is not named: %v", entry, err)
		}
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: %v %v, want %q", entry, got, err, want)
		}
	}
}

// TestOpen: an address that the machine lacks is refused by its name, a large network
// without a route with what to do.
func TestOpen(t *testing.T) {
	for _, c := range []struct {
		list string
		is   error
		says string
	}{
		{"127.0.0.2,127.0.0.3", nil, ""},
		{"127.0.0.8/29", nil, ""},
		{"127.0.0.0/16", nil, ""}, // its route is that of the loopback interface
		{"127.0.0.2,198.51.100.7", ErrLacking, "198.51.100.7"},
		{"198.51.100.8/29", ErrLacking, "198.51.100.8/29"},
		{"198.51.0.0/16", ErrRoute, "ip route add local 198.51.0.0/16 dev lo"},
		{"2001:db8:5e1e::/64", ErrRoute, "ip -6 route add local 2001:db8:5e1e::/64 dev lo"},
		{"2001:db8:5e1e::7", ErrLacking, "2001:db8:5e1e::7"},
	} {
		_, err := Open(strings.Split(c.list, ","))
		if !errors.Is(err, c.is) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v", c.list, err, c.is)
		}
	}
	if l := open(t, "127.0.0.0/29"); len(l.sources[0]) != 7 || l.sources[0][0].network.String() != "127.0.0.1/32" {
		t.Errorf("%d sources of the first /29, whose first address is that of the network", len(l.sources[0]))
	}
	if l := open(t, "127.0.0.8/29"); len(l.sources[0]) != 8 {
		t.Errorf("%d sources of a /29", len(l.sources[0]))
	}
	if l := open(t, "127.0.0.2", "127.0.0.2/32", "127.0.0.2/31"); len(l.sources[0]) != 2 {
		t.Errorf("%d sources of two addresses", len(l.sources[0]))
	}
}

func addrOf(tb testing.TB, l *List, site string, now time.Time) netip.Addr {
	tb.Helper()
	p, err := l.Choose(site, now)
	if err != nil {
		tb.Fatal(err)
	}
	return p.V4.Addr
}

// TestRendezvous: whatever the list's order, all choose the same address for a site, and
// one that is left out or lost moves only its own sites.
func TestRendezvous(t *testing.T) {
	all := []string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.1.0/30", "127.0.0.6", "127.0.0.7", "127.0.0.9"}
	l, now := open(t, all...), time.Now()
	rapid.Check(t, func(r *rapid.T) {
		site := rapid.StringMatching(`[a-z0-9-]{1,20}\.[a-z]{2,6}`).Draw(r, "site")
		was := addrOf(t, l, site, now)
		other := open(t, rapid.Permutation(all).Draw(r, "order")...)
		if got := addrOf(t, other, site, now); got != was {
			r.Fatalf("%s leaves from %s, and with another order from %s", site, was, got)
		}
		gone := rapid.SampledFrom(other.sources[0]).Draw(r, "gone")
		Local{source: gone}.Lost(now)
		switch got := addrOf(t, other, site, now); {
		case gone.network.Addr() == was && got == was:
			r.Fatalf("%s leaves from %s, which is lost", site, was)
		case gone.network.Addr() != was && got != was:
			r.Fatalf("%s moved from %s to %s, for %s is lost", site, was, got, gone.network.Addr())
		}
		if got := addrOf(t, other, site, now.Add(rest)); got != was {
			r.Fatalf("%s leaves from %s after the rest, not from %s", site, got, was)
		}
	})
}

// TestSpread: sites spread evenly, and each family has an address for each.
func TestSpread(t *testing.T) {
	l := open(t, "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "::1")
	count := map[netip.Addr]int{}
	for i := range 4000 {
		p, err := l.Choose(fmt.Sprintf("site%d.example", i), time.Now())
		if err != nil || p.V6.Addr != netip.IPv6Loopback() || p.Families() != "IPv4 and IPv6" {
			t.Fatal(p, err)
		}
		count[p.V4.Addr]++
	}
	for a, n := range count {
		if n < 850 || n > 1150 { // the standard deviation is 27
			t.Errorf("%s has %d of 4000 sites", a, n)
		}
	}
	if len(count) != 4 {
		t.Errorf("%v", count)
	}
}

// TestAllLost: a list whose addresses are all lost is of no use, and comes back.
func TestAllLost(t *testing.T) {
	l, now := open(t, "127.0.0.2", "::1"), time.Now()
	p, _ := l.Choose("a.example", now)
	p.V4.Lost(now)
	if q, err := l.Choose("a.example", now); err != nil || q.V4.source != nil || q.V6.source == nil || q.Families() != "IPv6" {
		t.Errorf("without its IPv4 address: %v %v", q, err)
	}
	p.V6.Lost(now)
	if _, err := l.Choose("a.example", now); err == nil {
		t.Error("there is no address left")
	}
	if q, err := l.Choose("a.example", now.Add(rest)); err != nil || q.V4.Addr != p.V4.Addr {
		t.Error("they do not come back:", err)
	}
}

func TestPair(t *testing.T) {
	v4, v6 := netip.MustParseAddr("127.0.0.2"), netip.IPv6Loopback()
	var none Pair
	if l, ok := none.To(v4); !ok || l.Addr.IsValid() || !none.Has(netip.Addr{}) || none.Has(v4) || none.IsBound() {
		t.Error("a pair of nothing leaves the choice to the system")
	}
	p, err := open(t, "127.0.0.2").Choose("a.example", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if l, ok := p.To(netip.MustParseAddr("192.0.2.1")); !ok || l.Addr != v4 || !p.Has(v4) || p.Has(netip.Addr{}) || p.Has(v6) {
		t.Error("IPv4 leaves from its address")
	}
	if _, ok := p.To(v6); ok {
		t.Error("nothing of IPv6 is bound")
	}
	if l, ok := p.To(netip.MustParseAddr("::ffff:192.0.2.1")); !ok || l.Addr != v4 {
		t.Error("a mapped address is of IPv4")
	}
}

// TestWithin: in a large network each site has an address of its own.
func TestWithin(t *testing.T) {
	for network, want := range map[string]string{
		"2001:db8::/64": "2001:db8::123:4567:89ab:cdef", "2001:db8::/120": "2001:db8::ef", "2001:db8::/32": "2001:db8::123:4567:89ab:cdef",
		"10.0.0.0/8": "10.171.205.239", "192.0.2.7/32": "192.0.2.7", "2001:db8::7/128": "2001:db8::7",
	} {
		p := netip.MustParsePrefix(network)
		if got := within(p, 0x0123456789abcdef); got.String() != want || !p.Contains(got) {
			t.Errorf("%s: %s, want %s", network, got, want)
		}
	}
	l, seen := open(t, "127.64.0.0/12"), []netip.Addr{}
	for i := range 100 {
		a := addrOf(t, l, fmt.Sprintf("site%d.example", i), time.Now())
		if a != addrOf(t, l, fmt.Sprintf("site%d.example", i), time.Now()) {
			t.Error("a site moved")
		}
		seen = append(seen, a)
	}
	slices.SortFunc(seen, netip.Addr.Compare)
	if n := len(slices.Compact(seen)); n < 99 {
		t.Errorf("100 sites have %d addresses", n)
	}
}

// TestControl: sockets that are bound share one port for many destinations.
func TestControl(t *testing.T) {
	ln, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p, _ := open(t, "127.0.0.2").Choose("a.example", time.Now())
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Control: p.V4.Control}
	nc, err := d.Dial("tcp", ln.Addr().(*net.TCPAddr).AddrPort().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if got := nc.LocalAddr().(*net.TCPAddr).AddrPort().Addr(); got != p.V4.Addr {
		t.Errorf("it leaves from %s", got)
	}
}

func BenchmarkChoose(b *testing.B) {
	for _, list := range []string{"127.0.0.2", "127.0.0.0/28", "127.0.1.0/24"} {
		b.Run(list, func(b *testing.B) {
			l, now := open(b, list), time.Now()
			b.ReportAllocs()
			for b.Loop() {
				l.Choose("site.example", now) //nolint:errcheck
			}
		})
	}
}
