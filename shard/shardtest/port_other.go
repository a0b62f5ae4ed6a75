//go:build !linux

package shardtest

import (
	"fmt"
	"net"
)

// holdPort only looks whether a port is free: elsewhere than on Linux a server
// could not take one that is held.
func holdPort(port int) (release func(), err error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	return func() {}, l.Close()
}
