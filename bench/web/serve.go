package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Server serves a web until it is closed.
type Server struct {
	web    *Web
	ln     net.Listener
	http   *fasthttp.Server
	ended  chan error
	closed chan struct{}
	once   sync.Once
	bufs   sync.Pool
}

// Listen serves w on an address; ":0" takes a free port of 127.0.0.1.
func (w *Web) Listen(addr string) (*Server, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("web: address %q: %w", addr, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	return w.Serve(ln), nil
}

// Serve serves w on a listener, which it takes over.
func (w *Web) Serve(ln net.Listener) *Server {
	s := &Server{web: w, ln: ln, ended: make(chan error, 1), closed: make(chan struct{})}
	s.bufs.New = func() any { return new([]byte) }
	s.http = &fasthttp.Server{
		Handler:               s.handle,
		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		ReadBufferSize:        32 << 10,
		Logger:                silent{},
		CloseOnShutdown:       true,
	}
	if !w.cfg.NoLog {
		ln = Stamp(ln)
	}
	go func() { s.ended <- s.http.Serve(ln) }()
	return s
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// Addr is the address it listens on.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// ConnectTo is what leads a crawler here, in the syntax of --connect-to.
func (s *Server) ConnectTo() string {
	port := "80"
	if s.web.cfg.Scheme == "https" {
		port = "443"
	}
	return "*" + domain + ":" + port + ":" + s.Addr()
}

// Close stops serving, within a second or two even when clients hold on.
func (s *Server) Close() error {
	var err error
	s.once.Do(func() {
		close(s.closed)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err = s.http.ShutdownWithContext(ctx); errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		// Shutdown knows nothing of a listener that Serve did not yet come to.
		if e := s.ln.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
		if e := <-s.ended; !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	})
	return err
}

// handle answers one request and logs it.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	at := arrived(ctx)
	host := string(bytes.ToLower(ctx.Host()))
	if i := bytes.LastIndexByte([]byte(host), ':'); i >= 0 {
		host = host[:i]
	}
	target := string(ctx.RequestURI())
	s.answer(ctx, s.web.siteOf(host), target)
	if !s.web.cfg.NoLog {
		s.web.record(Request{At: at, Host: host, Target: target, Status: ctx.Response.StatusCode(), Agent: string(ctx.UserAgent())})
	}
}

// arrived is when the request did: as its connection says, else now.
func arrived(ctx *fasthttp.RequestCtx) time.Time {
	if c, ok := ctx.Conn().(interface{ Arrived() time.Time }); ok {
		return c.Arrived()
	}
	return time.Now()
}

// answer writes the response for a target of a site.
func (s *Server) answer(ctx *fasthttp.RequestCtx, site int, target string) {
	w := s.web
	if site < 0 {
		s.notFound(ctx, fasthttp.StatusNotFound)
		return
	}
	var mem [256]byte
	path := appendNormal(mem[:0], target)
	if s.robots(ctx, site, string(path)) {
		return
	}
	k, n, step := w.resolve(site, path)
	if k == kindPage && w.gated(site) && string(ctx.Request.Header.Cookie(gateCookie)) != strconv.Itoa(site) {
		ctx.SetStatusCode(gateStatus)
		ctx.Response.Header.Set("Location", w.cfg.Scheme+"://"+w.Host(site)+target)
		ctx.Response.Header.Set("Set-Cookie", gateCookie+"="+strconv.Itoa(site)+"; Path=/")
		return
	}
	switch k {
	case kindPage:
		s.page(ctx, site, n)
	case kindRedirect:
		if step < 1 || step > w.traits(site, n).hops {
			s.notFound(ctx, fasthttp.StatusNotFound)
			return
		}
		to := link{site: site, kind: kindPage, n: n}
		if step > 1 {
			to.kind, to.step = kindRedirect, step-1
		}
		s.redirect(ctx, to, n)
	case kindLoop:
		s.redirect(ctx, link{site: site, kind: kindLoop, n: n, step: 1 - step&1}, 1)
	case kindHops:
		s.redirect(ctx, link{site: site, kind: kindHops, n: n, step: step + 1}, 1)
	case kindGone:
		s.notFound(ctx, goneStatus(n))
	case kindSoft:
		s.html(ctx, "<title>Not found</title><h1>Nothing here</h1><a href=/>home</a>")
	case kindImage:
		ctx.SetContentType("image/png")
		ctx.SetBodyString("\x89PNG\r\n\x1a\n")
	case kindSecret:
		s.html(ctx, "<title>Secret</title>")
	case kindBusy, kindBroken, kindSlow, kindDrip, kindReset:
		s.fail(ctx, site, k, n)
	case kindNone:
		s.notFound(ctx, fasthttp.StatusNotFound)
	default:
		s.trap(ctx, k, n, step, path)
	}
}

func goneStatus(n int) int {
	if n%3 == 0 {
		return fasthttp.StatusGone
	}
	return fasthttp.StatusNotFound
}

// robots answers for robots.txt, and where one form redirects to.
func (s *Server) robots(ctx *fasthttp.RequestCtx, site int, path string) bool {
	form := robotsOf(s.web, site)
	switch {
	case path == "/robots.txt" && s.web.flaky(site) && s.web.try(trial{site, 0, kindNone}) <= flakyFor:
		s.html(ctx, "<title>Later</title>")
		ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
	case path == "/robots.txt" && form == robotsMoved:
		ctx.Response.Header.Set("Location", "/robots-moved.txt")
		ctx.SetStatusCode(fasthttp.StatusMovedPermanently)
	case path == "/robots.txt" && form == robotsMissing:
		s.notFound(ctx, fasthttp.StatusNotFound)
	case path == "/robots.txt", path == "/robots-moved.txt" && form == robotsMoved:
		ctx.SetContentType("text/plain")
		ctx.SetBodyString(s.web.robotsFile(form))
	default:
		return false
	}
	return true
}

func (s *Server) html(ctx *fasthttp.RequestCtx, text string) {
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.SetBodyString("<!DOCTYPE html><html>" + text)
}

func (s *Server) notFound(ctx *fasthttp.RequestCtx, status int) {
	s.html(ctx, "<title>Not found</title><a href=/>home</a>")
	ctx.SetStatusCode(status)
}

func redirectStatus(salt int) int { return [...]int{301, 302, 303, 307, 308}[salt%5] }

// redirect answers with one of the five codes; every other Location is relative.
func (s *Server) redirect(ctx *fasthttp.RequestCtx, to link, salt int) {
	ctx.SetStatusCode(redirectStatus(salt))
	if salt&1 == 0 {
		ctx.Response.Header.SetBytesV("Location", s.web.appendURL(nil, to.site, to.kind, to.n, to.step))
		return
	}
	ctx.Response.Header.SetBytesV("Location", s.web.appendPath(nil, to.site, to.kind, to.n, to.step))
}

// codings are the codings of bodies; the first is none.
var codings = []string{"", "gzip", "br", "zstd", "deflate", ""}

// page answers with a page of the tree.
func (s *Server) page(ctx *fasthttp.RequestCtx, site, n int) {
	w := s.web
	t := w.traits(site, n)
	h := &ctx.Response.Header
	if w.declaresInPage(site, n) {
		h.SetContentType("text/html")
	} else {
		h.SetContentType("text/html; charset=" + w.sets[t.charset].name)
	}
	h.Set("ETag", `"`+strconv.Itoa(n)+`"`)
	buf := s.bufs.Get().(*[]byte)
	defer s.bufs.Put(buf)
	*buf = w.appendPage((*buf)[:0], site, n)
	coding := codings[t.coding]
	if coding == "" || !bytes.Contains(ctx.Request.Header.Peek("Accept-Encoding"), []byte(coding)) {
		ctx.SetBody(*buf)
		return
	}
	h.Set("Content-Encoding", coding)
	packed := s.bufs.Get().(*[]byte)
	defer s.bufs.Put(packed)
	dst := (*packed)[:0]
	switch coding {
	case "gzip":
		dst = fasthttp.AppendGzipBytesLevel(dst, *buf, fasthttp.CompressBestSpeed)
	case "br":
		dst = fasthttp.AppendBrotliBytesLevel(dst, *buf, 1)
	case "zstd":
		dst = fasthttp.AppendZstdBytesLevel(dst, *buf, 1)
	case "deflate":
		dst = fasthttp.AppendDeflateBytesLevel(dst, *buf, fasthttp.CompressBestSpeed)
	}
	*packed = dst
	ctx.SetBody(dst)
}
