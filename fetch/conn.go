package fetch

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"
)

// conn is one connection to a host with the deadlines of the exchange on it.
// One exchange uses it at a time; only abort may be called from elsewhere.
type conn struct {
	net.Conn          // TCP, or TLS over it
	raw      net.Conn // the TCP connection below; closing it ends everything at once
	abort    func()   // closes raw; made once, given to context.AfterFunc
	probe    *probe   // looks at raw while it is idle
	used     bool     // it has served an exchange before
	extra    [1]byte  // what drained reads into

	// Of the running exchange.
	total  time.Time     // the end of the exchange
	idle   time.Duration // longest silence between two reads
	armed  time.Time     // the read deadline as set
	first  time.Time     // when the first byte came
	in     int64         // bytes read
	maxIn  int64         // bytes at most, framing included
	tap    *Wire         // sees what is read, or nil
	err    error         // the first error reading or writing met
	parked time.Time     // since when it is idle in the pool

	prev, next *conn // in the pool's list
	home       *host
	dropped    bool  // out of the pool for good
	pool       *pool // counts it as open
}

var errFlood = errors.New("far more bytes of framing than of body")

func newConn(nc, raw net.Conn, p *pool) *conn {
	return &conn{Conn: nc, raw: raw, abort: func() { raw.Close() }, probe: newProbe(raw), pool: p}
}

// close drops the connection without the goodbye of TLS, which could block, and
// gives back its room. It is called once.
func (c *conn) close() {
	c.raw.Close()
	c.pool.unclaim(c.dropped)
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
	if c.Conn == c.raw {
		return true
	}
	if c.Conn.SetReadDeadline(longAgo) != nil {
		return false
	}
	n, err := c.Conn.Read(c.extra[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// longAgo lets a read return only what is there already.
var longAgo = time.Unix(1, 0)

// begin readies c for an exchange that ends at total and whose first byte must
// come within first. Write and first read need no other deadline.
func (c *conn) begin(now, total time.Time, first, idle time.Duration, maxIn int64) error {
	c.total, c.idle, c.maxIn = total, idle, maxIn
	c.first, c.in, c.err = time.Time{}, 0, nil
	c.armed = now.Add(first + first/8) // often the read timeout: arm has nothing to do then
	if total.Before(c.armed) {
		c.armed = total
	}
	c.err = c.Conn.SetDeadline(c.armed)
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

// wait waits for the first byte of an answer without a buffer for it, under the
// deadline set by begin; the read that follows says what went wrong. TLS holds
// buffers of its own, and may hold bytes that the socket does not show.
func (c *conn) wait() {
	if c.Conn != c.raw || c.err != nil {
		return
	}
	if err := c.probe.wait(); err != nil {
		c.err = &net.OpError{Op: "read", Net: "tcp", Source: c.raw.LocalAddr(), Addr: c.raw.RemoteAddr(), Err: err}
	}
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

// Write writes under the deadline set by begin.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		c.err = err
	}
	return n, err
}
