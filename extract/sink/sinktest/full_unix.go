//go:build unix

package sinktest

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

// Alone reports whether this process runs a test alone, for a test that limits what
// the whole process may do. Where it does not, Alone runs it in a process of its own,
// and the test fails unless it passes there.
func Alone(t *testing.T) bool {
	t.Helper()
	const alone = "SEINE_TEST_ALONE"
	if os.Getenv(alone) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), alone+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// LimitFileSize bounds the bytes of files that this process writes until the test
// ends, which stands for a full disk: a write ends in its middle with EFBIG.
func LimitFileSize(t *testing.T, n uint64) {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	now := old
	now.Cur = min(n, old.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		old.Cur = old.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old)
		signal.Reset(syscall.SIGXFSZ)
	})
}
