package fetch

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestPooledMemory: no page ever shows another's bytes, though a tenth of the
// answers come late, some are cut off and all share buffers and decoders.
func TestPooledMemory(t *testing.T) {
	const workers, urls = 200, 10_000
	s := serveRaw(t, func(s *rawServer, _ int, nc net.Conn) {
		br := bufio.NewReader(nc)
		for {
			req, ok := s.request(br)
			if !ok {
				return
			}
			var n int
			fmt.Sscanf(req, "GET /%d ", &n)
			body := bodyOf(n)
			name := []string{"", "gzip", "deflate"}[n%3]
			text := answer(name, encode(t, name, body), n%2 == 0)
			switch {
			case n%10 == 9: // late, beyond the timeout for some
				time.Sleep(time.Duration(n%100) * time.Millisecond / 2)
			case n%17 == 0:
				io.WriteString(nc, text[:len(text)/2])
				return
			}
			if _, err := io.WriteString(nc, text); err != nil {
				return
			}
		}
	})
	c := newClient(t, func(cfg *Config) { cfg.MaxConnsPerHost = workers })
	var next, good, failed atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			var resp Response
			req := Request{Timeout: 0}
			for {
				n := int(next.Add(1))
				if n > urls {
					return
				}
				req.URL, req.Timeout = fmt.Sprintf("%s/%d", s.url, n), 0
				if n%10 == 9 {
					req.Timeout = 30 * time.Millisecond
				}
				h := &collector{}
				err := c.Do(t.Context(), &req, &resp, h)
				want := bodyOf(n)
				if err == nil && !bytes.Equal(h.body, want) || err != nil && !bytes.HasPrefix(want, h.body) {
					t.Errorf("page %d: %v, %d bytes of %d: %.40q", n, err, len(h.body), len(want), h.body)
				}
				if err == nil {
					good.Add(1)
				} else {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if good.Load() < urls/2 || failed.Load() == 0 {
		t.Errorf("%d good, %d failed: the test did not test", good.Load(), failed.Load())
	}
}

func bodyOf(n int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "page %d;", n), 20+n%500)
}

// TestNoLeaks: goroutines and descriptors are back where they were, however
// the fetches ended.
func TestNoLeaks(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	before := descriptors(t)
	func() {
		var wg sync.WaitGroup
		defer wg.Wait() // after the client and the listener are closed
		c, err := New(Config{AllowNet: loopback, ReadTimeout: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		wg.Go(func() {
			for i := 0; ; i++ {
				nc, err := ln.Accept()
				if err != nil {
					return
				}
				wg.Go(func() {
					defer nc.Close()
					if _, err := bufio.NewReader(nc).ReadString('\n'); err != nil {
						return
					}
					io.WriteString(nc, []string{okAnswer, "", "HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nx", answer("", page(200_000), true)}[i%4])
					io.Copy(io.Discard, nc)
				})
			}
		})
		for i := range 60 {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			h := &collector{}
			if i%3 == 0 {
				h.stop = io.ErrShortWrite
			}
			c.Do(ctx, &Request{URL: fmt.Sprintf("http://%s/", ln.Addr())}, new(Response), h)
			cancel()
		}
	}()
	eventually(t, "descriptors are closed", func() bool { return descriptors(t) <= before })
}

func descriptors(tb testing.TB) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		tb.Fatal(err)
	}
	return len(all)
}

// TestPoolBounds: hosts and connections go when they are not used.
func TestPoolBounds(t *testing.T) {
	s := answers(t, okAnswer, false)
	at := strings.TrimPrefix(s.url, "http://")
	c := newClient(t, func(cfg *Config) { cfg.ConnectTo = []string{"::" + at}; cfg.MaxIdle = 10 })
	for i := range 100 {
		if _, _, err := get(c, fmt.Sprintf("http://h%d.example/", i)); err != nil {
			t.Fatal(err)
		}
		if st := c.Stats(); st.Idle > 10 || st.Hosts > 10 {
			t.Fatalf("%+v", st)
		}
	}
	for _, h := range c.pool.hosts {
		if h.key.host < "h90" && len(h.key.host) < len("h90.example") {
			t.Errorf("%s is old and still there", h.key.host)
		}
	}
	c.pool.expire(time.Now().Add(time.Hour))
	if st := c.Stats(); st.Idle != 0 || st.Hosts != 0 {
		t.Errorf("%+v", st)
	}
}

func TestKeepAliveEnds(t *testing.T) {
	s := answers(t, okAnswer, false)
	c := newClient(t, func(cfg *Config) { cfg.KeepAlive = 20 * time.Millisecond })
	if _, _, err := get(c, s.url); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the idle connection is closed", func() bool { return c.Stats().Idle == 0 })
}

