//go:build !linux

package crawl

import "time"

// systemElapsed is a clock that nobody sets. It may stop while the machine
// is suspended.
func systemElapsed() time.Duration { return time.Since(processStart) }
