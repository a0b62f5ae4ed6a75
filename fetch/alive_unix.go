//go:build unix

package fetch

import (
	"net"
	"syscall"
)

// probe works on a socket below what package net offers. It is made once a connection,
// so that each call costs one system call and no memory.
type probe struct {
	rc   syscall.RawConn
	look func(fd uintptr)
	seen syscall.Errno // what the last look met

	step func(fd uintptr) bool
	out  []byte // what step writes
	sent func()
	n    int // bytes of it that it wrote
}

func newProbe(nc net.Conn) *probe {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	p := &probe{rc: rc}
	p.look = func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		p.seen, _ = err.(syscall.Errno)
	}
	p.step = func(fd uintptr) bool {
		if p.out == nil { // it is the second time: something came, or may have
			return true
		}
		n, _ := syscall.Write(int(fd), p.out)
		whole := n == len(p.out)
		p.out, p.n = nil, max(n, 0)
		if !whole {
			return true
		}
		p.sent()
		p.look(fd) // the poller does not report what was there before it was asked
		return !p.quiet()
	}
	return p
}

// quiet says whether the last look saw nothing.
func (p *probe) quiet() bool { return p.seen == syscall.EAGAIN || p.seen == syscall.EWOULDBLOCK }

// alive says whether nothing happened to an idle connection: neither closed by
// the server nor bytes there that nobody asked for, which the next exchange
// would take for its answer. It does not wait, and the deadline of the exchange before may be over.
func (p *probe) alive() bool {
	if p == nil {
		return true
	}
	return p.rc.Control(p.look) == nil && p.quiet()
}

// ask writes a request, calls sent, and returns when there is something to read, or a
// read would fail, or nobody knows. Where not all could be written at once, for
// whatever reason, ask returns how much was, and the rest is for net.Conn.Write.
func (p *probe) ask(request []byte, sent func()) (written int) {
	if p == nil {
		return 0
	}
	p.out, p.sent, p.n = request, sent, 0
	p.rc.Read(p.step) //nolint:errcheck // the next read or write meets it too
	p.out, p.sent = nil, nil
	return p.n
}
