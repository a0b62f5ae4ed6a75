// Package web shows a crawl to people: a page with what stats and why say, and the
// last hour as curves.
//
// One watcher reads the crawl every few seconds, however many pages are open.
// Pages are files of this program; they load nothing from other servers and put text
// of the web into the document as text alone. A request has to name this server as
// its Host, so that no other site's name can stand for it, and none may come from
// another site. Changes need a token in a header, which no other site can send;
// so does reading where the address is not loopback.
package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"seine/cmd/internal/boot"
	"seine/frontier"
)

//go:embed page
var page embed.FS

// Config is a page and its crawl.
type Config struct {
	Frontier frontier.Operated
	Addr     string   // [HOST:]PORT; loopback when only a port is given
	Flag     string   // that Addr is of, for errors
	Changes  bool     // allow changes; they need Token
	Token    string   // of changes, and of reading at an address that is not loopback
	Hosts    []string // names that a proxy serves the page under; who comes by one needs Token to read too
	Log      *slog.Logger
}

// TokenHeader is the header that carries the token.
const TokenHeader = "X-Seine-Token"

// leastToken is how many bytes a token has at least.
const leastToken = 16

// server is a running page.
type server struct {
	cfg      Config
	host     string // that it listens on
	private  bool   // it listens on loopback only
	watch    *watcher
	settings []string // that the page may change
}

// Start serves until stop is called, and returns the address.
func Start(cfg Config) (addr string, stop func(), err error) {
	at, err := boot.ListenAddr(cfg.Flag, cfg.Addr)
	if err != nil {
		return "", nil, boot.Usage("%w", err)
	}
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return "", nil, err
	}
	s := &server{cfg: cfg, host: host, private: isLoopback(host)}
	if cfg.Token != "" && len(cfg.Token) < leastToken {
		return "", nil, boot.Usage("web-token-file: the token has %d bytes, must have %d", len(cfg.Token), leastToken)
	}
	if (cfg.Changes || !s.private || len(cfg.Hosts) > 0) && cfg.Token == "" {
		return "", nil, boot.Usage("%s %s: changes, addresses that are not loopback, and --web-host need a token: put one into a file and name it with --web-token-file", cfg.Flag, cfg.Addr)
	}
	if cfg.Changes {
		if s.settings, err = boot.SettingNames(); err != nil {
			return "", nil, err
		}
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", cfg.Flag, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.watch = newWatcher(cfg.Frontier)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch.run(ctx)
	}()
	web := &http.Server{Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		web.Serve(listener) // ends with ErrServerClosed
	}()
	cfg.Log.Info("serving a page of the crawl", "addr", listener.Addr().String(), "changes", cfg.Changes)
	return listener.Addr().String(), func() {
		cancel()
		web.Close()
		<-ended
		<-watched
	}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *server) routes() http.Handler {
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // it is part of the program
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.Handle("GET /api/now", s.reads(s.now))
	mux.Handle("GET /api/dead", s.reads(s.dead))
	mux.Handle("GET /api/why", s.reads(s.why))
	mux.Handle("GET /api/sites", s.reads(s.sites))
	mux.Handle("GET /api/stopped", s.reads(s.stopped))
	mux.Handle("POST /api/change", s.changes(s.change))
	return s.guard(mux)
}

// policy lets a page load what this server has and nothing else, run no script that
// stands in it, and stand in no other page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard refuses what names another host or comes from another site.
func (s *server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !s.isHost(r.Host) {
			http.Error(w, "this server goes by its address, not by that name; --web-host names those of a proxy", http.StatusMisdirectedRequest)
			return
		}
		if from := r.Header.Get("Sec-Fetch-Site"); from != "" && from != "same-origin" && from != "none" {
			http.Error(w, "not for other sites", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isHost reports whether a Host is this server: an address, which no name of another
// site can stand for, localhost, or the name that it listens on.
func (s *server) isHost(host string) bool {
	name := hostName(host)
	if s.isProxied(name) {
		return true
	}
	ip := net.ParseIP(name)
	if s.private {
		return name == "localhost" || ip != nil && ip.IsLoopback()
	}
	return ip != nil || name == "localhost" || name == s.host
}

// hostName is a Host without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}

// isProxied reports whether a name is one that a proxy serves the page under.
func (s *server) isProxied(name string) bool {
	return slices.ContainsFunc(s.cfg.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// hasToken compares in constant time.
func (s *server) hasToken(r *http.Request) bool {
	want, got := sha256.Sum256([]byte(s.cfg.Token)), sha256.Sum256([]byte(r.Header.Get(TokenHeader)))
	return s.cfg.Token != "" && subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// answer is what a handler has to say.
type answer func(r *http.Request) (any, error)

// errAsked: the request is wrong.
var errAsked = errors.New("web")

// reads serves an answer to whoever may read.
func (s *server) reads(a answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (!s.private || s.isProxied(hostName(r.Host))) && !s.hasToken(r) {
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		}
		reply(w, r, a)
	})
}

// changes serves an answer that changes the crawl, to whoever has the token.
func (s *server) changes(a answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !s.cfg.Changes:
			http.Error(w, "this page is read-only; --allow-changes lets it change the crawl", http.StatusForbidden)
		case !s.hasToken(r):
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
			reply(w, r, a)
		}
	})
}

// missingHeader names the shards that an answer leaves out.
const missingHeader = "X-Seine-Missing"

// askWait bounds one request.
const askWait = 10 * time.Second

func reply(w http.ResponseWriter, r *http.Request, a answer) {
	ctx, cancel := context.WithTimeout(r.Context(), askWait)
	defer cancel()
	v, err := a(r.WithContext(ctx))
	switch {
	case errors.Is(err, errAsked) || errors.Is(err, boot.ErrUsage):
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case errors.Is(err, frontier.ErrPartial) && v != nil: // what the other shards have
		w.Header().Set(missingHeader, strings.ReplaceAll(err.Error(), "\n", "; "))
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // who asked may be gone; nobody else to tell
}
