//go:build !linux

package shardtest

import "syscall"

// dieWithParent is only known to Linux.
func dieWithParent() *syscall.SysProcAttr { return nil }
