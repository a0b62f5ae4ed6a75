package shardtest

import "syscall"

// dieWithParent lets the kernel kill a server whose test process died without
// its clean-up, as after a time-out.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
