package fetch

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"

// TestOnTheWire holds what a server sees: exactly one request for one attempt,
// the bytes of the path as the page wrote them.
func TestOnTheWire(t *testing.T) {
	for _, tc := range []struct{ path, want string }{
		{"", "/"},
		{"?q=1", "/?q=1"},
		{"/", "/"},
		{"/enc/Y%2BY%2FY%3D/s", "/enc/Y%2BY%2FY%3D/s"},
		{"/en//doc.pdf", "/en//doc.pdf"},
		{"/get/https://o.example/f", "/get/https://o.example/f"},
		{"/*", "/*"},
		{"/%2a%2A", "/%2a%2A"},
		{"/a/../b/./c", "/a/../b/./c"},
		{"/a;b=c,d?e=f&g='h'", "/a;b=c,d?e=f&g='h'"},
		{"/é?ü", "/%C3%A9?%C3%BC"},
		{"/a b?c d", "/a%20b?c%20d"},
		{"/a%20b", "/a%20b"},
		{"/cr\r\nX: y", "/cr%0D%0AX:%20y"},
		{"/x#frag", "/x"},
		{"/?a#frag", "/?a"},
	} {
		s := answers(t, okAnswer, false)
		c := newClient(t, func(cfg *Config) { cfg.UserAgent = "seine/1 (+https://me.example/)" })
		resp, h, err := get(c, s.url+tc.path)
		if err != nil || resp.Status != 200 || string(h.body) != "hello" {
			t.Fatalf("%q: %v, %+v, %q", tc.path, err, resp, h.body)
		}
		host := strings.TrimPrefix(s.url, "http://")
		want := "GET " + tc.want + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: seine/1 (+https://me.example/)\r\n" +
			"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n" +
			"Accept-Encoding: zstd, br, gzip, deflate;q=0.5\r\n\r\n"
		if got := s.requests(); len(got) != 1 || got[0] != want {
			t.Errorf("%q went out as %q", tc.path, got)
		}
	}
}

func TestHostHeader(t *testing.T) {
	s := answers(t, okAnswer, false)
	addr := strings.TrimPrefix(s.url, "http://")
	c := newClient(t, func(cfg *Config) { cfg.ConnectTo = []string{"::" + addr} })
	for _, tc := range []struct{ url, want string }{
		{"http://one.example/", "one.example"},
		{"http://one.example:80/", "one.example"},
		{"http://one.example:8080/", "one.example:8080"},
		{"http://user:secret@one.example:81/", "one.example:81"},
		{"http://[2001:db8::1]:8080/", "[2001:db8::1]:8080"},
		{"http://[2001:db8::1]/", "[2001:db8::1]"},
	} {
		if _, _, err := get(c, tc.url); err != nil {
			t.Fatal(tc.url, err)
		}
		all := s.requests()
		if got := all[len(all)-1]; !strings.Contains(got, "\r\nHost: "+tc.want+"\r\n") {
			t.Errorf("%s: %q", tc.url, got)
		}
	}
}

func TestHeadersAndCredentials(t *testing.T) {
	s := answers(t, okAnswer, false)
	addr := strings.TrimPrefix(s.url, "http://")
	c := newClient(t, func(cfg *Config) { cfg.ConnectTo = []string{"::" + addr} })
	do := func(url string, header ...[2]string) string {
		var resp Response
		if err := c.Do(context.Background(), &Request{URL: url, Header: header}, &resp, &collector{}); err != nil {
			t.Fatal(err)
		}
		all := s.requests()
		return all[len(all)-1]
	}
	basic := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("us@er:p:w")) + "\r\n"
	if got := do("http://us%40er:p:w@a.example/x"); !strings.Contains(got, basic) || !strings.HasPrefix(got, "GET /x HTTP/1.1\r\n") {
		t.Errorf("userinfo: %q", got)
	}
	if got := do("http://b.example/"); strings.Contains(got, "Authorization") {
		t.Errorf("credentials went to another host: %q", got)
	}
	got := do("http://u:p@a.example/", [2]string{"authorization", "Bearer x"}, [2]string{"user-agent", "other"}, [2]string{"X-Site", "1"})
	if strings.Contains(got, "Basic") || !strings.Contains(got, "authorization: Bearer x\r\nuser-agent: other\r\nX-Site: 1\r\n") ||
		strings.Contains(got, "User-Agent") || strings.Count(got, "Accept: ") != 1 {
		t.Errorf("extra headers: %q", got)
	}
	for _, bad := range [][2]string{{"X-A", "b\r\nc: d"}, {"X A", "b"}, {"Host", "c.example"}, {"Content-Length", "5"}, {"", "x"}} {
		var resp Response
		err := c.Do(context.Background(), &Request{URL: "http://a.example/", Header: [][2]string{bad}}, &resp, &collector{})
		if class(err) != ClassURL || strings.Contains(err.Error(), bad[1]) && bad[1] != "x" && bad[1] != "b" && bad[1] != "5" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestBadURLs(t *testing.T) {
	c := newClient(t, nil)
	for _, u := range []string{"", "ftp://a/", "http://", "http:///x", "http://a b/", "http://a\r\n/", "http://ü.example/",
		"http://a:0/", "http://a:65536/", "http://a:x/", "http://[::1/", "http://[::1]x/", "http://A/"} {
		resp, h, err := get(c, u)
		if class(err) != ClassURL || h.began != 0 || resp.Status != 0 {
			t.Errorf("%q: %v", u, err)
		}
	}
}
