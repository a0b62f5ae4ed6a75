package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/fetch/egress"
)

// peers is a server on 127.0.0.1, and on ::1 with the same port where there is one, that
// says from where it was asked.
func peers(tb testing.TB) (port string) {
	tb.Helper()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, host)
	})
	s := httptest.NewServer(h)
	tb.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(s.Listener.Addr().String())
	if ln, err := net.Listen("tcp6", "[::1]:"+port); err == nil {
		s6 := &http.Server{Handler: h}
		go s6.Serve(ln) //nolint:errcheck // until the test ends
		tb.Cleanup(func() { s6.Close() })
	}
	return port
}

// hasIPv6 reports whether this machine can be asked at ::1.
func hasIPv6() bool {
	ln, err := net.Listen("tcp6", "[::1]:0")
	if err == nil {
		ln.Close()
	}
	return err == nil
}

// hosts is a resolver of names that have these addresses.
func hosts(addrs ...string) Resolver {
	return resolverFunc(func(context.Context, string) (all []addr, _ error) {
		for _, a := range addrs {
			all = append(all, netip.MustParseAddr(a))
		}
		return all, nil
	})
}

// from asks a host, and returns the address that the server saw.
func from(tb testing.TB, c *Client, url, bind string) (string, error) {
	tb.Helper()
	var resp Response
	var h collector
	err := c.Do(tb.Context(), &Request{URL: url, Bind: bind}, &resp, &h)
	return string(h.body), err
}

// TestBind: each site stays with an address of the list, in all clients that have it, and
// the sites spread.
func TestBind(t *testing.T) {
	port := peers(t)
	list := []string{"127.0.0.2", "127.0.0.3", "127.0.0.8/29"}
	one := newClient(t, func(cfg *Config) { cfg.Bind, cfg.Resolver = list, hosts("127.0.0.1") })
	other := newClient(t, func(cfg *Config) {
		cfg.Bind, cfg.Resolver = []string{list[2], list[1], list[0]}, hosts("127.0.0.1")
	})
	seen := map[string]int{}
	for i := range 40 {
		site := fmt.Sprintf("site%d.example", i)
		var was string
		for j, c := range []*Client{one, other, one} {
			got, err := from(t, c, fmt.Sprintf("http://www%d.%s:%s/", j, site, port), "")
			if err != nil {
				t.Fatal(err)
			}
			if j > 0 && got != was {
				t.Errorf("%s is asked from %s and from %s", site, was, got)
			}
			was = got
		}
		seen[was]++
	}
	for a := range seen {
		if p := netip.MustParseAddr(a); a != list[0] && a != list[1] && !netip.MustParsePrefix(list[2]).Contains(p) {
			t.Errorf("a site is asked from %s", a)
		}
	}
	if len(seen) < 8 {
		t.Errorf("40 sites are asked from %v", seen)
	}
	total := uint64(0)
	for _, entry := range list {
		total += one.cfg.Metrics.GetOrCreateCounter(fmt.Sprintf(`seine_fetch_bound_connections_total{bind=%q}`, entry)).Get()
	}
	if made := one.Stats().Connections; total != made || made == 0 {
		t.Errorf("%d of %d connections are counted by their entries", total, made)
	}
}

// TestBindOfRequest: a request's own list goes before the client's, and a kept connection
// serves only requests that leave from its address.
func TestBindOfRequest(t *testing.T) {
	port := peers(t)
	for _, own := range [][]string{nil, {"127.0.0.2"}} {
		c := newClient(t, func(cfg *Config) { cfg.Bind, cfg.Resolver = own, hosts("127.0.0.1") })
		usual := "127.0.0.1"
		if own != nil {
			usual = own[0]
		}
		for _, step := range []struct {
			bind, want string
			reused     uint64
		}{{"", usual, 0}, {"", usual, 1}, {"127.0.0.3", "127.0.0.3", 1}, {"127.0.0.3", "127.0.0.3", 2}, {"", usual, 2}, {"198.51.100.7,127.0.0.4", "127.0.0.4", 2}} {
			got, err := from(t, c, "http://a.example:"+port+"/", step.bind)
			if reused := c.Stats().Reused; err != nil || got != step.want || reused != step.reused {
				t.Errorf("with %v and %q: from %s, %d connections reused, %v; want %s, %d", own, step.bind, got, reused, err, step.want, step.reused)
			}
		}
	}
}

