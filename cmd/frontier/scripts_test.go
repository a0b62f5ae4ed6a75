//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A port that is taken by a program that does not listen yet is only seen when
// the node ends: scripts/cluster reports it, and ends the nodes it started.
func TestClusterScriptOnATakenPort(t *testing.T) {
	t.Parallel()
	taken := bound(t)
	dir := t.TempDir()
	cmd := exec.Command(filepath.Join("..", "..", "scripts", "cluster"), "up", "--dir", dir, "--masters", "3", "--port", fmt.Sprint(taken-2))
	out, err := cmd.CombinedOutput()
	text := string(out)
	if strings.Contains(text, "scripts/setup") {
		t.Skip("SKIPPED: ", text)
	}
	// Somebody may listen on the two ports before it.
	if err == nil || !strings.Contains(text, "ended at once") && !strings.Contains(text, "in use by another program") {
		t.Fatalf("%v: %s", err, text)
	}
	ps, err := exec.Command("ps", "-e", "-o", "args=").Output()
	if err != nil {
		t.Skip("no ps: ", err)
	}
	for line := range strings.Lines(string(ps)) {
		for port := taken - 2; port <= taken; port++ {
			if strings.Contains(line, fmt.Sprintf("-server 127.0.0.1:%d ", port)) {
				t.Errorf("left behind: %s", line)
			}
		}
	}
}

// bound takes a port without listening on it.
func bound(t *testing.T) int {
	t.Helper()
	for range 100 {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Close(fd) })
		if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
		name, err := syscall.Getsockname(fd)
		if err != nil {
			t.Fatal(err)
		}
		if at, ok := name.(*syscall.SockaddrInet4); ok && at.Port < 55000 { // the bus takes 10000 more
			return at.Port
		}
	}
	t.Fatal("no port below 55000")
	return 0
}
