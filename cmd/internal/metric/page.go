// Package metric serves the metrics of Seine's programs to Prometheus.
//
// The packages write their metrics as samples alone. A Page makes a page of
// them: every sample gets the label crawl, so that two crawls that are watched
// by one server stay apart, the samples of a metric stand together, and each
// metric has the HELP and TYPE that Table has.
package metric

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// family is the samples of one metric, a line each.
type family struct {
	lines    [][]byte
	quantile bool // it is a summary
	buckets  bool // it is a histogram
}

// Page writes what write writes, samples in Prometheus text format, as the page
// of one crawl. What is not a sample is left out. Cost: a copy of the page.
func Page(out io.Writer, crawl string, write func(io.Writer)) {
	var raw, page bytes.Buffer
	write(&raw)
	families := make(map[string]*family)
	label := "crawl=" + strconv.Quote(crawl)
	for line := range bytes.Lines(raw.Bytes()) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		name, sample := withLabel(line, label)
		base := familyOf(name)
		f := families[base]
		if f == nil {
			f = new(family)
			families[base] = f
		}
		f.buckets = f.buckets || strings.HasSuffix(name, "_bucket")
		f.quantile = f.quantile || bytes.Contains(line, []byte("quantile="))
		f.lines = append(f.lines, sample)
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f := families[name]
		kind, help := f.describe(name)
		fmt.Fprintf(&page, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
		for _, line := range f.lines {
			page.Write(line)
			page.WriteByte('\n')
		}
	}
	out.Write(page.Bytes()) // who asks may be gone; nobody else to tell
}

// withLabel is a sample with one label more, before those that it has.
func withLabel(line []byte, label string) (name string, sample []byte) {
	at := bytes.IndexAny(line, "{ ")
	if at < 0 {
		return string(line), line
	}
	name = string(line[:at])
	sample = make([]byte, 0, len(line)+len(label)+3)
	sample = append(append(append(sample, line[:at]...), '{'), label...)
	if line[at] == ' ' {
		return name, append(append(sample, '}'), line[at:]...)
	}
	if rest := line[at+1:]; rest[0] != '}' {
		sample = append(sample, ',')
	}
	return name, append(sample, line[at+1:]...)
}

// familyOf is the metric that a sample belongs to.
func familyOf(name string) string {
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, part); ok && isWhole(base) {
			return base
		}
	}
	return name
}

// isWhole reports whether a name is that of a metric whose samples have names of
// their own: a histogram or summary.
func isWhole(name string) bool {
	row := find(name)
	return row != nil && row.Type == histogram || slices.Contains(ofRuntime, name)
}

// ofRuntime are the histograms and summaries that the metrics library has of the
// Go runtime.
var ofRuntime = []string{"go_sched_latencies_seconds", "go_gc_pauses_seconds", "go_gc_duration_seconds"}

// find is the row of a metric, nil where Table has none.
func find(name string) *Row {
	for i := range Table {
		if Table[i].Name == name {
			return &Table[i]
		}
	}
	return nil
}

// describe is the type of a metric and what it is.
func (f *family) describe(name string) (kind, help string) {
	if row := find(name); row != nil {
		return row.Type, row.Help
	}
	switch {
	case f.buckets:
		kind = histogram
	case f.quantile:
		kind = "summary"
	case strings.HasSuffix(name, "_total"):
		kind = counter
	}
	switch {
	case strings.HasPrefix(name, "go_"):
		help = "Of the Go runtime; see its package runtime/metrics."
	case strings.HasPrefix(name, "process_"):
		help = "Of this process, as the system counts it."
	}
	return cmp.Or(kind, gauge), help
}
