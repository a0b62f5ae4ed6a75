package fetch

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeProxy is an HTTP or SOCKS5 proxy that leads every target to one address.
type fakeProxy struct {
	*rawServer
	to     string // where tunnels lead
	status int    // of CONNECT, or the SOCKS reply code; 0 = success
	auth   string // wanted: user:pass
	mu     sync.Mutex
	asked  []string // targets
}

func (p *fakeProxy) targets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

func (p *fakeProxy) note(target string) {
	p.mu.Lock()
	p.asked = append(p.asked, target)
	p.mu.Unlock()
}

func (p *fakeProxy) bridge(nc net.Conn, br io.Reader) {
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer up.Close()
	go func() { io.Copy(up, br); up.Close() }()
	io.Copy(nc, up)
}

func (p *fakeProxy) http(s *rawServer, _ int, nc net.Conn) {
	br := bufio.NewReader(nc)
	for {
		req, ok := s.request(br)
		if !ok {
			return
		}
		method, rest, _ := strings.Cut(req, " ")
		target, _, _ := strings.Cut(rest, " ")
		p.note(target)
		basic := "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(p.auth)) + "\r\n"
		switch {
		case p.auth != "" && !strings.Contains(req, basic):
			io.WriteString(nc, "HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")
		case p.status != 0:
			fmt.Fprintf(nc, "HTTP/1.1 %d No\r\nContent-Length: 0\r\n\r\n", p.status)
		case method == "CONNECT":
			io.WriteString(nc, "HTTP/1.1 200 Connected\r\n\r\n")
			p.bridge(nc, br)
			return
		default:
			io.WriteString(nc, okAnswer)
		}
	}
}

func (p *fakeProxy) socks5(_ *rawServer, _ int, nc net.Conn) {
	br := bufio.NewReader(nc)
	take := func(n int) []byte {
		b := make([]byte, n)
		io.ReadFull(br, b)
		return b
	}
	take(int(take(2)[1]))
	if p.auth != "" {
		nc.Write([]byte{5, 2})
		take(1)
		user := take(int(take(1)[0]))
		pass := take(int(take(1)[0]))
		if string(user)+":"+string(pass) != p.auth {
			nc.Write([]byte{1, 1})
			return
		}
		nc.Write([]byte{1, 0})
	} else {
		nc.Write([]byte{5, 0})
	}
	if kind := take(4)[3]; kind == 3 {
		host := take(int(take(1)[0]))
		port := take(2)
		p.note(fmt.Sprintf("%s:%d", host, int(port[0])<<8|int(port[1])))
	} else {
		p.note("address")
	}
	nc.Write([]byte{5, byte(p.status), 0, 1, 0, 0, 0, 0, 0, 0})
	if p.status == 0 {
		p.bridge(nc, br)
	}
}

func startProxy(tb testing.TB, socks bool, to string) *fakeProxy {
	p := &fakeProxy{to: to}
	handle := p.http
	if socks {
		handle = p.socks5
	}
	p.rawServer = serveRaw(tb, handle)
	return p
}

func TestProxies(t *testing.T) {
	cert := selfSigned("secure.example")
	secure := serveTLS(t, tlsServer(cert), nil)
	plain := answers(t, okAnswer, false)
	host := func(s *rawServer) string { return s.url[strings.Index(s.url, "//")+2:] }
	for _, tc := range []struct {
		socks      bool
		url, asked string
		auth       string
	}{
		{false, "http://plain.example:8000/a?b", "http://plain.example:8000/a?b", ""},
		{false, "http://plain.example/", "http://plain.example/", "us er:p@ss"},
		{false, "https://secure.example/", "secure.example:443", ""},
		{false, "https://secure.example/", "secure.example:443", "user:pass"},
		{true, "http://plain.example/", "plain.example:80", ""},
		{true, "https://secure.example/", "secure.example:443", "user:pass"},
	} {
		to := host(plain)
		if strings.HasPrefix(tc.url, "https") {
			to = host(secure)
		}
		p := startProxy(t, tc.socks, to)
		p.auth = tc.auth
		scheme, login := "http://", ""
		if tc.socks {
			scheme = "socks5://"
		}
		if tc.auth != "" {
			login = strings.NewReplacer(" ", "%20", "@", "%40").Replace(tc.auth) + "@"
		}
		c := newClient(t, func(cfg *Config) {
			cfg.AllowNet = nil // the proxy is exempt
			cfg.Proxies = []string{scheme + login + host(p.rawServer)}
			cfg.InsecureSkipVerify = true
		})
		for range 2 {
			if _, h, err := get(c, tc.url); err != nil || string(h.body) != "hello" {
				t.Errorf("%+v: %v", tc, err)
			}
		}
		if got := p.targets(); len(got) == 0 || got[0] != tc.asked {
			t.Errorf("%+v: asked for %q", tc, got)
		}
		for _, req := range append(plain.requests(), secure.requests()...) {
			if strings.Contains(req, "Proxy-Auth") {
				t.Errorf("credentials of the proxy went to the site: %q", req)
			}
		}
		if c.m.proxyAnswered[0].Get() == 0 || c.m.proxyDown[0].Get() != 0 {
			t.Errorf("%+v: not counted", tc)
		}
		for _, inner := range []string{"http://127.0.0.1/", "http://169.254.169.254/", "http://localhost/", "https://[::1]/"} {
			if _, _, err := get(c, inner); class(err) != ClassGuard {
				t.Errorf("%s through the proxy: %v", inner, err)
			}
		}
	}
}