// TestBindLacking: what this machine does not have is refused at the start, by name, and
// leaves a request with a list of its own undone.
func TestBindLacking(t *testing.T) {
	_, err := New(Config{Bind: []string{"127.0.0.2", "198.51.100.7", "203.0.113.0/29"}})
	if !errors.Is(err, egress.ErrLacking) || !strings.Contains(err.Error(), "198.51.100.7") || !strings.Contains(err.Error(), "203.0.113.0/29") || strings.Contains(err.Error(), "127.0.0.2") {
		t.Error(err)
	}
	for bind, says := range map[string]string{"127.0.0.300": "127.0.0.300", "a": `"a"`} {
		if err := (&Config{Bind: []string{bind}}).Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Error(bind, err)
		}
	}
	if err := (&Config{Bind: []string{"127.0.0.2"}, Proxies: []string{"http://a.example"}}).Validate(); err == nil || !strings.Contains(err.Error(), "bind and proxy") {
		t.Error("a list beside proxies:", err)
	}
	port := peers(t)
	c := newClient(t, nil)
	proxied := newClient(t, func(cfg *Config) { cfg.Proxies = []string{"http://127.0.0.1:1"} })
	for _, c := range []*Client{c, proxied} {
		bind := "198.51.100.7"
		if c == proxied {
			bind = "127.0.0.2"
		}
		_, err := from(t, c, "http://127.0.0.1:"+port, bind)
		if class(err) != ClassBind || !Local(class(err)) || c.MayLeaveFrom(bind) == nil || c.MayLeaveFrom("") != nil {
			t.Error(bind, err)
		}
		if _, err := c.Prepare(t.Context(), "http://127.0.0.1:"+port, bind); c != proxied && class(err) != ClassBind {
			t.Error("Prepare:", err)
		}
	}
}

// TestBindLost: an address that is lost at run time moves its sites to the others, and
// where it was the only one the client is short of it.
func TestBindLost(t *testing.T) {
	port := peers(t)
	c := newClient(t, func(cfg *Config) { cfg.Bind, cfg.Resolver = []string{"127.0.0.2", "127.0.0.3"}, hosts("127.0.0.1") })
	lost := netip.MustParseAddr("198.51.100.7")
	for site := range 20 { // the sites of the first address meet that it is gone
		url := fmt.Sprintf("http://site%d.example:%s/", site, port)
		var x exchange
		x.c = c
		if err := x.prepare(&Request{URL: url}); err != nil {
			t.Fatal(err)
		}
		if x.from.V4.Addr != netip.MustParseAddr("127.0.0.2") {
			continue
		}
		x.from.V4.Addr = lost
		if _, err := c.dialer.dial(t.Context(), "127.0.0.1", 1, netip.Addr{}, &x.from); class(err) != ClassBind {
			t.Fatal(err)
		}
		break
	}
	for site := range 20 {
		if got, err := from(t, c, fmt.Sprintf("http://site%d.example:%s/", site, port), ""); err != nil || got != "127.0.0.3" {
			t.Errorf("from %s, %v", got, err)
		}
	}
	if n := c.m.boundLost.Get(); n != 1 || c.Short() != "" {
		t.Errorf("%d lost, short of %q", n, c.Short())
	}
	p, _ := c.bound.own.Choose("a.example", time.Now())
	p.V4.Lost(time.Now())
	if _, err := from(t, c, "http://a.example:"+port, ""); class(err) != ClassBind || c.Short() != ClassBind {
		t.Errorf("all are lost: %v, short of %q", err, c.Short())
	}
}

