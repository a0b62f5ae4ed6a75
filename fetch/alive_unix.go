//go:build unix

package fetch

import (
	"net"
	"syscall"
)

// probe looks at an idle socket. It is made once a connection, so that looking
// costs one system call and no memory.
type probe struct {
	rc    syscall.RawConn
	look  func(fd uintptr)
	quiet bool
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
		_, _, e := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		p.quiet = e == syscall.EAGAIN || e == syscall.EWOULDBLOCK
	}
	return p
}

// alive says whether nothing happened to an idle connection: neither closed by
// the server nor bytes there that nobody asked for, which the next exchange
// would take for its answer. It does not wait, and the deadline of the exchange before may be over.
func (p *probe) alive() bool {
	if p == nil {
		return true
	}
	p.quiet = false
	return p.rc.Control(p.look) == nil && p.quiet
}
