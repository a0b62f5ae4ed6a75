package fetch

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seine/fetch/egress"
)

func addrPorts(list string) (all []netip.AddrPort) {
	for _, a := range strings.Fields(list) {
		all = append(all, netip.AddrPortFrom(netip.MustParseAddr(a), 80))
	}
	return all
}

// TestOrder: families are tried in turn, four addresses of each, the one that came first
// first (RFC 8305, section 4).
func TestOrder(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"192.0.2.1", "192.0.2.1"},
		{"192.0.2.1 192.0.2.2", "192.0.2.1 192.0.2.2"},
		{"2001:db8::1 2001:db8::2 192.0.2.1 192.0.2.2", "2001:db8::1 192.0.2.1 2001:db8::2 192.0.2.2"},
		{"192.0.2.1 2001:db8::1 2001:db8::2 2001:db8::3", "192.0.2.1 2001:db8::1 2001:db8::2 2001:db8::3"},
		{"192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5 2001:db8::1", "192.0.2.1 2001:db8::1 192.0.2.2 192.0.2.3 192.0.2.4"},
	} {
		var got []string
		for _, a := range inTurn(addrPorts(c.list)) {
			got = append(got, a.Addr().String())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.list, got, c.want)
		}
	}
}

// TestFamilyMemory: the family that lost in a network goes second there for ten minutes,
// unless the other lost too.
func TestFamilyMemory(t *testing.T) {
	var f families
	now := time.Now()
	first := func(list string, now time.Time) string {
		addrs := addrPorts(list)
		f.putBetterFirst(addrs, now)
		return addrs[0].Addr().String()
	}
	const both, near, far = "2001:db8::1 192.0.2.1", "2001:db8::ffff:1 198.51.100.1", "2001:db8:1::1 192.0.2.1"
	f.learn(netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.1"), now)
	for _, c := range []struct {
		list string
		at   time.Time
		want string
	}{
		{both, now, "192.0.2.1"},
		{near, now, "198.51.100.1"},
		{far, now, "2001:db8:1::1"},
		{"2001:db8::1", now, "2001:db8::1"},
		{both, now.Add(familyKept), "2001:db8::1"},
	} {
		if got := first(c.list, c.at); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	f.learn(netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("2001:db8:9::1"), now)
	if got := first(near, now); got != "2001:db8::ffff:1" {
		t.Errorf("both lost, and %s goes first", got)
	}
	f.learn(netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), now)
	if got := first(both, now); got != "2001:db8::1" {
		t.Errorf("the other way round now, and %s goes first", got)
	}
	for i := range 2 * mostNetworks {
		f.learn(netip.MustParseAddr(fmt.Sprintf("2001:db8:%x::1", i)), netip.MustParseAddr("192.0.2.1"), now)
	}
	if len(f.lost) > mostNetworks {
		t.Errorf("%d networks are remembered", len(f.lost))
	}
}

// TestRaceLearns: a race that the second family won is not run again in its network.
func TestRaceLearns(t *testing.T) {
	if !hasIPv6() {
		t.Skip("no IPv6 on this machine")
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	port := ln.Addr().(*net.TCPAddr).AddrPort().Port()
	c := newClient(t, nil)
	addrs := []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Loopback(), port), netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)}
	for range 2 {
		nc, err := c.dialer.race(t.Context(), addrs, &egress.Pair{})
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
	}
	if c.dialer.families.putBetterFirst(addrs, time.Now()); !addrs[0].Addr().Is4() {
		t.Errorf("%s goes first", addrs[0])
	}
}

// TestPrepareBetterFamily: a request is reserved at an address of the family that is better
// for its host's network, and goes there.
func TestPrepareBetterFamily(t *testing.T) {
	c := newClient(t, func(cfg *Config) { cfg.PerAddress = 50 })
	c.dialer.families.learn(netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback(), time.Now())
	r, err := c.Prepare(t.Context(), "http://localhost/", "")
	if err != nil || r.Addr != netip.IPv6Loopback() {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestWithPart: attempts that have others behind them have a part of the time.
func TestWithPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			left  time.Duration
			parts int
			want  time.Duration
		}{{10 * time.Second, 1, 10 * time.Second}, {10 * time.Second, 2, 5 * time.Second}, {time.Second, 2, time.Second}} {
			whole, cancelWhole := context.WithTimeout(t.Context(), c.left)
			ctx, cancel := withPart(whole, c.parts)
			if end, _ := ctx.Deadline(); time.Until(end) != c.want {
				t.Errorf("%+v: %s", c, time.Until(end))
			}
			cancel()
			cancelWhole()
		}
	})
}
