//go:build !linux

package egress

import (
	"net/netip"
	"syscall"
)

// Control does nothing here: each connection has a port of its own.
func (l Local) Control(_, _ string, _ syscall.RawConn) error { return nil }

// hasRoute is false: only addresses of the machine itself can be bound here.
func hasRoute(netip.Prefix) bool { return false }
