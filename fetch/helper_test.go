package fetch

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// newClient makes a client that may speak to this machine.
func newClient(tb testing.TB, change func(*Config)) *Client {
	tb.Helper()
	cfg := Config{AllowNet: loopback}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return c
}

// collector is a Handler that keeps everything.
type collector struct {
	body   []byte
	began  int
	refuse bool
	stop   error // returned by Write
	last   Response
}

func (h *collector) Begin(r *Response) bool {
	h.began++
	h.last = *r
	return !h.refuse
}

func (h *collector) Write(p []byte) (int, error) {
	h.body = append(h.body, p...)
	return len(p), h.stop
}

func get(c *Client, url string) (*Response, *collector, error) {
	var resp Response
	var h collector
	err := c.Do(context.Background(), &Request{URL: url}, &resp, &h)
	return &resp, &h, err
}

// rawServer answers connections with scripts and keeps what it was sent.
type rawServer struct {
	tb   testing.TB
	ln   net.Listener
	url  string
	wg   sync.WaitGroup
	mu   sync.Mutex
	seen []string // requests up to the blank line
	live map[net.Conn]bool
	n    int // connections accepted
}

// serveRaw starts a server whose handle is called for each connection.
func serveRaw(tb testing.TB, handle func(s *rawServer, nr int, nc net.Conn)) *rawServer {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &rawServer{tb: tb, ln: ln, url: "http://" + ln.Addr().String(), live: make(map[net.Conn]bool)}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.n++
			nr := s.n
			s.live[nc] = true
			s.mu.Unlock()
			s.wg.Add(1)
			go func() {
				defer s.wg.Done()
				defer nc.Close()
				handle(s, nr, nc)
			}()
		}
	}()
	tb.Cleanup(func() {
		ln.Close()
		s.mu.Lock()
		for nc := range s.live {
			nc.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

// answers makes a server that gives every request the same bytes; with close
// it ends the connection after them.
func answers(tb testing.TB, answer string, close bool) *rawServer {
	return serveRaw(tb, func(s *rawServer, _ int, nc net.Conn) {
		br := bufio.NewReader(nc)
		for {
			if _, ok := s.request(br); !ok {
				return
			}
			io.WriteString(nc, answer)
			if close {
				return
			}
		}
	})
}

// request reads one request up to the blank line.
func (s *rawServer) request(br *bufio.Reader) (string, bool) {
	var b strings.Builder
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return "", false
		}
		b.WriteString(line)
		if line == "\r\n" {
			s.mu.Lock()
			s.seen = append(s.seen, b.String())
			s.mu.Unlock()
			return b.String(), true
		}
	}
}

func (s *rawServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

func (s *rawServer) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// eventually waits for a condition.
func eventually(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if cond() {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	tb.Fatalf("never happened: %s", what)
}

// testdata finds a directory of shared test data beside the repository.
func testdata(tb testing.TB, dir string) string {
	tb.Helper()
	at, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if exists(filepath.Join(at, "go.mod")) {
			break
		}
		at = filepath.Dir(at)
	}
	for at != filepath.Dir(at) {
		at = filepath.Dir(at)
		if found := filepath.Join(at, "shared", "testdata", dir); exists(found) {
			return found
		}
	}
	tb.Skipf("SKIPPED: shared test data %s is not there", dir)
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// counter is the cheapest Handler.
type counter struct{ n int64 }

func (h *counter) Begin(*Response) bool        { return true }
func (h *counter) Write(p []byte) (int, error) { h.n += int64(len(p)); return len(p), nil }

// page is n bytes of HTML.
func page(n int) []byte {
	const line = "<p>Some text and <a href=\"/a/page/that/is/linked\">a link</a> to somewhere.</p>\n"
	return []byte(strings.Repeat(line, n/len(line)+1)[:n])
}
