package boot

import (
	"os"
	"syscall"
	"testing"
)

func TestSignals(t *testing.T) {
	stop, abort, done := Signals(t.Context())
	defer done()
	kill := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	kill()
	<-stop.Done()
	if abort.Err() != nil {
		t.Fatal("the first signal aborted")
	}
	kill()
	<-abort.Done()
}
