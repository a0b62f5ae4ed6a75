package fetch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// wideServer answers on all addresses of 127/8, one host each, and keeps
// connections.
func wideServer(tb testing.TB) (port int) {
	ln, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		tb.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	live := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			live[nc] = true
			mu.Unlock()
			wg.Go(func() {
				defer nc.Close()
				buf := make([]byte, 1024)
				for {
					if _, err := nc.Read(buf); err != nil { // a request is one write
						mu.Lock()
						delete(live, nc)
						mu.Unlock()
						return
					}
					io.WriteString(nc, okAnswer)
				}
			})
		}
	})
	tb.Cleanup(func() {
		ln.Close()
		mu.Lock()
		for nc := range live {
			nc.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return ln.Addr().(*net.TCPAddr).Port
}

func wideURL(i, port int) string { return fmt.Sprintf("http://127.%d.%d.1:%d/", i>>8, i&255, port) }

const fewFilesEnv = "SEINE_FETCH_FEW_FILES" // the port of a wide server

// TestFewFiles crawls 3,000 hosts with more workers than descriptors, in processes
// that may have few of them.
func TestFewFiles(t *testing.T) {
	if port, err := strconv.Atoi(os.Getenv(fewFilesEnv)); err == nil {
		fewFiles(t, port)
		return
	}
	port := wideServer(t)
	for _, limit := range []int{256, 1024} {
		cmd := exec.Command("sh", "-c", `ulimit -n "$1" && exec "$0" -test.run '^TestFewFiles$' -test.v`, os.Args[0], strconv.Itoa(limit))
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", fewFilesEnv, port))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("limit %d: %v\n%s", limit, err, out)
		} else {
			t.Logf("limit %d: %s", limit, out)
		}
	}
}

func fewFiles(t *testing.T, port int) {
	const hosts = 3000
	c := newClient(t, nil)
	limit := fileLimit()
	workers := limit + 100
	round := func() (good, bad int64, first error) {
		var next, failed atomic.Int64
		var cause atomic.Value
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				var resp Response
				for i := next.Add(1); i <= hosts; i = next.Add(1) {
					if err := c.Do(t.Context(), &Request{URL: wideURL(int(i), port)}, &resp, &counter{}); err != nil {
						failed.Add(1)
						cause.Store(err)
					}
				}
			})
		}
		wg.Wait()
		first, _ = cause.Load().(error)
		return hosts - failed.Load(), failed.Load(), first
	}
	if good, bad, err := round(); bad > 0 {
		t.Errorf("limit %d: %d good, %d failed: %v", limit, good, bad, err)
	}
	open, most := c.pool.openOf()
	if open != c.Stats().Idle || open < most*9/10 || most != c.MaxConns() || most > limit-64 {
		t.Errorf("limit %d: %d of %d open, %d idle", limit, open, most, c.Stats().Idle)
	}
	// Another part of the program takes all that is left, and more of what was
	// reserved than there is.
	var hog []*os.File
	for {
		f, err := os.Open("/dev/null")
		if err != nil {
			break
		}
		hog = append(hog, f)
	}
	if good, bad, err := round(); bad > 0 && (class(err) != ClassFiles || good == 0) {
		t.Errorf("limit %d, no file left: %d good, %d failed: %v", limit, good, bad, err)
	}
	c.pool.expire(time.Now().Add(time.Hour))
	for { // and what the idle ones held
		f, err := os.Open("/dev/null")
		if err != nil {
			break
		}
		hog = append(hog, f)
	}
	if err := c.Do(t.Context(), &Request{URL: wideURL(1, port)}, new(Response), &counter{}); class(err) != ClassFiles || !Local(class(err)) || c.Short() != ClassFiles {
		t.Errorf("limit %d: %v, short of %q", limit, err, c.Short())
	}
	if _, now := c.pool.openOf(); now >= most {
		t.Errorf("limit %d: still %d connections are thought possible", limit, now)
	}
	for _, f := range hog {
		f.Close()
	}
	eventually(t, "shortage over", func() bool { return c.Short() == "" })
	for range 64 {
		c.pool.recover()
	}
	if good, bad, err := round(); bad > 0 {
		t.Errorf("limit %d, files again: %d good, %d failed: %v", limit, good, bad, err)
	}
	if open, now := c.pool.openOf(); now != most || open != c.Stats().Idle {
		t.Errorf("limit %d: %d of %d open, %d idle", limit, open, now, c.Stats().Idle)
	}
}

