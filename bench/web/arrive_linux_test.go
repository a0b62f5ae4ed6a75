package web

import (
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// A connection knows when bytes arrived, not when they were looked at.
func TestArrived(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ln = Stamp(ln)
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	right := 0
	for n := 0; right < 3; n++ {
		before := time.Now()
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		sent := time.Now()
		for time.Since(sent) < time.Millisecond { // as if busy
		}
		if k, err := c.Read(make([]byte, 8)); k != 1 || err != nil {
			t.Fatal(k, err)
		}
		switch at := c.(interface{ Arrived() time.Time }).Arrived(); {
		case !at.Before(before.Round(0)) && !at.After(sent.Round(0)):
			right++
		case n > 1000 || right > 0: // the kernel takes a moment to begin
			t.Fatalf("what was sent from %v to %v arrived at %v", before, sent, at)
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !os.IsTimeout(err) {
		t.Errorf("after the deadline: %v", err)
	}
	c.SetReadDeadline(time.Time{})
	client.Close()
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}
