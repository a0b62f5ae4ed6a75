package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seine/fetch/egress"
)

func TestConnectToRules(t *testing.T) {
	for _, tc := range []struct {
		rules, host string
		port        uint16
		want        string
	}{
		{"a.example:80:b.example:8080", "a.example", 80, "b.example:8080"},
		{"a.example:80:b.example:8080", "a.example", 81, "a.example:81"},
		{"a.example:80:b.example:8080", "c.example", 80, "c.example:80"},
		{"A.Example::b.example:", "a.example", 443, "b.example:443"},
		{":443::8443", "x.example", 443, "x.example:8443"},
		{"::127.0.0.1:1", "x.example", 443, "127.0.0.1:1"},
		{":::", "x.example", 443, "x.example:443"},
		{"*.example::h:1", "x.example", 80, "h:1"},
		{"*.example::h:1", "x.y.example", 80, "h:1"},
		{"*.example::h:1", "example", 80, "example:80"},
		{"*.example::h:1", "xexample", 80, "xexample:80"},
		{"[::1]:80:[::2]:81", "::1", 80, "::2:81"},
		{"a::b: a::c:", "a", 1, "b:1"}, // the first counts, and only once
		{"a::b: b::c:", "a", 1, "b:1"},
	} {
		d := dialer{}
		for _, raw := range strings.Fields(tc.rules) {
			r, err := parseConnectTo(raw)
			if err != nil {
				t.Fatal(err)
			}
			d.rules = append(d.rules, r)
		}
		host, port := d.route(tc.host, tc.port)
		if got := fmt.Sprintf("%s:%d", host, port); got != tc.want {
			t.Errorf("%s of %s:%d: %s, want %s", tc.rules, tc.host, tc.port, got, tc.want)
		}
	}
	for _, bad := range []string{"", "a", "a:b", "a:1:b", "a:x:b:1", "a:1:b:x", "a:1:b:2:c", "[::1:1:b:2", "a:99999:b:1", "[::1]x:1:b:2"} {
		if _, err := parseConnectTo(bad); err == nil {
			t.Errorf("%q is no rule", bad)
		}
	}
}

func TestDNS(t *testing.T) {
	s := answers(t, okAnswer, true)
	port := s.url[strings.LastIndexByte(s.url, ':')+1:]
	var asked sync.Map
	count := func(name string) int32 {
		n, _ := asked.LoadOrStore(name, new(atomic.Int32))
		return n.(*atomic.Int32).Load()
	}
	hold := make(chan struct{})
	c := newClient(t, func(cfg *Config) {
		cfg.DNSEntries = 3
		cfg.Resolver = resolverFunc(func(ctx context.Context, name string) ([]addr, error) {
			n, _ := asked.LoadOrStore(name, new(atomic.Int32))
			n.(*atomic.Int32).Add(1)
			switch {
			case strings.HasPrefix(name, "no."):
				return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
			case strings.HasPrefix(name, "empty."):
				return nil, nil
			case strings.HasPrefix(name, "slow."):
				<-hold
			}
			return []addr{netip.MustParseAddr("127.0.0.1")}, nil
		})
	})
	for range 3 {
		if _, _, err := get(c, "http://yes.example:"+port); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"no.example", "empty.example"} {
			_, _, err := get(c, "http://"+name+":"+port)
			if class(err) != ClassNoName || err.(*Error).Retry {
				t.Error(name, err)
			}
		}
	}
	var not *net.DNSError
	if _, _, err := get(c, "http://no.example/"); !errors.As(err, &not) || !not.IsNotFound {
		t.Error("the resolver's word is lost")
	}
	for _, name := range []string{"yes.example", "no.example", "empty.example"} {
		if n := count(name); n != 1 {
			t.Errorf("%s asked %d times", name, n)
		}
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, _, err := get(c, "http://slow.example:"+port); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "all wait", func() bool {
		c.pool.mu.Lock()
		defer c.pool.mu.Unlock()
		for _, h := range c.pool.hosts {
			return len(h.slots) == cap(h.slots)
		}
		return false
	})
	close(hold)
	wg.Wait()
	if n := count("slow.example"); n != 1 {
		t.Errorf("lookups of one name were not merged: %d", n)
	}
	get(c, "http://yes.example:"+port) // pushed out by slow.example, the fourth name
	if n := count("yes.example"); n != 2 {
		t.Errorf("names remembered beyond the bound: %d", n)
	}
}

func TestDNSExpiry(t *testing.T) {
	var asked atomic.Int32
	c := newClient(t, func(cfg *Config) {
		cfg.DNSTTL, cfg.DNSNegativeTTL = time.Hour, 1
		cfg.Resolver = resolverFunc(func(context.Context, string) ([]addr, error) {
			asked.Add(1)
			return nil, errors.New("down")
		})
	})
	for range 3 {
		get(c, "http://a.example/")
	}
	if _, _, err := get(c, "http://a.example/"); class(err) != ClassDNS || !err.(*Error).Retry {
		t.Error(err)
	}
	if asked.Load() != 4 {
		t.Errorf("a failure is believed longer than the negative TTL: %d", asked.Load())
	}
}

// TestFamilies: a dead family does not hide the living one, and of one family
// the next address is tried.
func TestFamilies(t *testing.T) {
	s := answers(t, okAnswer, true)
	port := s.url[strings.LastIndexByte(s.url, ':')+1:]
	for _, addrs := range []string{"::1 127.0.0.1", "127.0.0.1 ::1", "127.0.0.3 127.0.0.1", "::1 127.0.0.3 127.0.0.1"} {
		c := newClient(t, func(cfg *Config) {
			cfg.Resolver = resolverFunc(func(context.Context, string) (all []addr, _ error) {
				for _, a := range strings.Fields(addrs) {
					all = append(all, netip.MustParseAddr(a))
				}
				return all, nil
			})
		})
		if _, h, err := get(c, "http://both.example:"+port); err != nil || string(h.body) != "hello" {
			t.Errorf("%s: %v", addrs, err)
		}
	}
	c := newClient(t, nil)
	if _, _, err := get(c, "http://127.0.0.3:"+port); class(err) != ClassConnect || !err.(*Error).Retry {
		t.Error(err)
	}
}

// TestPortsAreShared: the local port is chosen for the destination, so that
// connections to different servers share ports. Bound before, none would.
func TestPortsAreShared(t *testing.T) { checkSharedPorts(t, &dialer{}, &egress.Pair{}) }

// checkSharedPorts fails unless connections from there to many addresses share ports.
func checkSharedPorts(t *testing.T, d *dialer, from *egress.Pair) {
	t.Helper()
	const conns = 500 // of so many, some 9 to 18 meet by chance
	ln, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	port := ln.Addr().(*net.TCPAddr).AddrPort().Port()
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			defer nc.Close()
		}
	}()
	used := map[uint16]bool{}
	for i := range conns {
		nc, err := d.connect(t.Context(), netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(i)}), port), from)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		local := nc.LocalAddr().(*net.TCPAddr).AddrPort()
		if from.IsBound() && local.Addr() != from.V4.Addr {
			t.Fatalf("it leaves from %s", local)
		}
		used[local.Port()] = true
	}
	if len(used) == conns {
		t.Errorf("%d connections to as many addresses have a port of their own each", conns)
	}
}
