package shardtest

import (
	"fmt"
	"net"
	"testing"
)

// A port that is held is free for the server that it is for, and for no other
// holder.
func TestPortIsHeld(t *testing.T) {
	port, err := freePort(t)
	if err != nil {
		t.Fatal(err)
	}
	taken := func(when string) {
		if release, err := holdPort(port); err == nil {
			release()
			t.Error("held twice ", when)
		}
	}
	taken("before its server listens")
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)) // sets SO_REUSEADDR, as Redis does
	if err != nil {
		t.Fatal(err)
	}
	taken("while its server listens")
	l.Close()
	taken("while its server is down")
}
