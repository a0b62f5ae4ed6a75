//go:build linux

package chaos

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"seine/bench/web"
)

// trigger looks at what clients ask a web for, and acts before it answers.
type trigger struct {
	text atomic.Pointer[[]byte] // how the request begins
	act  func(client, server *net.TCPAddr)
}

// set arms the trigger.
func (t *trigger) set(text string) {
	b := []byte(text)
	t.text.Store(&b)
}

// listen opens a port for a web, watched by t where there is one.
func listen(t *trigger) (net.Listener, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil || t == nil {
		return ln, err
	}
	return &watched{web.Stamp(ln), t}, nil
}

type watched struct {
	net.Listener
	trigger *trigger
}

func (l *watched) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &watchedConn{c, l.trigger}, nil
}

type watchedConn struct {
	net.Conn
	trigger *trigger
}

// Arrived is when the last bytes that were read did.
func (c *watchedConn) Arrived() time.Time {
	if s, ok := c.Conn.(interface{ Arrived() time.Time }); ok {
		return s.Arrived()
	}
	return time.Now()
}

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if text := c.trigger.text.Load(); text != nil && bytes.HasPrefix(p[:n], *text) {
		c.trigger.act(c.RemoteAddr().(*net.TCPAddr), c.LocalAddr().(*net.TCPAddr))
	}
	return n, err
}

// owns says whether a process holds the client's end of a connection. Connections
// to other servers may come from the same port.
func owns(pid int, client, server *net.TCPAddr) bool {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return false
	}
	name := func(a *net.TCPAddr) string {
		ip := a.IP.To4()
		return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], a.Port)
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 9 && fields[1] == name(client) && fields[2] == name(server) {
			return holds(pid, "socket:["+fields[9]+"]")
		}
	}
	return false
}

// holds says whether a process has a file open.
func holds(pid int, what string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if name, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && name == what {
			return true
		}
	}
	return false
}
