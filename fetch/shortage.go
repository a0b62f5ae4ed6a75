package fetch

import (
	"context"
	"errors"
	"math"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"seine/fetch/egress"
)

// What this machine lacks is no fault of a site. Connections are counted against
// the descriptors that the process may have; idle ones are closed when another
// host needs theirs, and a connection that finds none waits. Where the system
// refuses one all the same, for others hold descriptors too or ports have run
// out, idle connections are closed first; then the failure has a class of its
// own (see Local), and Client.Short names it for a while.

const (
	// unknownLimit stands for a limit of open files that cannot be read.
	unknownLimit = 8192
	// reserveLeast, reserveMost bound the descriptors left to others (Redis,
	// outputs, files, accepted connections): an eighth of all, never more than half.
	reserveLeast, reserveMost = 64, 4096
	// leastConns is what the client works with however often it is refused.
	leastConns = 4
	// unlimitedMemory is what a process without a memory limit is taken to have.
	unlimitedMemory = 1 << 30
	// cacheShare is the part of the memory limit that idle connections, sessions
	// and names may take together.
	cacheShare = 8
)

// connsWithin is how many connections fit a limit of open files.
func connsWithin(files int) int {
	reserve := min(max(reserveLeast, files/8), reserveMost, files/2)
	return max(files-reserve, leastConns)
}

// cacheMemory is the default of Config.Memory: a part of Go's memory limit.
func cacheMemory() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		limit = unlimitedMemory
	}
	return limit / cacheShare
}

// shortFor is how long a shortage is named after it was met: long enough to slow
// down by, short enough to try again.
const shortFor = time.Second

// shortages are when each kind of shortage was met last.
type shortages struct {
	began                        time.Time
	files, ports, bind, resolver atomic.Int64 // since began, 0 = never
}

func (s *shortages) of(class string) *atomic.Int64 {
	switch class {
	case ClassFiles:
		return &s.files
	case ClassPorts:
		return &s.ports
	case ClassBind:
		return &s.bind
	}
	return &s.resolver
}

func (s *shortages) note(class string) { s.of(class).Store(int64(time.Since(s.began))) }

// now names what was lacking within the last moments, "" if nothing was.
func (s *shortages) now() string {
	now := time.Since(s.began)
	for _, class := range [...]string{ClassFiles, ClassPorts, ClassBind, ClassResolver} {
		if at := s.of(class).Load(); at != 0 && now-time.Duration(at) < shortFor {
			return class
		}
	}
	return ""
}

// Short names what this machine lacks for more connections: ClassFiles,
// ClassPorts, ClassBind, ClassResolver, or "" for nothing. While it is not "", requests
// fail or wait for no fault of their sites: start fewer.
func (c *Client) Short() string {
	if c.pool.waits() {
		return ClassFiles
	}
	return c.pool.short.now()
}

// MaxConns is how many connections may be open at once: no more requests than
// that can be under way without waiting for each other.
func (c *Client) MaxConns() int { return c.pool.most }

// lackOf classes an error of a connection to a, "" if nothing was lacking.
func lackOf(err error, a netip.AddrPort) string {
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		return ClassFiles
	case errors.Is(err, syscall.EADDRNOTAVAIL) && hasSource(a):
		return ClassPorts
	}
	return ""
}

// isBindFailure says whether a connection failed for its local address, which this
// machine has no more.
func isBindFailure(err error) bool {
	call, ok := errors.AsType[*os.SyscallError](err)
	return ok && call.Syscall == "bind" && call.Err == syscall.EADDRNOTAVAIL
}

// hasSource says whether this machine has an address to reach a from. Without one,
// as where IPv6 is switched off, the system's error is that of ports which ran
// out. Nothing is sent.
func hasSource(a netip.AddrPort) bool {
	nc, err := net.Dial("udp", a.String())
	if err != nil {
		return false
	}
	nc.Close()
	return true
}

// maxRelief is how often one connection is tried again after idle ones were
// closed for it: others may have been quicker to take their place.
const maxRelief = 8

