package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// conn is one connection to a host with the deadlines of the exchange on it.
// One exchange uses it at a time; only ended may be called from elsewhere.
type conn struct {
	net.Conn             // TCP, or TLS over it
	raw      net.Conn    // the TCP connection below; closing it ends everything at once
	records  *recordConn // between TLS and raw; nil without TLS
	bound    netip.Addr  // raw's own address, where it was asked for
	probe    *probe      // looks at raw while it is idle, and writes requests to it
	used     bool        // it has served an exchange before
	extra    [1]byte     // what drained reads into

	// Of the running exchange.
	total  time.Time     // the end of the exchange
	idle   time.Duration // longest silence between two reads
	armed  time.Time     // the read deadline as set, maybe by an exchange before
	writes time.Time     // the write deadline, likewise
	first  time.Time     // when the first byte came
	in     int64         // bytes read
	maxIn  int64         // bytes at most, framing included
	tap    *Wire         // sees what is read, or nil
	err    error         // the first error reading or writing met

	mu      sync.Mutex
	busy    bool            // an exchange is under way
	aborted bool            // its context ended meanwhile
	watched <-chan struct{} // of the context that is waited for; nil for none
	unwatch func() bool

	prev, next *conn // in the pool's list
	home       *host
	until      time.Time // when it is closed if it stays idle
	bytes      int64     // of memory that it takes while it is idle
	dropped    bool      // out of the pool for good
	pool       *pool     // counts it as open
}

var errFlood = errors.New("far more bytes of framing than of body")

func newConn(nc, raw net.Conn, rr *recordConn, p *pool) *conn {
	return &conn{Conn: nc, raw: raw, records: rr, probe: newProbe(raw), pool: p}
}

// close drops the connection without the goodbye of TLS, which could block, and
// gives back its room. It is called once.
func (c *conn) close() {
	c.mu.Lock()
	c.unwatchLocked()
	c.mu.Unlock()
	c.raw.Close()
	if c.records != nil {
		c.records.letGo()
	}
	c.pool.unclaim(c.dropped)
}

// watch begins an exchange that the end of ctx ends at once. Most contexts come with
// many requests, one after the other on the same connection: ctx stays watched when
// the exchange is over, and the next one with it has nothing to do.
func (c *conn) watch(ctx context.Context) {
	done := ctx.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = true
	if c.watched == done {
		return
	}
	c.unwatchLocked()
	if c.watched = done; done != nil {
		c.unwatch = context.AfterFunc(ctx, func() { c.ended(done) })
	}
}

// ended is called when a watched context ended: it closes the connection under an
// exchange, and leaves an idle one alone.
func (c *conn) ended(done <-chan struct{}) {
	c.mu.Lock()
	ours := c.watched == done
	if ours {
		c.watched, c.unwatch = nil, nil
		c.aborted = c.busy
	}
	abort := ours && c.aborted
	c.mu.Unlock()
	if abort {
		c.raw.Close()
	}
}

// rest ends the exchange. It reports whether the connection outlived it.
func (c *conn) rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	return !c.aborted
}

func (c *conn) unwatchLocked() {
	if c.unwatch != nil {
		c.unwatch()
	}
	c.watched, c.unwatch = nil, nil
}

// reset makes close free the port at once, instead of after a minute.
func (c *conn) reset() {
	if tc, ok := c.raw.(*net.TCPConn); ok {
		tc.SetLinger(0) //nolint:errcheck // the port is free later then
	}
}

// leadsTo says whether the TCP connection is one to a.
func (c *conn) leadsTo(a netip.AddrPort) bool {
	ta, ok := c.raw.RemoteAddr().(*net.TCPAddr)
	return ok && int(a.Port()) == ta.Port && a.Addr().AsSlice() != nil && ta.IP.Equal(a.Addr().AsSlice())
}

// drained says, after an answer, whether TLS holds no more bytes of the server,
// and no goodbye: they would answer the next request, and the probe of the
// socket does not see them. It does not wait.
func (c *conn) drained() bool {
	r := c.records
	if r == nil {
		return true
	}
	r.dry = true
	n, err := c.Conn.Read(c.extra[:])
	r.dry = false
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !r.between() {
		return false
	}
	r.letGo()
	return true
}

// What an idle connection takes, and the kernel's socket beside it: TestIdleBytes
// measures it.
const (
	idleBytes    = 1536
	idleTLSBytes = 8 << 10
)

// idleMemory is what c takes when it is idle: a large page over TLS leaves a buffer as
// large as its largest record, and a full handshake the server's chain.
func (c *conn) idleMemory() int64 {
	if c.records == nil {
		return idleBytes
	}
	return idleTLSBytes + int64(c.records.most)*9/8 + int64(c.records.chain)
}

// begin readies c for an exchange that ends at total and whose first byte must
// come within first. Write and first read need no other deadline. One that the exchange
// before has set, and that leaves first to first*9/8, is left alone.
func (c *conn) begin(now, total time.Time, first, idle time.Duration, maxIn int64) error {
	c.total, c.idle, c.maxIn = total, idle, maxIn
	c.first, c.in, c.err = time.Time{}, 0, nil
	soonest, latest := now.Add(first), now.Add(first+first/8) // often the read timeout: arm has nothing to do then
	if total.Before(latest) {
		latest = total
	}
	if total.Before(soonest) {
		soonest = total
	}
	within := func(t time.Time) bool { return !t.Before(soonest) && !t.After(latest) }
	if within(c.armed) && within(c.writes) {
		return nil
	}
	c.armed, c.writes = latest, latest
	c.err = c.Conn.SetDeadline(latest)
	return c.err
}

// arm sets the read deadline for the silence allowed from now. Deadlines cost
// more than clocks: one that leaves idle to idle*9/8 is left alone.
func (c *conn) arm() error {
	now := time.Now()
	left := c.armed.Sub(now)
	if left <= c.idle+c.idle/8 && (left >= c.idle || c.armed.Equal(c.total)) {
		return nil
	}
	c.armed = now.Add(c.idle + c.idle/8)
	if c.total.Before(c.armed) {
		c.armed = c.total
	}
	return c.Conn.SetReadDeadline(c.armed)
}

// ask writes a request under the deadline set by begin, calls sent, and, but over
// TLS, waits for the first byte of the answer without a buffer for it. The read that
// follows says what went wrong with that. TLS holds buffers of its own, and may hold
// bytes that the socket does not show.
func (c *conn) ask(request []byte, sent func()) error {
	written := 0
	if c.Conn == c.raw {
		if written = c.probe.ask(request, sent); written == len(request) {
			return nil
		}
	}
	if _, c.err = c.Conn.Write(request[written:]); c.err == nil {
		sent()
	}
	return c.err
}

// Read reads under the deadlines and remembers what went wrong.
func (c *conn) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.in > 0 {
		if c.err = c.arm(); c.err != nil {
			return 0, c.err
		}
	}
	n, err := c.Conn.Read(p)
	if n > 0 && c.in == 0 {
		c.first = time.Now()
	}
	c.in += int64(n)
	if c.tap != nil {
		c.tap.Response = append(c.tap.Response, p[:n]...)
	}
	if err == nil && c.in > c.maxIn {
		err = errFlood
	}
	c.err = err
	return n, err
}
