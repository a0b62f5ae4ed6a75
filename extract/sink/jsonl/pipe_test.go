package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"seine/extract/sink"
	"seine/extract/sink/sinktest"
)

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no pipes here: ", err)
	}
	return path
}

// TestPipeWaitsForReader: a FIFO is opened when somebody reads it, and a stop
// ends the wait.
func TestPipeWaitsForReader(t *testing.T) {
	path := fifo(t)
	waits, stop := make(chan struct{}, 1), make(chan struct{})
	cfg := Config{Path: path, Stop: stop, OnWait: func() { waits <- struct{}{} }}
	opened := make(chan *Sink, 1)
	go func() {
		s, err := Open(cfg)
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	<-waits
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := <-opened
	done := make(chan error, 3)
	for i := range 3 {
		s.Write(record(i), func(err error) { done <- err })
	}
	lines := bufio.NewReader(r)
	for i := range 3 {
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, record(i).URL) {
			t.Errorf("%q, %v", line, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(s.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := Open(cfg)
		ended <- err
	}()
	<-waits
	close(stop)
	if err := <-ended; err == nil {
		t.Error("opened a pipe that nobody reads")
	}
}

// TestPipeReaderLeaves: what the reader of a pipe did not take is not written,
// though the pipe had room for it, and nothing that comes after is.
func TestPipeReaderLeaves(t *testing.T) {
	path := fifo(t)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Config{Path: path})
	done := make(chan error, 2)
	s.Write(record(0), func(err error) { done <- err })
	sinktest.Until(t, "Err is the reason", func() bool { return s.Err() != nil })
	if len(done) != 0 || !strings.Contains(s.Err().Error(), "reads nothing") {
		t.Errorf("%d done, %v", len(done), s.Err())
	}
	// It is taken after all: written once.
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	if err != nil || bytes.Count(buf[:n], []byte("\n")) != 1 {
		t.Errorf("%q, %v", buf[:max(n, 0)], err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.Write(record(1), func(err error) { done <- err })
	sinktest.Until(t, "Err is the reason", func() bool { return s.Err() != nil })
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, sink.ErrGone) {
		t.Errorf("what nobody took ended with %v", err)
	}
	s.Write(record(2), func(err error) { done <- err })
	if err := <-done; !errors.Is(err, sink.ErrGone) {
		t.Errorf("what came later ended with %v", err)
	}
	if err := s.Close(); !errors.Is(err, sink.ErrGone) {
		t.Errorf("Close: %v", err)
	}
	if k := s.Stats().Records; k != 1 {
		t.Errorf("%d records count, want 1", k)
	}
}

// TestLargePipe: more than a pipe holds passes whole.
func TestLargePipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan []byte, 1)
	go func() {
		b, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		got <- b
	}()
	s := open(t, Config{Writer: w})
	put(t, s, 0, 20_000)
	shut(t, s)
	if n := bytes.Count(<-got, []byte("\n")); n != 20_000 {
		t.Errorf("%d lines", n)
	}
}

// TestStandardOutput: a pipe behind standard output, or its name, is not taken
// open for reading; a closed one is refused.
func TestStandardOutput(t *testing.T) {
	if path, ok := os.LookupEnv("SEINE_TEST_STDOUT"); ok {
		s, err := Open(Config{Path: path})
		if err == nil {
			done := make(chan error, 1)
			s.Write(record(0), func(err error) { done <- err })
			err = errors.Join(<-done, s.Close())
		}
		if err != nil {
			os.Stderr.WriteString(err.Error())
		}
		os.Exit(0)
	}
	for _, path := range []string{"", "/dev/stdout"} {
		for name, c := range map[string]struct{ shell, want string }{
			"read":        {`"$0" -test.run='^TestStandardOutput$' | grep -c example`, "1"},
			"nobody":      {`{ "$0" -test.run='^TestStandardOutput$' 2>&3 | exec 0<&-; } 3>&1`, "reader left"},
			"closed":      {`"$0" -test.run='^TestStandardOutput$' 2>&1 >&-`, "closed"},
			"null device": {`"$0" -test.run='^TestStandardOutput$' 2>&1 >/dev/null`, ""},
		} {
			cmd := exec.Command("sh", "-c", c.shell, os.Args[0])
			cmd.Env = append(os.Environ(), "SEINE_TEST_STDOUT="+path)
			out, err := cmd.Output()
			if text := strings.TrimSpace(string(out)); err != nil || !strings.Contains(text, c.want) || c.want == "" && text != "" {
				t.Errorf("%q, %s: %q, %v", path, name, text, err)
			}
		}
	}
}
