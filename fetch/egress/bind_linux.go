package egress

import (
	"bufio"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Control readies a socket to be bound to l before it is connected, as net.Dialer calls
// it. The port is chosen with the destination, so that connections to different servers
// may share one (IP_BIND_ADDRESS_NO_PORT, ip(7)); where the system does not know that,
// each has a port of its own.
func (l Local) Control(_, _ string, c syscall.RawConn) error {
	var err error
	fault := c.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) //nolint:errcheck // fewer connections then
		if l.source.freebind {
			err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_FREEBIND, 1))
		}
	})
	if fault != nil {
		return fault
	}
	return err
}

// rtfLocal marks a route whose packets are for this machine (RTF_LOCAL of the kernel).
const rtfLocal = 0x80000000

// hasRoute reports whether a local route of this machine leads to all of a network. Of an
// IPv4 network the first and the last address count.
func hasRoute(network netip.Prefix) bool {
	if network.Addr().Is4() {
		return hasAddress(network.Addr()) && hasAddress(within(network, 1<<32-1))
	}
	f, err := os.Open("/proc/net/ipv6_route")
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if route, ok := localRoute(lines.Text()); ok && route.Bits() <= network.Bits() && route.Contains(network.Addr()) {
			return true
		}
	}
	return false
}

// localRoute reads a line of /proc/net/ipv6_route: destination, its prefix length, the
// same of the source, next hop, metric, references, uses, flags, interface. It is false
// for a route that leads elsewhere.
func localRoute(line string) (netip.Prefix, bool) {
	f := strings.Fields(line)
	if len(f) < 10 || len(f[0]) != 32 {
		return netip.Prefix{}, false
	}
	flags, err := strconv.ParseUint(f[8], 16, 32)
	if err != nil || flags&rtfLocal == 0 {
		return netip.Prefix{}, false
	}
	bits, err := strconv.ParseUint(f[1], 16, 8)
	if err != nil {
		return netip.Prefix{}, false
	}
	var a [16]byte
	for i := range a {
		b, err := strconv.ParseUint(f[0][2*i:2*i+2], 16, 8)
		if err != nil {
			return netip.Prefix{}, false
		}
		a[i] = byte(b)
	}
	return netip.PrefixFrom(netip.AddrFrom16(a), int(bits)), true
}
