//go:build unix

package fetch

import (
	"math"
	"syscall"
)

// fileLimit is how many descriptors this process may have. Go has raised the soft
// limit to the hard one at the start.
func fileLimit() int {
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		return unknownLimit
	}
	return int(min(uint64(lim.Cur), math.MaxInt32))
}