// TestBoundFamily: of a host that has addresses of both families those of the bound one
// are asked, and a host that has none is dead for that.
func TestBoundFamily(t *testing.T) {
	if !hasIPv6() {
		t.Skip("no IPv6 on this machine")
	}
	port := peers(t)
	for _, c := range []struct{ bind, addrs, want string }{
		{"127.0.0.2", "::1 127.0.0.1", "127.0.0.2"},
		{"::1", "127.0.0.1 ::1", "::1"},
		{"127.0.0.2 ::1", "127.0.0.1", "127.0.0.2"},
		{"127.0.0.2 ::1", "::1", "::1"},
		{"127.0.0.2", "::1", ""},
		{"::1", "127.0.0.1", ""},
	} {
		cl := newClient(t, func(cfg *Config) {
			cfg.Bind, cfg.Resolver = strings.Fields(c.bind), hosts(strings.Fields(c.addrs)...)
		})
		got, err := from(t, cl, "http://a.example:"+port, "")
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: from %q, %v", c, got, err)
		}
		if c.want == "" {
			_, prepared := cl.Prepare(t.Context(), "http://a.example:"+port, "")
			if class(err) != ClassFamily || class(prepared) != ClassFamily || Retryable(ClassFamily) || Local(ClassFamily) {
				t.Errorf("%+v: %v, %v", c, err, prepared)
			}
		}
	}
}

// TestPartialName: a host is not dead for want of a family that may only be late.
func TestPartialName(t *testing.T) {
	c := newClient(t, func(cfg *Config) { cfg.Bind, cfg.Resolver = []string{"127.0.0.2"}, hosts("::1") })
	c.dialer.names.store(&nameEntry{name: "late.example", addrs: []netip.Addr{netip.IPv6Loopback()}, partial: true, until: time.Now().Add(time.Hour)})
	if _, err := from(t, c, "http://late.example/", ""); class(err) != ClassDNS {
		t.Error(err)
	}
	if _, err := from(t, c, "http://none.example/", ""); class(err) != ClassFamily {
		t.Error(err)
	}
}

// TestBoundPortsAreShared: the port of a bound connection is chosen for the destination.
func TestBoundPortsAreShared(t *testing.T) {
	c := newClient(t, func(cfg *Config) { cfg.Bind = []string{"127.0.0.2"} })
	p, err := c.bound.own.Choose("a.example", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	checkSharedPorts(t, &c.dialer, &p)
}

// TestRelieveByBound: ports that ran out are those of one address of ours, so only
// connections from there are closed.
func TestRelieveByBound(t *testing.T) {
	var both sync.WaitGroup // both requests are under way at once, so that both connections are kept
	both.Add(2)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		both.Done()
		both.Wait()
		io.WriteString(w, "x")
	}))
	defer s.Close()
	c := newClient(t, nil)
	var wg sync.WaitGroup
	for _, bind := range []string{"127.0.0.2", "127.0.0.3"} {
		wg.Go(func() {
			if _, err := from(t, c, s.URL, bind); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	to := netip.MustParseAddrPort(s.Listener.Addr().String())
	if c.pool.relieve(ClassPorts, to, netip.MustParseAddr("127.0.0.4")) || c.Stats().Idle != 2 {
		t.Error("connections from other addresses are in nobody's way")
	}
	if !c.pool.relieve(ClassPorts, to, netip.MustParseAddr("127.0.0.3")) || c.Stats().Idle != 1 {
		t.Error("one from that address is")
	}
}

// TestAnsweredBy: an answer says which address gave it, and in which version of HTTP.
func TestAnsweredBy(t *testing.T) {
	for version, want := range map[string]string{"HTTP/1.1": "http/1.1", "HTTP/1.0": "http/1.0", "http/1.0": "http/1.0"} {
		s := answers(t, version+" 200 OK\r\nContent-Length: 5\r\n\r\nhello", true)
		resp, _, err := get(newClient(t, nil), s.url)
		if err != nil || resp.Addr != netip.MustParseAddr("127.0.0.1") || resp.Protocol != want {
			t.Errorf("%s: by %s, %q, %v", version, resp.Addr, resp.Protocol, err)
		}
	}
}
