package fetch

import (
	"context"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

func TestGuardTable(t *testing.T) {
	for _, tc := range []struct {
		addr   string
		public bool
	}{
		{"8.8.8.8", true}, {"1.1.1.1", true}, {"93.184.216.34", true}, {"172.15.255.255", true}, {"172.32.0.0", true},
		{"100.63.255.255", true}, {"100.128.0.0", true}, {"169.253.255.255", true}, {"169.255.0.0", true},
		{"11.0.0.0", true}, {"9.255.255.255", true}, {"126.255.255.255", true}, {"128.0.0.0", true},
		{"192.0.1.0", true}, {"198.17.255.255", true}, {"198.20.0.0", true}, {"223.255.255.255", true}, {"168.63.129.15", true},
		{"2606:4700::1111", true}, {"2001:4860:4860::8888", true}, {"2a00::1", true}, {"2001:200::1", true},
		{"::ffff:8.8.8.8", true}, {"64:ff9b::808:808", true}, {"2002:808:808::1", true},

		{"0.0.0.0", false}, {"0.1.2.3", false}, {"10.0.0.1", false}, {"10.255.255.255", false},
		{"100.64.0.0", false}, {"100.100.100.200", false}, {"100.127.255.255", false},
		{"127.0.0.1", false}, {"127.255.255.255", false}, {"169.254.169.254", false}, {"169.254.0.1", false},
		{"168.63.129.16", false}, {"172.16.0.0", false}, {"172.31.255.255", false}, {"192.0.0.192", false}, {"192.0.2.1", false},
		{"192.88.99.1", false}, {"192.168.0.1", false}, {"198.18.0.1", false}, {"198.19.255.255", false},
		{"198.51.100.1", false}, {"203.0.113.1", false}, {"224.0.0.1", false}, {"239.255.255.255", false},
		{"240.0.0.1", false}, {"255.255.255.255", false},
		{"::", false}, {"::1", false}, {"::127.0.0.1", false}, {"::8.8.8.8", false},
		{"::ffff:127.0.0.1", false}, {"::ffff:10.0.0.1", false}, {"::ffff:169.254.169.254", false}, {"::ffff:0:8.8.8.8", false},
		{"64:ff9b::7f00:1", false}, {"64:ff9b::a9fe:a9fe", false}, {"64:ff9b::a00:1", false}, {"64:ff9b:1::1", false},
		{"2002:7f00:1::1", false}, {"2002:a00:1::1", false}, {"2002:c0a8:1::", false},
		{"2001::1", false}, {"2001:0:53aa:64c:0:7f:0:1", false}, {"2001:2::1", false}, {"2001:10::1", false}, {"2001:20::1", false},
		{"2001:db8::1", false}, {"3fff::1", false}, {"100::1", false}, {"5f00::1", false}, {"4000::1", false},
		{"fc00::1", false}, {"fd00:ec2::254", false}, {"fe80::1", false}, {"fe80::1%eth0", false}, {"febf::1", false},
		{"fec0::1", false}, {"ff02::1", false}, {"2606:4700::1111%eth0", false},
	} {
		a := netip.MustParseAddr(tc.addr)
		err := (&guard{}).check(a)
		if (err == nil) != tc.public {
			t.Errorf("%s: %v", tc.addr, err)
		}
		if err == nil {
			continue
		}
		// The message names what would permit it, and that does.
		_, named, _ := strings.Cut(err.Error(), "--allow-net ")
		prefix, perr := netip.ParsePrefix(strings.Fields(named)[0])
		if perr != nil {
			t.Errorf("%s: %v names no prefix", tc.addr, err)
			continue
		}
		if err := (&guard{allow: []netip.Prefix{prefix}}).check(a); err != nil {
			t.Errorf("%s with %s: %v", tc.addr, prefix, err)
		}
	}
	g := guard{allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for a, ok := range map[string]bool{"10.1.1.1": true, "::ffff:10.1.1.1": true, "64:ff9b::a01:101": true, "2002:a01:101::": true, "192.168.0.1": false} {
		if (g.check(netip.MustParseAddr(a)) == nil) != ok {
			t.Errorf("%s with 10.0.0.0/8 allowed: want %v", a, ok)
		}
	}
}

func refusedByGuard(t *testing.T, c *Client, url string) {
	t.Helper()
	_, h, err := get(c, url)
	if class(err) != ClassGuard || h.began != 0 || err.(*Error).Retry || !strings.Contains(err.Error(), "--allow-net") {
		t.Errorf("%s: %v", url, err)
	}
}

func TestGuardOnTheDial(t *testing.T) {
	s := answers(t, okAnswer, false)
	at := strings.TrimPrefix(s.url, "http://")
	port := at[strings.LastIndexByte(at, ':')+1:]
	c := newClient(t, func(cfg *Config) {
		cfg.AllowNet = nil
		cfg.ConnectTo = []string{"rule.example::127.0.0.1:" + port}
		cfg.Resolver = resolverFunc(func(_ context.Context, name string) ([]addr, error) {
			return []addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")}, nil
		})
	})
	for _, url := range []string{s.url, "http://name.example:" + port, "http://rule.example", "http://localhost:" + port,
		"http://[::ffff:127.0.0.1]:" + port, "https://[::1]", "http://0.0.0.0:" + port} {
		refusedByGuard(t, c, url)
	}
	if s.connections() != 0 {
		t.Error("dialled all the same")
	}
}

// TestRebinding: a name that was public and turns private is refused when it
// is dialled again; so is the private one of several addresses.
func TestRebinding(t *testing.T) {
	s := answers(t, okAnswer, true) // closes, so that each fetch dials
	port := s.url[strings.LastIndexByte(s.url, ':')+1:]
	var asked atomic.Int32
	c := newClient(t, func(cfg *Config) {
		cfg.AllowNet = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} // plays the public address
		cfg.DNSTTL = 1                                                       // a nanosecond
		cfg.Resolver = resolverFunc(func(context.Context, string) ([]addr, error) {
			switch asked.Add(1) {
			case 1:
				return []addr{netip.MustParseAddr("127.0.0.1")}, nil
			case 2:
				return []addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")}, nil
			}
			return []addr{netip.MustParseAddr("127.0.0.2")}, nil
		})
	})
	for i := range 2 {
		if _, _, err := get(c, "http://rebind.example:"+port); err != nil {
			t.Fatal(i, err)
		}
	}
	refusedByGuard(t, c, "http://rebind.example:"+port)
	if s.connections() != 2 {
		t.Errorf("%d connections", s.connections())
	}
}
