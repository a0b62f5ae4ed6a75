package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"seine/bench/load"
	"seine/bench/web"
)

// origin is the server of all sites.
type origin interface {
	port() int
	pid() int // 0 where it is this process
	// stop ends it and tells what it saw, in any order.
	stop() ([]hit, error)
}

// hit is one request as its server saw it.
type hit struct {
	site netip.Addr
	at   time.Time
	late time.Duration // it came at most so much earlier; negative: not known
	page bool          // no robots.txt
}

// serve starts the server that a row asks for.
func serve(dir string, r *row) (origin, error) {
	var way load.Way
	if r.https {
		var err error
		if way.Chain, err = load.NewChain(dir, "p384"); err != nil {
			return nil, err
		}
		for i := range r.sites {
			if err := way.Chain.Add(load.Address(i).String()); err != nil {
				return nil, err
			}
		}
	}
	if r.late > 0 {
		return serveLate(r, way.Chain)
	}
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"index.html": r.index(), "page.html": page("")} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	// A worker holds no more connections than open files. One does for a fetcher
	// that is held by the same limit.
	workers := 1
	if r.fleet() > 1 {
		workers = r.fleet() + 1
	}
	probes := 4 * workers
	if r.https {
		for _, a := range probeAddresses(probes) {
			if err := way.Chain.Add(a.String()); err != nil {
				return nil, err
			}
		}
	}
	server, err := load.Wide(dir, root, workers, way)
	if err != nil {
		return nil, err
	}
	return &quick{server: server, probe: startProbe(server, probes)}, nil
}

// quick is nginx.
type quick struct {
	server *load.Server
	probe  *probe
}

func (q *quick) port() int { return q.server.Port }
func (q *quick) pid() int  { return q.server.Pid() }

func (q *quick) stop() ([]hit, error) {
	err := q.probe.stop()
	q.server.Stop()
	if err != nil {
		return nil, err
	}
	var hits []hit
	var ways []way // of the hits
	known := make(lateness)
	err = q.server.EachRequest(func(s load.Request) error {
		w := way{s.Worker, s.First}
		if sent, ok := strings.CutPrefix(s.Path, probePath); ok {
			return known.add(w, s.At, sent)
		}
		hits = append(hits, hit{site: s.Site, at: s.At, page: s.Path != "/robots.txt"})
		ways = append(ways, w)
		return nil
	})
	known.sort()
	for i := range hits {
		hits[i].late = known.at(ways[i], hits[i].at)
	}
	return hits, err
}

// late is a server in this process that answers after a time, and that knows
// from the kernel when requests came.
type late struct {
	http  http.Server
	bound int
	mu    sync.Mutex
	hits  []hit
}

func serveLate(r *row, chain *load.Chain) (*late, error) {
	ln, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		return nil, fmt.Errorf("server of late answers: %w", err)
	}
	l := &late{bound: ln.Addr().(*net.TCPAddr).Port}
	index, other := r.index(), page("")
	l.http.ConnContext = web.ConnContext
	l.http.ErrorLog = log.New(io.Discard, "", 0) // fetchers that are stopped end handshakes
	l.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		local, _ := req.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		robots := req.URL.Path == "/robots.txt"
		l.mu.Lock()
		l.hits = append(l.hits, hit{site: local.AddrPort().Addr(), at: web.Arrival(req), page: !robots})
		l.mu.Unlock()
		select {
		case <-time.After(r.late):
		case <-req.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "text/html")
		switch req.URL.Path {
		case "/robots.txt":
			http.NotFound(w, req)
		case "/":
			io.WriteString(w, index)
		default:
			io.WriteString(w, other)
		}
	})
	ln = web.Stamp(ln)
	if chain != nil {
		ln = tls.NewListener(ln, &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			local := hello.Conn.LocalAddr().(*net.TCPAddr)
			return chain.Certificate(local.AddrPort().Addr().Unmap().String())
		}})
	}
	go l.http.Serve(ln)
	return l, nil
}

func (l *late) port() int { return l.bound }
func (l *late) pid() int  { return 0 }

func (l *late) stop() ([]hit, error) {
	err := l.http.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hits, err
}
