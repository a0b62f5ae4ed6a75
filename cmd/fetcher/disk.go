package main

import (
	"fmt"
	"io"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/sys/unix"
)

// writeDisks writes how much room is left where this process writes, in the text
// format. A disk that cannot be asked is left out: what writes there reports why.
func (g *grammar) writeDisks(w io.Writer, out *outputs) {
	for i, dir := range out.dirs {
		writeDisk(w, out.names[i], dir)
	}
	writeDisk(w, "state", g.State)
	writeDisk(w, "overflow", g.Overflow)
}

func writeDisk(w io.Writer, of, dir string) {
	var fs unix.Statfs_t
	if dir == "" || unix.Statfs(dir, &fs) != nil {
		return
	}
	block := uint64(fs.Bsize)
	metrics.WriteGaugeUint64(w, fmt.Sprintf("seine_disk_free_bytes{of=%q}", of), uint64(fs.Bavail)*block)
	metrics.WriteGaugeUint64(w, fmt.Sprintf("seine_disk_size_bytes{of=%q}", of), uint64(fs.Blocks)*block)
}