// TestKeepAliveTimeout: an idle connection is kept as long as its server keeps it, within
// bounds, and not used after that.
func TestKeepAliveTimeout(t *testing.T) {
	const s = time.Second
	for _, tc := range []struct {
		lines string
		limit time.Duration
		want  time.Duration
	}{
		{"", 0, 30 * s}, {"", 100 * s, 100 * s},
		{"Keep-Alive: timeout=5, max=100\r\n", 0, 5 * s}, {"keep-alive: max=100,TIMEOUT = 5\r\n", 0, 5 * s}, {"Keep-Alive: timeout=\"5\"\r\n", 0, 5 * s},
		{"Keep-Alive: timeout=75\r\n", 0, 75 * s}, {"Keep-Alive: timeout=75\r\n", 40 * s, 40 * s}, {"Keep-Alive: timeout=3600\r\n", 0, 300 * s},
		{"Keep-Alive: timeout=0\r\n", 0, 0}, {"Keep-Alive: 300\r\n", 0, 30 * s}, {"Keep-Alive: timeout=-1\r\n", 0, 30 * s},
		{"Keep-Alive: timeout=99999999999999\r\n", 0, 30 * s}, {"Keep-Alive: timeout=x\r\n", 0, 30 * s}, {"Keep-Alive: idletimeout=5\r\n", 0, 30 * s},
	} {
		server := answers(t, strings.Replace(okAnswer, "\r\n", "\r\n"+tc.lines, 1), false)
		c := newClient(t, func(cfg *Config) { cfg.KeepAlive = tc.limit })
		from := time.Now()
		if _, _, err := get(c, server.url); err != nil || c.Stats().Idle != 1 {
			t.Fatalf("%q: %v, %+v", tc.lines, err, c.Stats())
		}
		idle := c.pool.old.next
		if got := idle.until.Sub(from); got < tc.want || got > tc.want+time.Minute/6 {
			t.Errorf("%q, limit %s: kept for %s, want %s", tc.lines, tc.limit, got, tc.want)
		}
		idle.until = time.Now().Add(-1)
		if _, _, err := get(c, server.url); err != nil || server.connections() != 2 || c.Stats().StaleRetries != 0 {
			t.Errorf("%q: used after its time: %v, %+v", tc.lines, err, c.Stats())
		}
	}
	if err := (&Config{KeepAlive: 301 * s}).Validate(); err == nil {
		t.Error("longer than five minutes")
	}
}

// TestIdleMemory: idle connections take no more memory than there is, and less while
// sessions need it. Of the oldest, the one that takes most is closed.
func TestIdleMemory(t *testing.T) {
	s := answers(t, okAnswer, false)
	c := newClient(t, func(cfg *Config) { cfg.ConnectTo = []string{"::" + strings.TrimPrefix(s.url, "http://")} })
	room := int64(20 * idleBytes)
	c.pool.room = func() int64 { return room }
	visit := func(n int) {
		t.Helper()
		if _, _, err := get(c, fmt.Sprintf("http://h%d.example/", n)); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 20 {
		visit(n)
	}
	large := c.pool.old.next.next.next
	c.pool.bytes += 3 * idleBytes
	large.bytes += 3 * idleBytes // as after a large record
	visit(20)
	if st := c.Stats(); st.Idle != 20 || !large.dropped || c.pool.bytes != room {
		t.Errorf("%+v, %d bytes, the largest dropped: %v", st, c.pool.bytes, large.dropped)
	}
	room /= 2
	visit(21)
	if st := c.Stats(); st.Idle != 10 || c.pool.bytes != room {
		t.Errorf("%+v, %d bytes of %d", st, c.pool.bytes, room)
	}
	room = 0
	visit(22)
	if st := c.Stats(); st.Idle != 0 || c.pool.bytes != 0 {
		t.Errorf("%+v, %d bytes of none", st, c.pool.bytes)
	}

	m := newClient(t, func(cfg *Config) { cfg.Memory = 16_000 })
	if got := m.idleRoom(); got != 10_000 {
		t.Errorf("room for %d bytes", got)
	}
}

func TestUseAfterClose(t *testing.T) {
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	c.Close()
	if _, _, err := get(c, "http://192.0.2.1/"); class(err) != ClassCanceled {
		t.Error(err)
	}
}

// TestNoBufferWhileWaiting: requests whose answers have not begun hold no buffer, and
// read them all the same when they come.
func TestNoBufferWhileWaiting(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("sockets cannot be waited for here")
	}
	const requests = 20
	asked, release := make(chan struct{}, requests), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-release
		fmt.Fprint(w, "hello")
	}))
	t.Cleanup(s.Close)
	var taken atomic.Int32
	c := newClient(t, func(cfg *Config) { cfg.MaxConnsPerHost = requests })
	take := c.readers.New
	c.readers.New = func() any { taken.Add(1); return take() }
	var all sync.WaitGroup
	for range requests {
		all.Go(func() {
			if _, h, err := get(c, s.URL); err != nil || string(h.body) != "hello" {
				t.Error(err)
			}
		})
	}
	for range requests {
		<-asked
	}
	if n := taken.Load(); n != 0 {
		t.Errorf("%d buffers are held by %d requests that wait", n, requests)
	}
	close(release)
	all.Wait()
	if taken.Load() == 0 {
		t.Error("nobody read")
	}
}
