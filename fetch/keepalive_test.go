package fetch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestReuse(t *testing.T) {
	s := answers(t, okAnswer, false)
	c := newClient(t, nil)
	for range 5 {
		if _, h, err := get(c, s.url); err != nil || string(h.body) != "hello" {
			t.Fatal(err)
		}
	}
	if st := c.Stats(); s.connections() != 1 || st.Connections != 1 || st.Reused != 4 || st.Requests != 5 || st.StaleRetries != 0 {
		t.Errorf("%+v", st)
	}
}

// TestReuseAfterReadDeadline: an idle connection outlives the read deadline of
// its last exchange, as where a site's delay is longer than the read timeout.
func TestReuseAfterReadDeadline(t *testing.T) {
	s := answers(t, okAnswer, false)
	c := newClient(t, nil)
	for range 2 {
		if _, h, err := get(c, s.url); err != nil || string(h.body) != "hello" {
			t.Fatal(err)
		}
		idle := c.pool.old.next
		idle.armed = time.Unix(1, 0)
		idle.SetReadDeadline(idle.armed)
	}
	if st := c.Stats(); s.connections() != 1 || st.Reused != 1 {
		t.Errorf("%+v", st)
	}
}

// TestStale: a kept connection that the server closes under the request is
// replaced once, counted, and the body is served once. The client must not see
// the close before it writes, so the server closes when the request arrives.
func TestStale(t *testing.T) {
	for _, reset := range []bool{false, true} {
		var served atomic.Int32
		s := serveRaw(t, func(s *rawServer, nr int, nc net.Conn) {
			br := bufio.NewReader(nc)
			for i := 0; ; i++ {
				if _, ok := s.request(br); !ok {
					return
				}
				if nr == 1 && i == 1 {
					if reset {
						nc.(*net.TCPConn).SetLinger(0)
					}
					return
				}
				served.Add(1)
				io.WriteString(nc, okAnswer)
			}
		})
		c := newClient(t, nil)
		for range 2 {
			if _, h, err := get(c, s.url); err != nil || string(h.body) != "hello" || h.began != 1 {
				t.Fatal(err)
			}
		}
		if st := c.Stats(); st.StaleRetries != 1 || served.Load() != 2 || s.connections() != 2 || st.Requests != 3 {
			t.Errorf("%+v, served %d, %d connections", st, served.Load(), s.connections())
		}
	}
}

// TestStaleOnce: there is one repeat and only when no byte came.
func TestStaleOnce(t *testing.T) {
	for _, tc := range []struct {
		second, third string // answers; the connection closes after them
		class         string
		requests      int
	}{
		{"", "", ClassReset, 3},             // the new one fails as well
		{"HTTP/1.1 200", "", ClassReset, 2}, // a byte came
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", "", ClassShort, 2},
	} {
		s := serveRaw(t, func(s *rawServer, nr int, nc net.Conn) {
			br := bufio.NewReader(nc)
			for i := 0; ; i++ {
				if _, ok := s.request(br); !ok {
					return
				}
				switch {
				case nr == 1 && i == 0:
					io.WriteString(nc, okAnswer)
				case nr == 1:
					io.WriteString(nc, tc.second)
					return
				default:
					io.WriteString(nc, tc.third)
					return
				}
			}
		})
		c := newClient(t, nil)
		get(c, s.url)
		if _, _, err := get(c, s.url); class(err) != tc.class || len(s.requests()) != tc.requests {
			t.Errorf("%q: %v, %d requests", tc.second, err, len(s.requests()))
		}
	}
}

