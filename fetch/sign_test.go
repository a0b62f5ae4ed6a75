package fetch

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seine/fetch/sign"
	"seine/fetch/sign/signtest"
)

// signing makes a client that signs, and the key that it signs with.
func signing(t *testing.T, change func(*Config)) (*Client, *sign.Key) {
	t.Helper()
	key, signer := signtest.New(t)
	return newClient(t, func(cfg *Config) {
		cfg.Signer = signer
		if change != nil {
			change(cfg)
		}
	}), key
}

// parsed are the requests that came, as net/http reads them.
func (s *rawServer) parsed(t *testing.T) (all []*http.Request) {
	t.Helper()
	for _, text := range s.requests() {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// Over TLS and without, a server that knows the key verifies each request for the
// authority that it is asked as, port included.
func TestSigned(t *testing.T) {
	var mu sync.Mutex
	var seen []*http.Request
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r)
		http.Redirect(w, r, "/x", http.StatusFound)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	c, key := signing(t, func(cfg *Config) {
		cfg.InsecureSkipVerify = true
		cfg.ConnectTo = []string{"one.example::" + plain.Listener.Addr().String(), "two.example::" + secure.Listener.Addr().String()}
	})
	for _, s := range []struct{ url, authority string }{
		{plain.URL + "/a?b", plain.Listener.Addr().String()},
		{secure.URL, secure.Listener.Addr().String()},
		{"http://one.example:80/", "one.example"},
		{"http://one.example:443/", "one.example:443"},
		{"https://two.example/", "two.example"},
		{"https://two.example:8443/", "two.example:8443"},
		{"https://user:password@two.example/", "two.example"},
	} {
		if _, _, err := get(c, s.url); err != nil {
			t.Fatal(s.url, err)
		}
		mu.Lock()
		r := seen[len(seen)-1]
		mu.Unlock()
		if r.Host != s.authority {
			t.Errorf("%s: Host is %s", s.url, r.Host)
		}
		if err := signtest.Verify(key, s.authority, r.Header, time.Now()); err != nil {
			t.Errorf("%s: %v", s.url, err)
		}
	}
	if n := c.m.signed.Get(); n != 7 {
		t.Errorf("%d requests are counted as signed", n)
	}
}

// A request that is sent once more on a new connection has a signature of its own.
func TestSignedAnew(t *testing.T) {
	var first atomic.Int64 // second in which the attempt came that fails
	s := serveRaw(t, func(s *rawServer, nr int, nc net.Conn) {
		br := bufio.NewReader(nc)
		for i := 0; ; i++ {
			if _, ok := s.request(br); !ok {
				return
			}
			if nr == 1 && i == 1 {
				for first.Store(time.Now().Unix()); time.Now().Unix() == first.Load(); {
					time.Sleep(time.Millisecond)
				}
				return
			}
			io.WriteString(nc, okAnswer)
		}
	})
	c, key := signing(t, nil)
	for range 2 {
		if _, _, err := get(c, s.url); err != nil {
			t.Fatal(err)
		}
	}
	all := s.parsed(t)
	if len(all) != 3 || c.Stats().StaleRetries != 1 {
		t.Fatalf("%d requests, %+v", len(all), c.Stats())
	}
	for i, r := range all {
		if err := signtest.Verify(key, r.Host, r.Header, time.Now()); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if all[1].Header.Get("Signature") == all[2].Header.Get("Signature") {
		t.Error("the repeat carries the signature of before")
	}
}

// Through a proxy, forwarded or in a tunnel, the signature is for the host that is asked.
func TestSignedThroughProxy(t *testing.T) {
	to := answers(t, okAnswer, false)
	p := &fakeProxy{to: to.ln.Addr().String()}
	p.rawServer = serveRaw(t, p.http)
	c, key := signing(t, func(cfg *Config) { cfg.Proxies, cfg.InsecureSkipVerify = []string{p.url}, true })
	if _, _, err := get(c, "http://one.example:8080/x"); err != nil {
		t.Fatal(err)
	}
	r := p.parsed(t)[0]
	if r.URL.String() != "http://one.example:8080/x" {
		t.Errorf("asked for %s", r.URL)
	}
	if err := signtest.Verify(key, "one.example:8080", r.Header, time.Now()); err != nil {
		t.Error(err)
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := signtest.Verify(key, "two.example", r.Header, time.Now()); err != nil {
			t.Error(err)
		}
	}))
	defer secure.Close()
	p.to = secure.Listener.Addr().String()
	if _, _, err := get(c, "https://two.example/"); err != nil {
		t.Fatal(err)
	}
	if signtest.IsSigned(p.parsed(t)[1].Header) {
		t.Error("the proxy itself gets a signature with CONNECT")
	}
}

// With SignAsked a request is signed when its site asked before, and an answer to one
// that is not says so.
func TestSignAsked(t *testing.T) {
	s := answers(t, "HTTP/1.1 403 Forbidden\r\nAccept-Signature: sig1=(\"@authority\");created;tag=\"web-bot-auth\"\r\nContent-Length: 0\r\n\r\n", false)
	asked, key := signing(t, func(cfg *Config) { cfg.SignAsked = true })
	always, _ := signing(t, nil)
	for i, q := range []struct {
		client *Client
		req    Request
		signed bool
		wants  bool
	}{
		{asked, Request{}, false, true},
		{asked, Request{Sign: true}, true, false},
		{always, Request{}, true, false},
		{newClient(t, nil), Request{Sign: true}, false, false},
		{asked, Request{Sign: true, Header: [][2]string{{"signature-agent", `"https://other.example"`}}}, false, false},
		{always, Request{Unsigned: true}, false, false},
		{asked, Request{Sign: true, Method: "POST", Body: []byte("x")}, true, false},
	} {
		q.req.URL = s.url
		var resp Response
		if err := q.client.Do(context.Background(), &q.req, &resp, &collector{}); err != nil {
			t.Fatal(err)
		}
		r := s.parsed(t)[i]
		if got := r.Header.Get("Signature") != ""; got != q.signed || resp.WantsSign != q.wants {
			t.Errorf("request %d: signed %v, wants %v", i, got, resp.WantsSign)
		}
		if q.signed && q.client == asked {
			if err := signtest.Verify(key, r.Host, r.Header, time.Now()); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		}
	}
}

// A mail address goes with each request, and gives way to a header of the site's.
func TestFrom(t *testing.T) {
	s := answers(t, okAnswer, false)
	c := newClient(t, func(cfg *Config) { cfg.From = "bot@example.com" })
	for i, extra := range [][][2]string{nil, {{"from", "else@example.com"}}} {
		if err := c.Do(t.Context(), &Request{URL: s.url, Header: extra}, new(Response), &collector{}); err != nil {
			t.Fatal(err)
		}
		want := []string{"bot@example.com", "else@example.com"}[i]
		if got := s.parsed(t)[i].Header.Values("From"); len(got) != 1 || got[0] != want {
			t.Errorf("From: %q, want %s", got, want)
		}
	}
	if _, err := New(Config{From: "a\r\nX: y"}); err == nil {
		t.Error("a From of two lines is taken")
	}
}