// TestProxyFailures: who is to blame decides the class and who rests.
func TestProxyFailures(t *testing.T) {
	for _, tc := range []struct {
		socks  bool
		status int
		auth   string
		class  string
		rests  bool
	}{
		{false, 407, "", ClassProxy, true},
		{false, 0, "other:login", ClassProxy, true},
		{false, 403, "", ClassProxy, true},
		{false, 502, "", ClassConnect, false},
		{false, 504, "", ClassConnect, false},
		{true, 0, "other:login", ClassProxy, true},
		{true, 5, "", ClassConnect, false},
		{true, 4, "", ClassConnect, false},
	} {
		p := startProxy(t, tc.socks, "")
		p.status, p.auth = tc.status, tc.auth
		scheme := "http"
		if tc.socks {
			scheme = "socks5"
		}
		c := newClient(t, func(cfg *Config) {
			cfg.Proxies = []string{scheme + "://u:secret@" + strings.TrimPrefix(p.url, "http://")}
		})
		_, _, err := get(c, "https://a.example/")
		if class(err) != tc.class || !err.(*Error).Retry || c.proxies.all[0].resting(time.Now()) != tc.rests {
			t.Errorf("%+v: %v", tc, err)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("password in %v", err)
		}
	}
	p := startProxy(t, false, "")
	p.auth = "other:login"
	c := newClient(t, func(cfg *Config) { cfg.Proxies = []string{p.url} })
	if _, h, err := get(c, "http://a.example/"); class(err) != ClassProxy || h.began != 0 {
		t.Errorf("407 to a plain request: %v", err)
	}
}

// TestProxyRotation: a site stays with its proxy, sites spread, a failing
// proxy rests and its sites move until it is back.
func TestProxyRotation(t *testing.T) {
	var urls []string
	for range 3 {
		p := startProxy(t, false, "")
		urls = append(urls, p.url)
	}
	c := newClient(t, func(cfg *Config) {
		cfg.Proxies = urls
		cfg.NoProxy = "direct.example,.internal.example"
		cfg.ConnectTo = []string{"direct.example::127.0.0.1:1", "*.internal.example::127.0.0.1:1"}
	})
	of := func(site string) int {
		px, err := c.proxies.pick(&target{host: site, auth: site})
		if err != nil {
			t.Fatal(err)
		}
		return int(px.index)
	}
	spread := map[int]int{}
	for i := range 300 {
		site := fmt.Sprintf("s%d.example", i)
		at := of(site)
		spread[at]++
		if again := of("www." + site); again != at {
			t.Errorf("%s moved from %d to %d", site, at, again)
		}
	}
	for i := range 3 {
		if spread[i] < 50 {
			t.Errorf("uneven: %v", spread)
		}
	}
	for _, direct := range []string{"http://direct.example/", "http://x.internal.example/"} {
		if _, _, err := get(c, direct); class(err) != ClassConnect {
			t.Errorf("%s: %v", direct, err)
		}
	}
	first := of("a.example")
	c.proxies.all[first].failed(c.m)
	second := of("a.example")
	if second == first {
		t.Error("a resting proxy was picked")
	}
	for _, p := range c.proxies.all {
		p.failed(c.m)
	}
	if _, _, err := get(c, "http://a.example/"); class(err) != ClassProxy {
		t.Errorf("all rest: %v", err)
	}
	c.proxies.all[first].answered(c.m)
	if got := of("a.example"); got != first {
		t.Errorf("the site did not return: %d", got)
	}
	for range 20 {
		c.proxies.all[second].failed(c.m)
	}
	if rest := time.Until(c.proxies.all[second].until); rest > 16*proxyRest {
		t.Errorf("rests for %s", rest)
	}
}
