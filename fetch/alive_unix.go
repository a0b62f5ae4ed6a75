//go:build unix

package fetch

import "syscall"

// alive says whether nothing happened to an idle connection: neither closed by
// the server nor bytes there that nobody asked for, which the next exchange
// would take for its answer. One system call that does not wait.
func (c *conn) alive() bool {
	sc, ok := c.raw.(syscall.Conn)
	if !ok {
		return true
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	var b [1]byte
	err = rc.Read(func(fd uintptr) bool {
		_, _, e := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = e == syscall.EAGAIN || e == syscall.EWOULDBLOCK
		return true
	})
	return err == nil && quiet
}
