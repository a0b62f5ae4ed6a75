package web

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// trial is a URL that answers differently with time.
type trial struct {
	site, n int
	kind    kind
}

// try counts a request for it, from 1.
func (w *Web) try(t trial) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries[t]++
	return w.tries[t]
}

// busyFor is how many requests of a busy URL are turned away.
func busyFor(n int) int { return 1 + n%2 }

// flaky sites answer 503 to the first flakyFor requests for robots.txt; until it
// is there, nothing else of them may be asked for.
func (w *Web) flaky(site int) bool { return w.cfg.Features&Failures != 0 && site%7 == 3 }

const flakyFor = 2

// gated sites show pages to those alone who bring their cookie; others get it, and are
// sent to where they were.
func (w *Web) gated(site int) bool { return w.cfg.Features&Cookies != 0 && site%3 == 1 }

const (
	gateCookie = "seen"
	gateStatus = fasthttp.StatusFound // which no page of a gated site has otherwise
)

// stopped reports whether an answer with that status came from a site's gate.
func (w *Web) stopped(site int, path string, status int) bool {
	if site < 0 || status != gateStatus || !w.gated(site) {
		return false
	}
	k, _, _ := w.resolve(site, []byte(path))
	return k == kindPage
}

const (
	slowBy    = 2 * time.Second
	dripEvery = time.Second
)

// fail answers for URLs that fail in some way.
func (s *Server) fail(ctx *fasthttp.RequestCtx, site int, k kind, n int) {
	switch k {
	case kindBusy:
		if s.web.try(trial{site, n, k}) > busyFor(n) {
			s.html(ctx, "<title>At last</title>")
			return
		}
		if n%3 == 0 {
			ctx.SetStatusCode(fasthttp.StatusTooManyRequests)
			ctx.Response.Header.Set("Retry-After", time.Now().Add(2*time.Second).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))
		} else {
			ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
			ctx.Response.Header.Set("Retry-After", "1")
		}
	case kindBroken:
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
	case kindSlow:
		s.sleep(slowBy)
		s.html(ctx, "<title>Slow</title>")
	case kindDrip:
		ctx.SetContentType("text/html")
		ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
			for s.sleep(dripEvery) {
				if w.WriteByte('x') != nil || w.Flush() != nil {
					return
				}
			}
		})
	case kindReset:
		ctx.HijackSetNoResponse(true)
		ctx.Hijack(func(c net.Conn) {
			if u, ok := c.(interface{ UnsafeConn() net.Conn }); ok {
				c = u.UnsafeConn()
			}
			if tcp, ok := c.(interface{ SetLinger(int) error }); ok {
				_ = tcp.SetLinger(0)
			}
			_ = c.Close()
		})
	}
}

// sleep waits, and reports whether the server still serves then.
func (s *Server) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.closed:
		return false
	}
}

// trap answers for URLs that lead to ever more of their kind.
func (s *Server) trap(ctx *fasthttp.RequestCtx, k kind, n, step int, path []byte) {
	switch k {
	case kindCalendar:
		s.html(ctx, fmt.Sprintf("<title>Month %d</title><a href=/calendar/%d/%d>next</a> <a href=/calendar/%d/%d>year</a>", step, n, step+1, n, step+12))
	case kindSession:
		id := strconv.FormatUint(mix(uint64(s.web.try(trial{0, n, k}))), 36)
		s.html(ctx, fmt.Sprintf("<title>Session</title><a href=/session/%d?sid=%s>a</a> <a href=/session/%d?x=1&amp;sid=%s>b</a>", n, id, n, id))
	case kindEcho:
		query := "?q="
		if _, asked, ok := strings.Cut(string(path), "?"); ok {
			query = "?" + asked
		}
		s.html(ctx, fmt.Sprintf("<title>Search</title><a href=\"%s+more\">more</a> <a href=\"%s+less\">less</a>", query, query))
	case kindDeep:
		base := strings.TrimSuffix(string(path), "/")
		s.html(ctx, fmt.Sprintf("<title>Any</title><a href=%s/down/>down</a> <a href=%s/further/down>further</a>", base, base))
	}
}