// TestUnaskedBytes: what a server sends on an idle connection is never taken
// for the answer to the next request.
func TestUnaskedBytes(t *testing.T) {
	const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	parked, sent := make(chan struct{}), make(chan struct{})
	park := sync.OnceFunc(func() { close(parked) })
	defer park()
	s := serveRaw(t, func(s *rawServer, nr int, nc net.Conn) {
		br := bufio.NewReader(nc)
		if _, ok := s.request(br); !ok {
			return
		}
		io.WriteString(nc, okAnswer)
		if nr == 1 {
			<-parked
			io.WriteString(nc, evil)
			close(sent)
		}
		io.Copy(io.Discard, nc)
	})
	c := newClient(t, nil)
	if _, _, err := get(c, s.url); err != nil {
		t.Fatal(err)
	}
	park()
	<-sent
	eventually(t, "the bytes arrive", func() bool {
		c.pool.mu.Lock()
		defer c.pool.mu.Unlock()
		return !c.pool.old.next.probe.alive()
	})
	if _, h, err := get(c, s.url); err != nil || string(h.body) != "hello" || s.connections() != 2 {
		t.Errorf("%v %q", err, h.body)
	}
}

// TestSkippedBody: a refused body is read away when it is short, otherwise the
// connection goes.
func TestSkippedBody(t *testing.T) {
	for _, tc := range []struct {
		size    int
		chunked bool
		kept    bool
	}{{10, false, true}, {30_000, false, true}, {40_000, false, false}, {100, true, true}, {100_000, true, false}} {
		s := answers(t, answer("gzip", make([]byte, tc.size), tc.chunked), false)
		c := newClient(t, nil)
		h := &collector{refuse: true}
		var resp Response
		err := c.Do(t.Context(), &Request{URL: s.url}, &resp, h)
		if err != nil || len(h.body) != 0 || resp.Truncated || (c.Stats().Idle == 1) != tc.kept {
			t.Errorf("%+v: %v %+v", tc, err, c.Stats())
		}
	}
}

func TestHandlerStops(t *testing.T) {
	s := answers(t, answer("", page(500_000), true), false)
	c := newClient(t, nil)
	stop := errors.New("enough")
	h := &collector{stop: stop}
	var resp Response
	if err := c.Do(t.Context(), &Request{URL: s.url}, &resp, h); err != stop || len(h.body) == 0 || c.Stats().Idle != 0 {
		t.Errorf("%v, %d bytes", err, len(h.body))
	}
}

