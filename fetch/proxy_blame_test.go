package fetch

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestProxyNotToBlame: a fetch that its caller gave up, or whose target the
// proxy cannot reach in time though it serves others, is no fault of the proxy.
func TestProxyNotToBlame(t *testing.T) {
	for _, socks := range []bool{false, true} {
		asked := make(chan struct{}, 8)
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
		for _, tc := range []struct {
			cancel, serves bool
			class          string
		}{
			{true, false, ClassCanceled},
			{false, true, ClassConnect},
			{false, false, ClassProxy}, // nobody knows whether it is alive
		} {
			c := newClient(t, func(cfg *Config) {
				cfg.Proxies = []string{scheme + strings.TrimPrefix(s.url, "http://")}
				if !tc.cancel {
					cfg.ConnectTimeout = 50 * time.Millisecond
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-asked
				if tc.cancel {
					cancel()
				} else if tc.serves {
					c.proxies.all[0].answered(c.m)
				}
			}()
			err := c.Do(ctx, &Request{URL: "https://a.example/"}, new(Response), &collector{})
			if rests := c.proxies.all[0].resting(time.Now()); class(err) != tc.class || rests != (tc.class == ClassProxy) {
				t.Errorf("socks %v, %+v: %v, rests %v", socks, tc, err, rests)
			}
			cancel()
		}
	}
}
