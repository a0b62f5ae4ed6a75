//go:build linux

package chaos

import (
	"bytes"
	"net"
)

// trigger looks at what clients ask a web for and acts before it answers.
type trigger struct {
	text []byte // in a request's first bytes
	act  func(client *net.TCPAddr)
}

// listen opens a port for a web, watched by t where there is one.
func listen(t *trigger) (net.Listener, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil || t == nil {
		return ln, err
	}
	return &watched{ln, t}, nil
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

func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if bytes.Contains(p[:n], c.trigger.text) {
		c.trigger.act(c.RemoteAddr().(*net.TCPAddr))
	}
	return n, err
}
