package boot

import (
	"fmt"
	"io"
	"runtime"
)

// WriteBuild writes what runs, in Prometheus text format.
func WriteBuild(w io.Writer, program string) {
	fmt.Fprintf(w, "seine_build_info{program=%q,version=%q,goversion=%q} 1\n", program, Version(), runtime.Version())
}
