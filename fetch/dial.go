package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"seine/fetch/egress"
	"seine/fetch/resolver"
)

// dialer makes guarded TCP connections to names.
type dialer struct {
	net      net.Dialer
	guard    guard
	names    *names
	pool     *pool // closes idle connections where the system has no room
	rules    []connectTo
	families families
	m        *meters
}

// connectTo is one rule of curl's --connect-to: requests to host:port go to
// toHost:toPort. Empty parts match anything or keep what was.
type connectTo struct {
	host, port, toHost, toPort string
}

// parseConnectTo reads HOST1:PORT1:HOST2:PORT2; hosts may be IPv6 literals in
// brackets, HOST1 may start with "*." to match every name below.
func parseConnectTo(rule string) (connectTo, error) {
	var parts []string
	rest := rule
	for len(parts) < 4 {
		var part string
		if strings.HasPrefix(rest, "[") {
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				break
			}
			part, rest = rest[1:end], rest[end+1:]
		} else if i := strings.IndexByte(rest, ':'); i >= 0 {
			part, rest = rest[:i], rest[i:]
		} else {
			part, rest = rest, ""
		}
		parts = append(parts, part)
		if !strings.HasPrefix(rest, ":") {
			break
		}
		rest = rest[1:]
	}
	if len(parts) != 4 || rest != "" || !portOrNone(parts[1]) || !portOrNone(parts[3]) {
		return connectTo{}, fmt.Errorf("fetch: connect-to rule %q is not HOST1:PORT1:HOST2:PORT2", rule)
	}
	return connectTo{strings.ToLower(parts[0]), parts[1], strings.ToLower(parts[2]), parts[3]}, nil
}

func portOrNone(s string) bool {
	if s == "" {
		return true
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

func (r *connectTo) matches(host string, port uint16) bool {
	if r.port != "" && r.port != strconv.Itoa(int(port)) {
		return false
	}
	if below, ok := strings.CutPrefix(r.host, "*."); ok {
		return len(host) > len(below) && strings.HasSuffix(host, below) && host[len(host)-len(below)-1] == '.'
	}
	return r.host == "" || r.host == host
}

// route applies the first rule that matches.
func (d *dialer) route(host string, port uint16) (string, uint16) {
	for i := range d.rules {
		r := &d.rules[i]
		if !r.matches(host, port) {
			continue
		}
		if r.toHost != "" {
			host = r.toHost
		}
		if n, err := strconv.ParseUint(r.toPort, 10, 16); err == nil {
			port = uint16(n)
		}
		break
	}
	return host, port
}

// dial connects to a host under the guard; errors are of class dns, family, guard or
// connect, or local. The address first is tried first if it is one of the host's. Rules lead
// to another address, never past the guard.
func (d *dialer) dial(ctx context.Context, host string, port uint16, first netip.Addr, from *egress.Pair) (net.Conn, error) {
	host, port = d.route(host, port)
	addrs, refused := d.permitted(ctx, host, port, from, nil)
	if refused != nil {
		return nil, refused
	}
	known := time.Now()
	if at := slices.Index(addrs, netip.AddrPortFrom(first, port)); at >= 0 {
		addrs[0], addrs[at] = addrs[at], addrs[0]
	} else {
		d.families.putBetterFirst(addrs, known)
	}
	nc, err := d.race(ctx, addrs, from)
	if err != nil {
		e := local(ClassConnect, err)
		if !Local(e.Class) && ctx.Err() == nil {
			d.names.forget(host, known)
		}
		return nil, e
	}
	d.m.connections.Inc()
	return nc, nil
}

// permitted appends the addresses of a host that the guard lets through and that are of a
// family of from; an error where there are none. It keeps nothing of host.
func (d *dialer) permitted(ctx context.Context, host string, port uint16, from *egress.Pair, public []netip.AddrPort) ([]netip.AddrPort, *Error) {
	var literal [2]netip.Addr
	addrs, fault := d.resolve(ctx, host, literal[:0])
	if fault != nil {
		return nil, fault
	}
	var refused error
	unbound := false
	for _, a := range addrs {
		if err := d.guard.check(a); err != nil {
			refused = err
			continue
		}
		if _, ok := from.To(a); !ok {
			unbound = true
			continue
		}
		public = append(public, netip.AddrPortFrom(a.Unmap(), port))
	}
	switch {
	case len(public) > 0:
		return public, nil
	case unbound:
		return nil, d.noFamily(host, from)
	}
	return nil, fail(ClassGuard, refused)
}

// noFamily is why a host whose addresses are all of another family than from cannot be
// asked: it has none, or they did not come yet.
func (d *dialer) noFamily(host string, from *egress.Pair) *Error {
	class := ClassFamily
	if d.names.isPartial(host) {
		class = ClassDNS
	}
	return fail(class, fmt.Errorf("the host has no %s address, and requests to it leave from one (bind)", from.Families()))
}

// resolve returns the addresses of a host: those of a name are shared, and read
// only; what is known without asking is appended to room.
func (d *dialer) resolve(ctx context.Context, host string, room []netip.Addr) ([]netip.Addr, *Error) {
	if looksNumeric(host) { // of any other ParseAddr makes an error
		if a, err := netip.ParseAddr(host); err == nil {
			return append(room, a), nil
		}
	}
	if isLocalhost(host) {
		return append(room, netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()), nil
	}
	addrs, err := d.names.lookup(ctx, host)
	if err != nil {
		return nil, d.nameFailure(err)
	}
	return addrs, nil
}

// looksNumeric says whether a host may be an IP address, as no name of the public DNS does.
func looksNumeric(host string) bool {
	return strings.IndexByte(host, ':') >= 0 || host != "" && host[len(host)-1]-'0' <= 9
}

// nameFailure classes why a name was not resolved.
func (d *dialer) nameFailure(err error) *Error {
	if e, ok := errors.AsType[*resolver.Error](err); ok {
		switch e.Kind {
		case resolver.NoName:
			return fail(ClassNoName, err)
		case resolver.Down:
			class := ClassResolver
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				class = ClassFiles
			}
			d.pool.short.note(class)
			return fail(class, err)
		}
	}
	return fail(ClassDNS, err)
}

// isLocalhost names what is loopback whatever a resolver says (RFC 6761,
// section 6.3).
func isLocalhost(host string) bool {
	host = strings.TrimSuffix(host, ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// dial makes the TCP connection of an exchange: nc to speak on, raw to close.
func (x *exchange) dial(ctx context.Context) (nc, raw net.Conn, err error) {
	if x.px != nil {
		return x.px.tunnel(ctx, &x.c.dialer, &x.t)
	}
	nc, err = x.c.dialer.dial(ctx, x.t.host, x.t.port, x.addr, &x.from)
	return nc, nc, err
}
