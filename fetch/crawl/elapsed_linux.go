package crawl

import (
	"time"

	"golang.org/x/sys/unix"
)

// systemElapsed is a clock that runs on while the machine is suspended, as Go's
// does not, and that nobody sets: the time since the machine was started.
func systemElapsed() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return time.Since(processStart)
	}
	return time.Duration(t.Nano())
}
