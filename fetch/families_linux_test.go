package fetch

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"seine/fetch/egress"
)

// silent listens at an address and answers no connection: its queue is full.
func silent(t *testing.T, addr [4]byte) (port uint16) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: addr}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port = uint16(name.(*unix.SockaddrInet4).Port)
	for range 8 {
		nc, err := net.DialTimeout("tcp", netip.AddrPortFrom(netip.AddrFrom4(addr), port).String(), 100*time.Millisecond)
		if err != nil {
			return port
		}
		t.Cleanup(func() { nc.Close() })
	}
	t.Skip("this system's queues of connections have no bound")
	return 0
}

// TestAttemptsBeside: where an address does not answer the next one is tried beside it
// after 250 ms, four at once at most (RFC 8305, section 5).
func TestAttemptsBeside(t *testing.T) {
	port := silent(t, [4]byte{127, 0, 0, 2})
	ln, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3), Port: int(port)})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	unresponsive, open := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), port), netip.AddrPortFrom(netip.MustParseAddr("127.0.0.3"), port)
	for _, c := range []struct {
		addrs []netip.AddrPort
		least time.Duration
	}{
		{[]netip.AddrPort{open, unresponsive}, 0},
		{[]netip.AddrPort{unresponsive, open}, attemptDelay},
		{[]netip.AddrPort{unresponsive, unresponsive, open}, 2 * attemptDelay},
		{[]netip.AddrPort{unresponsive, unresponsive, unresponsive, open}, 3 * attemptDelay},
	} {
		began := time.Now()
		nc, err := newClient(t, nil).dialer.race(t.Context(), c.addrs, &egress.Pair{})
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
		if took := time.Since(began); took < c.least || took > c.least+5*time.Second {
			t.Errorf("%v: connected after %s, want %s", c.addrs, took, c.least)
		}
	}
}
