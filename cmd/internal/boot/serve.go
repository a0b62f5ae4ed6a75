package boot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// Monitor serves what watches a program: /metrics in Prometheus's form, and
// /healthz, which answers 200 when ready and 503 with the reason when not.
// /healthz?live answers 200 as long as the process serves at all: a program
// that waits for Redis must not be killed for that.
type Monitor struct {
	Addr  string                      // [host:]port; loopback when only a port is given
	Ready func(context.Context) error // nil error: ready; called once a request
	Note  func() string               // more that /healthz reports, "" = nothing; or nil
	Write func(io.Writer)             // writes the metrics
	Pprof bool                        // serve /debug/pprof too
	Flag  string                      // that Addr is of, default metrics-addr
}

// metricsFlag is the flag that fetchers have for it.
const metricsFlag = "metrics-addr"

// Start listens and serves until stop is called, which waits for open requests
// a second. It returns the address it listens on.
func (m Monitor) Start() (addr string, stop func(), err error) {
	at, err := ListenAddr(cmp.Or(m.Flag, metricsFlag), m.Addr)
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", cmp.Or(m.Flag, metricsFlag), err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", m.metrics)
	mux.HandleFunc("GET /healthz", m.health)
	if m.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Serve(listener) // ends with ErrServerClosed
	}()
	return listener.Addr().String(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
		<-ended
	}, nil
}

func (m Monitor) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	m.Write(w)
}

func (m Monitor) health(w http.ResponseWriter, r *http.Request) {
	answer := struct {
		Live   bool   `json:"live"`
		Ready  bool   `json:"ready"`
		Reason string `json:"reason,omitempty"`
		Note   string `json:"note,omitempty"`
	}{Live: true, Ready: true}
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if err := m.Ready(ctx); err != nil {
		answer.Ready, answer.Reason = false, err.Error()
	}
	if m.Note != nil {
		answer.Note = m.Note()
	}
	w.Header().Set("Content-Type", "application/json")
	if _, live := r.URL.Query()["live"]; !live && !answer.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	json.NewEncoder(w).Encode(answer) // the client may be gone; nobody else to tell
}