// connect makes one TCP connection, closing idle ones where the system has no
// room for it.
func (d *dialer) connect(ctx context.Context, a netip.AddrPort, from *egress.Pair) (net.Conn, error) {
	nd, bound := d.net, egress.Local{}
	if from.IsBound() {
		bound, _ = from.To(a.Addr())
		nd.LocalAddr, nd.Control = net.TCPAddrFromAddrPort(netip.AddrPortFrom(bound.Addr, 0)), bound.Control
	}
	for try := 0; ; try++ {
		// Not DialTCP: its zero local address would be bound before the destination
		// is known, so that all destinations share one range of ports.
		nc, err := nd.DialContext(ctx, "tcp", a.String())
		if err == nil {
			return nc, nil
		}
		if isBindFailure(err) {
			bound.Lost(time.Now())
			d.m.boundLost.Inc()
			return nil, fail(ClassBind, err)
		}
		lack := lackOf(err, a)
		if lack == "" {
			return nil, err
		}
		if try == maxRelief || !d.pool.relieve(lack, a, bound.Addr) {
			d.pool.short.note(lack)
			return nil, fail(lack, err)
		}
	}
}

// errFiles says what the operator can do.
var errFiles = errors.New("as many connections are open as the limit of open files allows: raise it (ulimit -n, LimitNOFILE), or lower --concurrency")

// claim takes room for one connection, closing an idle one or waiting if there is
// none. Whoever has it gives it back by unclaim, or conn.close.
func (p *pool) claim(ctx context.Context, d time.Duration) error {
	var end *time.Timer
	for needs := false; ; needs = true {
		p.mu.Lock()
		if !needs {
			p.needed++
		}
		if p.open < p.limit {
			p.open++
			p.needed--
			more := p.waiting > 0 && p.open < p.limit
			p.mu.Unlock()
			if more {
				p.wake()
			}
			return nil
		}
		drop := p.dropNeededLocked()
		if drop == nil {
			p.waiting++
		}
		p.mu.Unlock()
		if drop != nil {
			drop.close()
			continue
		}
		if end == nil {
			end = time.NewTimer(d)
			defer end.Stop()
		}
		var err error
		select {
		case <-p.freed:
		case <-ctx.Done():
			err = ctx.Err()
		case <-end.C:
			err = fail(ClassFiles, errFiles)
			p.short.note(ClassFiles)
		}
		p.mu.Lock()
		p.waiting--
		if err != nil {
			p.needed--
		}
		p.mu.Unlock()
		if err != nil {
			p.wake() // what woke us may have been meant for another
			return err
		}
	}
}

// dropNeededLocked takes an idle connection out of the pool if more room is needed
// than there is and than is being made; the caller closes it.
func (p *pool) dropNeededLocked() *conn {
	if p.parked == 0 || p.needed <= p.limit-p.open+p.closing {
		return nil
	}
	return p.dropLocked(p.old.next)
}

// unclaim gives back the room of one connection, one that was dropped or not.
func (p *pool) unclaim(dropped bool) {
	p.mu.Lock()
	p.open--
	if dropped {
		p.closing--
	}
	wake := p.waiting > 0
	p.mu.Unlock()
	if wake {
		p.wake()
	}
}

func (p *pool) wake() {
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

func (p *pool) waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting > 0
}

// relieve closes idle connections after the system had no room for one to a: an
// eighth of them for a descriptor, and fewer are open from then on; for a port
// those to the same address from the same one, which alone stand in its way. It says
// whether it closed any.
func (p *pool) relieve(lack string, a netip.AddrPort, bound netip.Addr) bool {
	var drop []*conn
	p.mu.Lock()
	if lack == ClassFiles {
		p.limit = max(min(p.limit, p.open-1), leastConns)
		for range (p.parked + 7) / 8 {
			drop = append(drop, p.dropLocked(p.old.next))
		}
	} else {
		for cn, next := p.old.next, (*conn)(nil); cn != &p.old && len(drop) < portsAtOnce; cn = next {
			if next = cn.next; cn.bound == bound && cn.leadsTo(a) {
				drop = append(drop, p.dropLocked(cn))
			}
		}
	}
	p.mu.Unlock()
	for _, cn := range drop {
		if lack == ClassPorts {
			cn.reset()
		}
		cn.close()
	}
	return len(drop) > 0
}

// portsAtOnce is how many ports are freed at once.
const portsAtOnce = 64

// recover lets more connections be open again, some time after the system refused
// one.
func (p *pool) recover() {
	p.mu.Lock()
	p.limit = min(p.most, p.limit+max(1, p.most/32))
	p.mu.Unlock()
	p.wake()
}
