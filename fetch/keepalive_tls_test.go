package fetch

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestUnaskedBytesInTLS: the same for what came in one packet with the answer
// and waits deciphered, or still enciphered, inside the TLS connection, where
// no look at the socket finds it.
func TestUnaskedBytesInTLS(t *testing.T) {
	const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	cert := selfSigned("127.0.0.1")
	for name, say := range map[string][]string{
		"next record": {okAnswer, evil},
		"same record": {strings.Replace(okAnswer, "html\r\n", "html\r\nX-Pad: "+strings.Repeat("x", 16<<10-len(okAnswer)-20)+"\r\n", 1) + evil},
		"304":         {"HTTP/1.1 304 Not Modified\r\n\r\n", evil},
		"goodbye":     {okAnswer, ""},
	} {
		s := serveRaw(t, func(s *rawServer, nr int, nc net.Conn) {
			packet := &packer{Conn: nc}
			tc := tls.Server(packet, &tls.Config{Certificates: []tls.Certificate{cert}})
			br := bufio.NewReader(tc)
			for {
				if _, ok := s.request(br); !ok {
					return
				}
				if nr > 1 {
					io.WriteString(tc, okAnswer)
					continue
				}
				packet.hold = true
				for _, part := range say {
					if part == "" {
						tc.CloseWrite()
					}
					io.WriteString(tc, part)
				}
				packet.flush()
			}
		})
		c := newClient(t, func(cfg *Config) { cfg.InsecureSkipVerify = true })
		url := strings.Replace(s.url, "http", "https", 1)
		if _, _, err := get(c, url); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, h, err := get(c, url); err != nil || string(h.body) != "hello" || s.connections() != 2 || c.Stats().StaleRetries != 0 {
			t.Errorf("%s: %v %q, %d connections, %+v", name, err, h.body, s.connections(), c.Stats())
		}
		if _, h, err := get(c, url); err != nil || string(h.body) != "hello" || s.connections() != 2 {
			t.Errorf("%s: not kept: %v %q, %d connections", name, err, h.body, s.connections())
		}
	}
}

// packer sends what is written while it holds as one packet.
type packer struct {
	net.Conn
	hold bool
	held []byte
}

func (p *packer) Write(b []byte) (int, error) {
	if !p.hold {
		return p.Conn.Write(b)
	}
	p.held = append(p.held, b...)
	return len(b), nil
}

func (p *packer) flush() {
	p.Conn.SetWriteDeadline(time.Time{}) // a goodbye of TLS leaves one
	p.Conn.Write(p.held)
	p.hold, p.held = false, nil
}
