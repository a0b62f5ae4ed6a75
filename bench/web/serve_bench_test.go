package web

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// Requests a second over keep-alive connections on loopback, client included,
// beside those of a server that answers each with the same bytes.
func BenchmarkServe(b *testing.B) {
	for _, c := range []struct {
		name string
		web  Config
	}{
		{"small", Config{Links: 2}},
		{"62 links", Config{}},
		{"62 links, gentle", Config{Features: Gentle}},
	} {
		c.web.Seed, c.web.Sites, c.web.Pages = 1, 1000, 1_000_000
		b.Run(c.name, func(b *testing.B) {
			s := serve(b, c.web)
			measure(b, s.Addr(), s.web)
		})
		b.Run("fixed, "+c.name, func(b *testing.B) {
			w, err := New(c.web)
			if err != nil {
				b.Fatal(err)
			}
			measure(b, fixed(b, w.AppendPage(nil, 0, 7919)), w)
		})
	}
}

// fixed serves one body for all requests.
func fixed(b *testing.B, body []byte) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &fasthttp.Server{ReadBufferSize: 32 << 10, NoDefaultServerHeader: true, Handler: func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("text/html; charset=utf-8")
		ctx.SetBody(body)
	}}
	go s.Serve(ln) //nolint:errcheck // it ends with its listener
	b.Cleanup(func() { s.Shutdown() })
	return ln.Addr().String()
}

// measure asks for pages of the first site.
func measure(b *testing.B, addr string, w *Web) {
	client := &fasthttp.HostClient{Addr: addr, Dial: func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) }}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	start := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		for n := 0; pb.Next(); n = (n + 7919) % w.Pages(0) {
			req.SetRequestURI(w.URL(0, n))
			if err := client.Do(req, resp); err != nil || resp.StatusCode() != 200 {
				b.Error(fmt.Sprint(resp.StatusCode()), err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "requests/s")
}