// TestWaitForRoom: a request waits for another's connection rather than fail, and
// is told what was missing when it waited for too long.
func TestWaitForRoom(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	s := serveRaw(t, func(s *rawServer, _ int, nc net.Conn) {
		br := bufio.NewReader(nc)
		for {
			if _, ok := s.request(br); !ok {
				return
			}
			held <- struct{}{}
			<-hold
			io.WriteString(nc, okAnswer)
		}
	})
	for _, patience := range []time.Duration{time.Minute, 50 * time.Millisecond} {
		c := newClient(t, func(cfg *Config) {
			cfg.MaxConns, cfg.ConnectTimeout = 1, patience
			cfg.ConnectTo = []string{"::" + s.ln.Addr().String()}
		})
		ended := make(chan error, 2)
		go func() { _, _, err := get(c, "http://a.example/"); ended <- err }()
		<-held
		go func() { _, _, err := get(c, "http://b.example/"); ended <- err }()
		if patience < time.Second {
			if err := <-ended; class(err) != ClassFiles || c.Short() != ClassFiles {
				t.Errorf("%v, short of %q", err, c.Short())
			}
			hold <- struct{}{}
		} else {
			eventually(t, "the second waits", func() bool { return c.Short() == ClassFiles })
			hold <- struct{}{}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			<-held
			hold <- struct{}{}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if st := c.Stats(); st.Idle != 1 {
			t.Errorf("%+v", st)
		}
	}
}

// TestFewPorts: connections to one address that have taken all ports make room
// for each other while idle; then the lack is told as what it is.
func TestFewPorts(t *testing.T) {
	const ports = 8
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	slow := serveRaw(t, func(s *rawServer, _ int, nc net.Conn) {
		s.request(bufio.NewReader(nc))
		<-hold
		io.WriteString(nc, okAnswer)
	})
	port := wideServer(t)
	c := newClient(t, func(cfg *Config) {
		cfg.MaxConnsPerHost = 2 * ports
		cfg.ConnectTo = []string{"slow.example::" + slow.ln.Addr().String(), fmt.Sprintf("::127.0.0.1:%d", port)}
	})
	var refused error
	first := portRange(t) // the kernel takes no other range
	c.dialer.net.Control = func(_, _ string, rc syscall.RawConn) error {
		return rc.Control(func(fd uintptr) {
			if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_LOCAL_PORT_RANGE, (first+ports-1)<<16|first); err != nil {
				refused = err
			}
		})
	}
	for i := range 5 * ports {
		_, _, err := get(c, fmt.Sprintf("http://h%d.example/", i))
		if refused != nil {
			t.Skipf("SKIPPED: this kernel knows no range of ports a socket: %v", refused)
		}
		if err != nil {
			t.Fatalf("host %d: %v", i, err)
		}
	}
	if n := c.Stats().Idle; n > ports {
		t.Errorf("%d connections over %d ports", n, ports)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer release()
	var lacking atomic.Int64 // of a port that another program listens on
	for range ports {
		wg.Go(func() {
			if _, _, err := get(c, "http://slow.example/"); class(err) == ClassPorts {
				lacking.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "all ports are in use", func() bool { return slow.connections()+int(lacking.Load()) == ports })
	if _, _, err := get(c, "http://slow.example/"); class(err) != ClassPorts || !Local(class(err)) || c.Short() != ClassPorts {
		t.Errorf("%v, short of %q", err, c.Short())
	}
	if _, _, err := get(c, "http://h1.example/"); err != nil {
		t.Errorf("another address has ports of its own: %v", err)
	}
	release()
	wg.Wait()
	if !hasSource(netip.MustParseAddrPort("127.0.0.1:80")) {
		t.Error("no way to this machine")
	}
}

// portRange is the first port that the kernel gives away.
func portRange(t *testing.T) (first int) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(text), &first)
	}
	if err != nil {
		t.Skipf("SKIPPED: the range of ports cannot be read: %v", err)
	}
	return first
}

// TestNoSource: an address that this machine cannot reach for want of one of its
// own is not reached; it lacks no port.
func TestNoSource(t *testing.T) {
	if a := netip.MustParseAddrPort("[2001:4860::1]:80"); lackOf(syscall.EADDRNOTAVAIL, a) == ClassPorts {
		nc, err := net.DialTimeout("tcp", a.String(), time.Millisecond)
		if err == nil {
			nc.Close()
		}
		t.Logf("this machine speaks IPv6: %v", err)
	}
	for err, want := range map[error]string{syscall.EMFILE: ClassFiles, syscall.ENFILE: ClassFiles, syscall.ECONNREFUSED: "", context.DeadlineExceeded: ""} {
		if got := lackOf(&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", err)}, netip.AddrPort{}); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

func TestConnsWithin(t *testing.T) {
	for files, want := range map[int]int{16: 8, 64: 32, 256: 192, 1024: 896, 20_000: 17_500, 1 << 20: 1<<20 - 4096} {
		if got := connsWithin(files); got != want {
			t.Errorf("%d connections within %d files, want %d", got, files, want)
		}
	}
}
