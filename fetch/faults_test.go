package fetch

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestFaults: each way in which an answer can be wrong has its class, ends
// without hanging and leaves no connection that another fetch would use.
func TestFaults(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	for _, tc := range []struct {
		name, answer string
		class        string // of the error
		body         string // what the Handler saw
		kept         bool   // the connection may serve again
	}{
		{"well", okAnswer, "", "hello", true},
		{"close at once", "", ClassReset, "", false},
		{"close in the header", "HTTP/1.1 200 OK\r\nContent-Ty", ClassReset, "", false},
		{"length longer than the body", head + "Content-Length: 10\r\n\r\nhello", ClassShort, "hello", false},
		{"length shorter than the body", head + "Content-Length: 3\r\n\r\nhello", "", "hel", false},
		{"no length, until close", head + "\r\nhello", "", "hello", false},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "", "hello", false},
		{"HTTP/1.0 chunked is not", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello", "", "hello", false},
		{"connection: close", head + "Connection: close\r\nContent-Length: 5\r\n\r\nhello", "", "hello", false},
		{"connection: close, one of several", head + "Connection: Upgrade, CLOSE\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", "", "hello", false},
		{"negative length", head + "Content-Length: -5\r\n\r\nhello", "", "hello", false},
		{"two lengths", head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", ClassProtocol, "", false},
		{"length is no number", head + "Content-Length: 5x\r\n\r\nhello", "", "hello", false},
		{"huge length", head + "Content-Length: 99999999999999999999\r\n\r\nhello", "", "hello", false},
		{"chunked", head + "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n", "", "hello", true},
		{"trailers", head + "Trailer: X-A\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-A: b\r\nX-B: c\r\n\r\n", "", "hello", true},
		{"bad trailer", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nno colon\r\n\r\n", "", "hello", false},
		{"trailers without end", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-A: b\r\n", ClassShort, "hello", false},
		{"chunk size is no number", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nxyz\r\n", ClassProtocol, "hello", false},
		{"empty chunk size", head + "Transfer-Encoding: chunked\r\n\r\n\r\nhello\r\n", ClassProtocol, "", false},
		{"chunk size too large", head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello", ClassProtocol, "", false},
		{"negative chunk size", head + "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n", ClassProtocol, "", false},
		{"chunk longer than said", head + "Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n", ClassProtocol, "hel", false},
		{"chunks without end", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", ClassShort, "hello", false},
		{"close in a chunk", head + "Transfer-Encoding: chunked\r\n\r\n9\r\nhello", ClassShort, "hello", false},
		{"gzip cut by close", head + "Content-Encoding: gzip\r\nContent-Length: 900\r\n\r\n\x1f\x8b\x08", ClassShort, "", false},
		{"transfer encoding that does not decode", head + "Transfer-Encoding: gzip\r\n\r\nhello", ClassProtocol, "", false},
		{"unknown transfer encoding", head + "Transfer-Encoding: foo\r\n\r\nhello", ClassProtocol, "", false},
		{"interim answers", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + okAnswer, "", "hello", true},
		{"switching", "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", ClassProtocol, "", false},
		{"header without colon", "HTTP/1.1 200 OK\r\nnocolon\r\nContent-Length: 5\r\n\r\nhello", "", "hello", false},
		{"header without name", "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 5\r\n\r\nhello", "", "hello", false},
		{"NUL in a value", "HTTP/1.1 200 OK\r\nX: \x00\r\nContent-Length: 5\r\n\r\nhello", ClassProtocol, "", false},
		{"folded header", head + "X-A: b\r\n c\r\nContent-Length: 5\r\n\r\nhello", "", "hello", true},
		{"HTTP/0.9", "<html>hello", ClassProtocol, "", false},
		{"another protocol", "SSH-2.0-OpenSSH_9.2\r\n", ClassProtocol, "", false},
		{"HTTP/2", "\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80", ClassProtocol, "", false},
		{"status is no number", "HTTP/1.1 abc OK\r\n\r\n", ClassProtocol, "", false},
		{"status of two digits", "HTTP/1.1 99 OK\r\n\r\n", ClassProtocol, "", false},
		{"status below 100", "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", ClassProtocol, "", false},
		{"status 000", "HTTP/1.1 000 X\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello", ClassProtocol, "", false},
		{"status 000 of HTTP/1.0", "HTTP/1.0 000 X\r\nContent-Type: text/html\r\n\r\nhello", ClassProtocol, "", false},
		{"status 000 behind blanks", "HTTP/1.1   000\r\nContent-Type: text/html\r\n\r\nhello", ClassProtocol, "", false},
		{"status 000 ending in LF", "HTTP/1.1 000 X\nContent-Type: text/html\n\nhello", ClassProtocol, "", false},
		{"status 000 behind an interim answer", "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 000\r\nContent-Length: 5\r\n\r\nhello", ClassProtocol, "", false},
		{"status of four digits", "HTTP/1.1 0200 X\r\nContent-Length: 5\r\n\r\nhello", ClassProtocol, "", false},
		{"strange status", "HTTP/1.1 999 No\r\nContent-Length: 5\r\n\r\nhello", "", "hello", true},
		{"no reason phrase", "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", "", "hello", true},
		{"204 with a body", "HTTP/1.1 204 No Content\r\n\r\nhello", "", "", false},
		{"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n", "", "", true},
		{"blank lines before", "\r\n\r\n" + okAnswer, "", "hello", true},
		{"flood of chunk extension", head + "Transfer-Encoding: chunked\r\n\r\n5;" + strings.Repeat("x", 4<<20), ClassProtocol, "", false},
	} {
		s := serveRaw(t, func(s *rawServer, _ int, nc net.Conn) {
			br := bufio.NewReader(nc)
			if _, ok := s.request(br); !ok {
				return
			}
			io.WriteString(nc, tc.answer)
			if tc.kept {
				br.ReadByte() // until the client closes
			}
		})
		c := newClient(t, func(cfg *Config) { cfg.MaxBody = 1 << 20; cfg.MaxHeader = 16 << 10 })
		resp, h, err := get(c, s.url)
		if class(err) != tc.class || string(h.body) != tc.body {
			t.Errorf("%s: %v, body %q", tc.name, err, h.body)
		}
		if truncated := tc.class != "" && h.began > 0; resp.Truncated != truncated || truncated && resp.Cut != tc.class {
			t.Errorf("%s: truncated %v, cut %q", tc.name, resp.Truncated, resp.Cut)
		}
		if got := c.Stats().Idle; (got == 1) != tc.kept {
			t.Errorf("%s: %d connections kept", tc.name, got)
		}
		if n := len(s.requests()); n != 1 {
			t.Errorf("%s: %d requests for one attempt", tc.name, n)
		}
	}
}

func TestLocations(t *testing.T) {
	for _, tc := range []struct {
		lines, want string
		all         int
	}{
		{"", "", 0},
		{"location: /lower\r\n", "/lower", 1},
		{"LOCATION:/upper\r\n", "/upper", 1},
		{"Location: /one\r\nLocation: /one\r\n", "/one", 2},
		{"Location: \r\nLocation: /one\r\n", "/one", 2},
		{"Location: /é b\r\n", "/é b", 1},
		{"Location: /caf\xe9?q=\xe8%20x\r\n", "/caf%E9?q=%E8%20x", 1},
		{"Location: \r\n", "", 1},
	} {
		s := answers(t, "HTTP/1.1 301 Moved\r\n"+tc.lines+"Content-Length: 0\r\n\r\n", false)
		c := newClient(t, nil)
		resp, h, err := get(c, s.url)
		if err != nil || resp.Location != tc.want || h.last.Location != tc.want || len(resp.Header.Values("location")) != tc.all {
			t.Errorf("%q: %v %+v", tc.lines, err, resp)
		}
		if c.Stats().Idle != 1 || len(s.requests()) != 1 {
			t.Errorf("%q: followed or dropped", tc.lines)
		}
	}
	for lines, want := range map[string]string{ // bytes that no header may hold become what a URL makes of them
		"Location: /a\x01b\rc\r\n": "/a%01bc",
		"Location : /a\n":          "/a",
	} {
		s := answers(t, "HTTP/1.1 301 Moved\r\n"+lines+"Content-Length: 0\r\n\r\n", false)
		if resp, _, err := get(newClient(t, nil), s.url); err != nil || resp.Location != want {
			t.Errorf("%q: %v %q", lines, err, resp.Location)
		}
	}
	s := answers(t, "HTTP/1.1 301 Moved\r\nLocation: /one\r\nLocation: /two\r\nContent-Length: 0\r\n\r\n", false)
	c := newClient(t, nil)
	if resp, h, err := get(c, s.url); class(err) != ClassProtocol || !errors.Is(err, errLocations) || resp.Location != "" || h.began != 0 || c.Stats().Idle != 0 {
		t.Errorf("two: %v %+v", err, resp)
	}
}

func TestHeaderLookup(t *testing.T) {
	s := answers(t, "HTTP/1.1 200 OK\r\netag: \"x\"\r\nLast-Modified: then\r\nset-cookie: a=b\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 0\r\n\r\n", false)
	c := newClient(t, nil)
	resp, _, err := get(c, s.url)
	if err != nil {
		t.Fatal(err)
	}
	h := resp.Header
	if h.Get("ETag") != `"x"` || h.Get("last-modified") != "then" || strings.Join(h.Values("X-a"), ",") != "1,2" || h.Get("None") != "" || h.Values("None") != nil {
		t.Errorf("%q %q %q", h.Get("ETag"), h.Get("last-modified"), h.Values("X-a"))
	}
	seen := map[string]int{}
	h.Each(func(name, value string) { seen[strings.ToLower(name)+"="+value]++ })
	for _, want := range []string{`etag="x"`, "last-modified=then", "set-cookie=a=b", "x-a=1", "x-a=2", "content-length=0"} {
		if seen[want] != 1 {
			t.Errorf("%s seen %d times in %v", want, seen[want], seen)
		}
	}
	// A failed fetch into the same Response shows nothing of the one before.
	if err := c.Do(t.Context(), &Request{URL: "http://127.0.0.1:1/"}, resp, &collector{}); class(err) != ClassConnect ||
		resp.Header.Get("ETag") != "" || resp.Status != 0 || resp.ContentType != "" {
		t.Errorf("%v %+v", err, resp)
	}
}

// TestTimeouts: each limit of time ends with its own class.
func TestTimeouts(t *testing.T) {
	const short, long = 60 * time.Millisecond, time.Hour // where long strikes, FetchTimeout does before
	drip := func(head string) func(*rawServer, int, net.Conn) {
		return func(s *rawServer, _ int, nc net.Conn) {
			s.request(bufio.NewReader(nc))
			io.WriteString(nc, head)
			for {
				if _, err := nc.Write([]byte("x")); err != nil {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
	stall := func(what string) func(*rawServer, int, net.Conn) {
		return func(s *rawServer, _ int, nc net.Conn) {
			s.request(bufio.NewReader(nc))
			io.WriteString(nc, what)
			io.Copy(io.Discard, nc)
		}
	}
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000000\r\n\r\n"
	for _, tc := range []struct {
		name   string
		handle func(*rawServer, int, net.Conn)
		cfg    Config
		class  string
	}{
		{"silent", stall(""), Config{FirstByteTimeout: short, ReadTimeout: long, FetchTimeout: 20 * time.Second}, ClassFirstByte},
		{"silent in the header", stall("HTTP/1.1 2"), Config{FetchTimeout: 20 * time.Second, FirstByteTimeout: long, ReadTimeout: short}, ClassIdle},
		{"silent in the body", stall(head + "hello"), Config{FetchTimeout: 20 * time.Second, FirstByteTimeout: long, ReadTimeout: short}, ClassIdle},
		{"silent in the body, no first-byte limit", stall(head + "hello"), Config{FetchTimeout: 20 * time.Second, ReadTimeout: short, FirstByteTimeout: 20 * time.Second}, ClassIdle},
		{"silent, total", stall(""), Config{FetchTimeout: short, ReadTimeout: long}, ClassTimeout},
		{"drip in the header", drip("HTTP/1.1 200 "), Config{FetchTimeout: 4 * short, ReadTimeout: long}, ClassTimeout},
		{"drip in the body", drip(head), Config{FetchTimeout: 4 * short, ReadTimeout: long}, ClassTimeout},
		{"drip of chunks", drip("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;"), Config{FetchTimeout: 4 * short, ReadTimeout: long}, ClassTimeout},
	} {
		s := serveRaw(t, tc.handle)
		c := newClient(t, func(cfg *Config) { tc.cfg.AllowNet = cfg.AllowNet; *cfg = tc.cfg })
		resp, h, err := get(c, s.url)
		if class(err) != tc.class || !err.(*Error).Retry {
			t.Errorf("%s: %v", tc.name, err)
		}
		if h.began > 0 && (!resp.Truncated || resp.Cut != tc.class || resp.Bytes != int64(len(h.body))) {
			t.Errorf("%s: %+v", tc.name, resp)
		}
		if s := c.Stats(); s.Idle != 0 || s.Hosts != 0 {
			t.Errorf("%s: %+v", tc.name, s)
		}
	}
}

// TestRequestTimeout: a request's own time counts before the client's.
func TestRequestTimeout(t *testing.T) {
	s := serveRaw(t, func(s *rawServer, _ int, nc net.Conn) { io.Copy(io.Discard, nc) })
	c := newClient(t, nil)
	var resp Response
	err := c.Do(t.Context(), &Request{URL: s.url, Timeout: 30 * time.Millisecond}, &resp, &collector{})
	if class(err) != ClassTimeout || !errors.Is(err, errTotal) {
		t.Errorf("%v %+v", err, resp)
	}
}

func TestResetInBody(t *testing.T) {
	s := serveRaw(t, func(s *rawServer, _ int, nc net.Conn) {
		s.request(bufio.NewReader(nc))
		io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 100\r\n\r\nhello")
		nc.(*net.TCPConn).SetLinger(0)
	})
	c := newClient(t, nil)
	resp, h, err := get(c, s.url)
	if class(err) != ClassReset || h.began == 1 && (!resp.Truncated || resp.Cut != ClassReset) {
		t.Errorf("%v %+v", err, resp)
	}
}
