package fetch

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// TestProxyGivenUp: that a caller gave up is no fault of the proxy.
func TestProxyGivenUp(t *testing.T) {
	for _, socks := range []bool{false, true} {
		asked := make(chan struct{}, 1)
		s := serveRaw(t, func(_ *rawServer, _ int, nc net.Conn) {
			if socks {
				io.ReadFull(nc, make([]byte, 3))
				nc.Write([]byte{5, 0})
			}
			nc.Read(make([]byte, 1))
			asked <- struct{}{}
			io.Copy(io.Discard, nc) // and no word
		})
		scheme := "http://"
		if socks {
			scheme = "socks5://"
		}
		c := newClient(t, func(cfg *Config) { cfg.Proxies = []string{scheme + strings.TrimPrefix(s.url, "http://")} })
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		err := c.Do(ctx, &Request{URL: "https://a.example/"}, new(Response), &collector{})
		if class(err) != ClassCanceled || c.proxies.all[0].resting(time.Now()) {
			t.Errorf("socks %v: %v", socks, err)
		}
	}
}

// TestProxyVerdict: a proxy that served others while one host kept it waiting
// until the connect timeout is not to blame for that.
func TestProxyVerdict(t *testing.T) {
	c := newClient(t, func(cfg *Config) { cfg.Proxies = []string{"http://proxy.example"} })
	over, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	<-over.Done()
	for _, tc := range []struct {
		name   string
		ctx    context.Context
		serves bool
		err    error
		class  string
	}{
		{"slow host", over, true, io.EOF, ClassConnect},
		{"slow host, as SOCKS tells it", t.Context(), true, os.ErrDeadlineExceeded, ClassConnect},
		{"nobody knows", over, false, io.EOF, ClassProxy},
		{"gone", t.Context(), true, io.EOF, ClassProxy},
		{"its word", t.Context(), false, &targetError{io.EOF}, ClassConnect},
	} {
		p := new(proxy)
		began := time.Now()
		if tc.serves {
			p.answered(c.m)
		}
		if err := p.verdict(tc.ctx, c.m, began, tc.err); err.Class != tc.class || p.resting(time.Now()) != (tc.class == ClassProxy) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
