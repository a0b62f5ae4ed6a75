//go:build unix

package fetch

import (
	"net"
	"os"
	"syscall"
)

// probe looks at a socket that nothing is read from. It is made once a connection,
// so that looking costs one system call and no memory.
type probe struct {
	rc    syscall.RawConn
	look  func(fd uintptr)
	ready func(fd uintptr) bool
	first bool          // ready was not called yet
	seen  syscall.Errno // what the last look met
}

// quiet says whether the last look saw nothing.
func (p *probe) quiet() bool { return p.seen == syscall.EAGAIN || p.seen == syscall.EWOULDBLOCK }

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
	p.ready = func(fd uintptr) bool {
		if !p.first {
			return true
		}
		p.first = false
		p.look(fd)
		return !p.quiet()
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
	return p.rc.Control(p.look) == nil && p.quiet()
}

// wait returns when there is something to read, or a read would fail, or nobody
// knows: no buffer is needed until then. The one look stands for the read that would
// have found nothing, so waiting costs no further system call. An error that the look
// took off the socket is returned; all others the next read meets.
func (p *probe) wait() error {
	if p == nil {
		return nil
	}
	p.first, p.seen = true, 0
	if p.rc.Read(p.ready) != nil || p.seen == 0 || p.quiet() {
		return nil
	}
	return os.NewSyscallError("read", p.seen)
}
