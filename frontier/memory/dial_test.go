package memory

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"seine/frontier"
)

// A socket that a killed process left is no process: Open opens the crawl itself,
// and Serve puts its own in the place.
func TestSocketOfTheKilled(t *testing.T) {
	dir, left := crawled(t)
	l, err := net.Listen("unix", filepath.Join(dir, socketName))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	f, err := Open(t.Context(), dir, log)
	if err != nil {
		t.Fatal(err)
	}
	own, ok := f.(*Frontier)
	if !ok {
		t.Fatalf("opened as %T", f)
	}
	if err := own.Serve(); err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	r, err := Open(t.Context(), dir, log)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := r.Stats(t.Context())
	if err != nil || s[0].Queued+s[0].Waiting != int64(len(left)) {
		t.Errorf("%+v, %v; %d URLs are left", s, err, len(left))
	}
	// Two who change settings at once both have their way.
	done := make(chan error)
	for range 2 {
		go func() {
			var err error
			for range 50 {
				if _, _, e := r.Set(t.Context(), func(s *frontier.Settings) error { s.MaxDepth++; return nil }); e != nil {
					err = e
				}
			}
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if depth := own.Settings().MaxDepth; depth != 100 {
		t.Errorf("of 100 changes %d are there", depth)
	}
	if err := r.Alter(t.Context(), 9, "a.example", frontier.SiteChange{}); err == nil {
		t.Error("a shard that is not there was changed")
	}
}

// TestStoppedProcess: of a process that has the crawl open and is stopped, before a call
// or during one, the error says which it is.
func TestStoppedProcess(t *testing.T) {
	dir, _ := crawled(t)
	l, err := net.Listen("unix", filepath.Join(dir, socketName))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Open(t.Context(), dir, slog.New(slog.DiscardHandler)) // nobody accepts
	who := "?"
	if runtime.GOOS == "linux" {
		who = strconv.Itoa(os.Getpid())
	}
	if !errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), "process "+who+" has "+dir+" open") {
		t.Error(err)
	}
	var stopped atomic.Bool
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stopped.Load() {
			<-r.Context().Done()
			return
		}
		w.Write([]byte("{}"))
	})}
	go server.Serve(l)
	defer server.Close()
	r, err := Open(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stopped.Store(true)
	if _, err := r.Report(t.Context()); !errors.Is(err, ErrSilent) {
		t.Error(err)
	}
}