// TestCancel: Do returns when its context ends, wherever it is.
func TestCancel(t *testing.T) {
	arrived := make(chan struct{}, 1)
	for name, say := range map[string]string{"header": "", "body": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"} {
		s := serveRaw(t, func(s *rawServer, _ int, nc net.Conn) {
			s.request(bufio.NewReader(nc))
			io.WriteString(nc, say)
			arrived <- struct{}{}
			io.Copy(io.Discard, nc)
		})
		c := newClient(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		var resp Response
		err := c.Do(ctx, &Request{URL: s.url}, &resp, &collector{})
		if class(err) != ClassCanceled || !errors.Is(err, context.Canceled) || c.Stats().Idle != 0 {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Do(ctx, &Request{URL: s.url}, &resp, &collector{}); class(err) != ClassCanceled {
			t.Errorf("ended before: %v", err)
		}
	}
	t.Run("name", func(t *testing.T) {
		asked := make(chan struct{}, 1)
		c := newClient(t, func(cfg *Config) {
			cfg.Resolver = resolverFunc(func(ctx context.Context, _ string) ([]addr, error) {
				asked <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			})
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		if err := c.Do(ctx, &Request{URL: "http://slow.example/"}, new(Response), &collector{}); class(err) != ClassCanceled {
			t.Error(err)
		}
	})
	t.Run("tls", func(t *testing.T) {
		s := serveRaw(t, func(_ *rawServer, _ int, nc net.Conn) { arrived <- struct{}{}; io.Copy(io.Discard, nc) })
		c := newClient(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		if err := c.Do(ctx, &Request{URL: strings.Replace(s.url, "http", "https", 1)}, new(Response), &collector{}); class(err) != ClassCanceled {
			t.Error(err)
		}
	})
	t.Run("slot", func(t *testing.T) {
		s := serveRaw(t, func(_ *rawServer, _ int, nc net.Conn) { arrived <- struct{}{}; io.Copy(io.Discard, nc) })
		c := newClient(t, func(cfg *Config) { cfg.MaxConnsPerHost = 1 })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		for range 2 {
			go func() { ended <- c.Do(ctx, &Request{URL: s.url}, new(Response), &collector{}) }()
		}
		<-arrived
		eventually(t, "the second waits", func() bool {
			c.pool.mu.Lock()
			defer c.pool.mu.Unlock()
			for _, h := range c.pool.hosts {
				return h.refs == 2
			}
			return false
		})
		cancel()
		for range 2 {
			if err := <-ended; class(err) != ClassCanceled {
				t.Error(err)
			}
		}
		if st := c.Stats(); s.connections() != 1 || st.Hosts != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestEarlyAnswer: what a server sent before it was asked is met at once, though the
// poller told of it before: a byte is left of what woke a reader.
func TestEarlyAnswer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for range 5 {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		peer, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		sent := time.AfterFunc(5*time.Millisecond, func() { io.WriteString(peer, "ab") }) // most likely the reader sleeps by then
		defer sent.Stop()
		var b [1]byte
		if _, err := io.ReadFull(nc, b[:]); err != nil {
			t.Fatal(err)
		}
		c, now := newConn(nc, nc, nil, nil), time.Now()
		if err := errors.Join(c.begin(now, now.Add(time.Minute), time.Second, time.Second, 100), c.ask([]byte("request"), func() {})); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(b[:]); n != 1 || b[0] != 'b' || err != nil {
			t.Fatalf("read %q, %v", b[:n], err)
		}
	}
}

// TestContexts: the end of a context ends the exchange that came with it, whatever
// came on its connection before, and leaves alone what is idle or another's.
func TestContexts(t *testing.T) {
	var hold atomic.Bool
	held := make(chan struct{}, 1)
	s := serveRaw(t, func(s *rawServer, _ int, nc net.Conn) {
		br := bufio.NewReader(nc)
		for {
			if _, ok := s.request(br); !ok {
				return
			}
			if hold.Load() {
				held <- struct{}{}
				io.Copy(io.Discard, nc)
				return
			}
			io.WriteString(nc, okAnswer)
		}
	})
	c := newClient(t, nil)
	do := func(ctx context.Context) error { return c.Do(ctx, &Request{URL: s.url}, new(Response), &collector{}) }
	for _, uses := range []int{1, 3} { // of the context whose end cancels
		hold.Store(false)
		other, endOther := context.WithCancel(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		if err := errors.Join(do(context.Background()), do(other)); err != nil {
			t.Fatal(err)
		}
		for range uses - 1 {
			if err := do(ctx); err != nil {
				t.Fatal(err)
			}
		}
		idle := c.pool.old.next
		endOther()
		if uses == 1 {
			eventually(t, "the idle connection knows that its context ended", func() bool {
				idle.mu.Lock()
				defer idle.mu.Unlock()
				return idle.watched == nil
			})
		}
		if err := do(ctx); err != nil || c.pool.old.next != idle {
			t.Fatalf("after the end of another context: %v, kept: %v", err, c.pool.old.next == idle)
		}
		hold.Store(true)
		go func() { <-held; cancel() }()
		if err := do(ctx); class(err) != ClassCanceled || c.Stats().Idle != 0 {
			t.Errorf("after %d requests with a context that ended: %v", uses, err)
		}
	}
	if st := c.Stats(); s.connections() != 2 {
		t.Errorf("%d connections, %+v", s.connections(), st)
	}
}

// TestAllocations holds what Do promises: in the usual case it allocates nothing.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	s := serveRaw(t, func(_ *rawServer, _ int, nc net.Conn) {
		buf, say := make([]byte, 4096), []byte(okAnswer)
		for {
			if _, err := nc.Read(buf); err != nil { // a request is one write
				return
			}
			nc.Write(say)
		}
	})
	signer, _ := signing(t, nil)
	req, resp, h := &Request{URL: s.url + "/"}, new(Response), &counter{}
	ending, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []*Client{newClient(t, nil), signer} {
		for _, ctx := range []context.Context{context.Background(), ending} {
			do := func() {
				if err := c.Do(ctx, req, resp, h); err != nil {
					t.Fatal(err)
				}
			}
			do()
			if n := testing.AllocsPerRun(500, do); n > 0 {
				t.Errorf("%v allocations", n)
			}
		}
	}
}
