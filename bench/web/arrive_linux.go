package web

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp makes the connections of a TCP listener know when the bytes that were
// read last arrived, by the kernel's clock: a request that this process was too
// busy to look at keeps its time. Serve calls it; a listener that wraps others
// calls it for the innermost and passes Arrived on.
func Stamp(ln net.Listener) net.Listener {
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return ln
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return ln
	}
	var refused error
	err = raw.Control(func(fd uintptr) { // connections inherit it
		refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err != nil || refused != nil {
		return ln
	}
	return stamping{tcp}
}

type stamping struct{ *net.TCPListener }

func (l stamping) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	s := &stamped{TCPConn: c}
	if s.raw, err = c.SyscallConn(); err != nil {
		return nil, err
	}
	s.receive = s.recvmsg
	return s, nil
}

// stamped is a connection that knows when its bytes arrived.
type stamped struct {
	*net.TCPConn
	raw     syscall.RawConn
	receive func(fd uintptr) bool // recvmsg, made once
	into    []byte
	n       int
	err     error
	control [64]byte
	at      atomic.Int64 // nanoseconds of Unix: a server reads on while its handler asks
}

// Arrived is when the last bytes that Read returned came in.
func (c *stamped) Arrived() time.Time { return time.Unix(0, c.at.Load()) }

func (c *stamped) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.into = p
	err := c.raw.Read(c.receive)
	c.into = nil
	switch {
	case err != nil:
		return 0, err
	case c.err != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError("recvmsg", c.err)}
	case c.n == 0:
		return 0, io.EOF
	}
	return c.n, nil
}

// recvmsg reads once; false means that nothing was there.
func (c *stamped) recvmsg(fd uintptr) bool {
	var used int
	for {
		c.n, used, _, _, c.err = unix.Recvmsg(int(fd), c.into, c.control[:], 0)
		if c.err != unix.EINTR {
			break
		}
	}
	if c.err == unix.EAGAIN {
		return false
	}
	if c.err == nil && c.n > 0 {
		c.at.Store(stampIn(c.control[:used]).UnixNano())
	}
	return true
}

// stampIn is the time in a control message, now without one.
func stampIn(control []byte) time.Time {
	if len(control) > 0 {
		h, data, _, err := unix.ParseOneSocketControlMessage(control)
		if err == nil && h.Type == unix.SO_TIMESTAMPNS && len(data) >= 16 { // two numbers of 64 bits
			return time.Unix(int64(binary.NativeEndian.Uint64(data)), int64(binary.NativeEndian.Uint64(data[8:])))
		}
	}
	return time.Now()
}
