package boot

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestStopEndsReading: a first signal ends a program that waits for the writer
// of a pipe, or for what it writes.
func TestStopEndsReading(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip("no pipes here: ", err)
	}
	each := func(ctx context.Context, in io.Reader, path string, f func(string)) chan error {
		ended := make(chan error, 1)
		go func() {
			ended <- (&SeedFlags{File: []string{path, "/nowhere"}}).Each(ctx, in, func(_, text string, _ error) error {
				f(text)
				return nil
			})
		}()
		return ended
	}
	check := func(what string, ended chan error) {
		t.Helper()
		select {
		case err := <-ended:
			if !errors.Is(err, ErrSignal) || errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: it goes on", what)
		}
	}

	stop, signal := context.WithCancelCause(t.Context())
	ended := each(stop, nil, fifo, func(string) { t.Error("a line of nobody") })
	signal(ErrSignal)
	check("no writer", ended)

	stop, signal = context.WithCancelCause(t.Context())
	got := make(chan string, 1)
	ended = each(stop, nil, fifo, func(text string) { got <- text })
	w, err := os.OpenFile(fifo, os.O_RDWR, 0) // does not wait for the reader
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteString("http://a.example/\n"); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "http://a.example/" {
		t.Errorf("read %q", text)
	}
	signal(ErrSignal)
	check("a silent writer", ended)

	stop, signal = context.WithCancelCause(t.Context())
	r, stdin := io.Pipe()
	defer stdin.Close()
	ended = each(stop, &input{ctx: stop, r: r}, "-", func(string) {})
	signal(ErrSignal)
	check("stdin", ended)
}
