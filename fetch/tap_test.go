package fetch

import (
	"context"
	"strings"
	"testing"
)

// TestWire: what was on the wire is reported as it was, the answer alone, also
// where the connection serves another one afterwards.
func TestWire(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 10_000)
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/html\r\n\r\n"
	for _, tc := range []struct {
		name, sent, want string
		body             string // of want
		whole            bool
	}{
		{"length", okAnswer, okAnswer, "hello", true},
		{"chunks and trailers", chunked + "3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nX-A: b\r\n\r\n", chunked + "3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nX-A: b\r\n\r\n", "3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nX-A: b\r\n\r\n", true},
		{"interim answers", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + okAnswer, okAnswer, "hello", true},
		{"empty lines before", "\r\n" + okAnswer, okAnswer, "hello", true},
		{"more behind", okAnswer + "HTTP/1.1 200 OK", okAnswer, "hello", true},
		{"no body", "HTTP/1.1 204 No\r\n\r\n", "HTTP/1.1 204 No\r\n\r\n", "", true},
		{"large", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + long, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + long, long, true},
		{"cut short", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\nhello", "hello", false},
		{"no header", "HTTP/1.1 200 OK\r\nContent-T", "", "", false},
	} {
		s := answers(t, tc.sent, true)
		c := newClient(t, nil)
		wire := Wire{Request: []byte("old"), Response: []byte("old"), Whole: true}
		var resp Response
		c.Do(context.Background(), &Request{URL: s.url + "/p", Header: [][2]string{{"X-A", "b"}}, Wire: &wire}, &resp, new(collector))
		if got := string(wire.Response); got != tc.want || wire.Whole != tc.whole || wire.Addr != "127.0.0.1" {
			t.Errorf("%s: %.200q, whole %v, from %s", tc.name, got, wire.Whole, wire.Addr)
		}
		if string(wire.Response[wire.Body:]) != tc.body {
			t.Errorf("%s: the body begins at %d", tc.name, wire.Body)
		}
		if got := s.requests(); len(got) == 0 || string(wire.Request) != got[len(got)-1] {
			t.Errorf("%s: request %q, sent %q", tc.name, wire.Request, got)
		}
	}
}

// TestWireIsLetGo: a connection whose exchange was recorded does not write into
// the record later.
func TestWireIsLetGo(t *testing.T) {
	s := answers(t, okAnswer, false)
	c := newClient(t, nil)
	var wire Wire
	var resp Response
	if err := c.Do(context.Background(), &Request{URL: s.url, Wire: &wire}, &resp, new(collector)); err != nil {
		t.Fatal(err)
	}
	if err := c.Do(context.Background(), &Request{URL: s.url}, &resp, new(collector)); err != nil || s.connections() != 1 {
		t.Fatal(err, s.connections())
	}
	if string(wire.Response) != okAnswer {
		t.Errorf("%q", wire.Response)
	}
}
