package memory

import (
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// holder is the number of the process that listens on a socket, "?" when it cannot be
// found out.
func holder(socket string) string {
	if to, err := os.Readlink(socket); err == nil {
		socket = to
	}
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return "?"
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return "?"
	}
	pid := "?"
	raw.Control(func(fd uintptr) {
		if who, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = strconv.Itoa(int(who.Pid))
		}
	})
	return pid
}
