package boot

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// ErrSignal is the cause of contexts that a signal ended.
var ErrSignal = errors.New("stopped by signal")

// Signals returns two contexts: stop ends with the first SIGINT or SIGTERM,
// abort with the second. After that a signal kills. done takes the handler away.
func Signals(parent context.Context) (stop, abort context.Context, done func()) {
	abort, abortNow := context.WithCancelCause(parent)
	stop, stopNow := context.WithCancelCause(abort)
	heard := make(chan os.Signal, 2)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	signal.Ignore(syscall.SIGXFSZ) // a file that may not grow is waited for, as a full disk is
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, cancel := range []context.CancelCauseFunc{stopNow, abortNow} {
			select {
			case <-heard:
				cancel(ErrSignal)
			case <-parent.Done():
				return
			case <-abort.Done():
				return
			}
		}
		signal.Stop(heard)
	}()
	return stop, abort, func() {
		signal.Stop(heard)
		abortNow(nil)
		<-ended
	}
}
