package metric_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"seine/cmd/internal/metric"
)

func TestPage(t *testing.T) {
	var page bytes.Buffer
	metric.Page(&page, `a"b`, func(w io.Writer) {
		fmt.Fprint(w, "seine_frontier_queued_urls{shard=\"0\"} 1\n# a remark\nseine_crawl_workers 3\nseine_frontier_queued_urls{shard=\"1\"} 2\nseine_crawl_workers_busy{} 4\n")
		fmt.Fprint(w, "seine_crawl_fetch_seconds_bucket{le=\"+Inf\"} 1\nseine_crawl_fetch_seconds_sum 2\nseine_crawl_fetch_seconds_count 1\n")
		fmt.Fprint(w, "go_gc_duration_seconds{quantile=\"0\"} 1\ngo_gc_duration_seconds_sum 2\ngo_cgo_calls_count 5\nprocess_num_threads 6\n")
	})
	want := `# HELP go_cgo_calls_count Of the Go runtime; see its package runtime/metrics.
# TYPE go_cgo_calls_count gauge
go_cgo_calls_count{crawl="a\"b"} 5
# HELP go_gc_duration_seconds Of the Go runtime; see its package runtime/metrics.
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{crawl="a\"b",quantile="0"} 1
go_gc_duration_seconds_sum{crawl="a\"b"} 2
# HELP process_num_threads Of this process, as the system counts it.
# TYPE process_num_threads gauge
process_num_threads{crawl="a\"b"} 6
# HELP seine_crawl_fetch_seconds Time of one answered request, until the end of its body.
# TYPE seine_crawl_fetch_seconds histogram
seine_crawl_fetch_seconds_bucket{crawl="a\"b",le="+Inf"} 1
seine_crawl_fetch_seconds_sum{crawl="a\"b"} 2
seine_crawl_fetch_seconds_count{crawl="a\"b"} 1
# HELP seine_crawl_workers Workers of this process.
# TYPE seine_crawl_workers gauge
seine_crawl_workers{crawl="a\"b"} 3
# HELP seine_crawl_workers_busy Workers that make a request now.
# TYPE seine_crawl_workers_busy gauge
seine_crawl_workers_busy{crawl="a\"b"} 4
# HELP seine_frontier_queued_urls URLs in queues.
# TYPE seine_frontier_queued_urls gauge
seine_frontier_queued_urls{crawl="a\"b",shard="0"} 1
seine_frontier_queued_urls{crawl="a\"b",shard="1"} 2
`
	if got := page.String(); got != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
}

// What the metrics library shows of the runtime, histograms and summaries too,
// has a type that Prometheus takes.
func TestRuntime(t *testing.T) {
	var page bytes.Buffer
	metric.Page(&page, "c", func(w io.Writer) { metrics.WriteProcessMetrics(w) })
	for _, want := range []string{"# TYPE go_sched_latencies_seconds histogram", "# TYPE go_gc_duration_seconds summary", "# TYPE go_memstats_mallocs_total counter", "# TYPE go_goroutines gauge"} {
		if !strings.Contains(page.String(), want+"\n") {
			t.Errorf("%q is missing", want)
		}
	}
}

// deploy/README.md has every metric with its labels, and no other.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Metrics\n")
	_, section, found := strings.Cut(section, "| metric | what |")
	section, _, _ = strings.Cut(section, "\n\n")
	if !ok || !found {
		t.Fatal("deploy/README.md has no table of metrics")
	}
	listed := map[string][]string{} // labels by name
	for row := range strings.Lines(section) {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(cells[1], -1) {
			names, labels := expand(m[1])
			for _, name := range names {
				if _, twice := listed[name]; twice {
					t.Errorf("deploy/README.md has %s twice", name)
				}
				listed[name] = labels
			}
		}
	}
	for _, row := range metric.Table {
		labels, ok := listed[row.Name]
		if !ok {
			t.Errorf("deploy/README.md lacks %s", row.Name)
		} else if slices.Sort(labels); !slices.Equal(labels, slices.Sorted(slices.Values(row.Labels))) {
			t.Errorf("%s has labels %v, in deploy/README.md %v", row.Name, row.Labels, labels)
		}
		if row.Help == "" || strings.ContainsAny(row.Help, "\n\\") {
			t.Errorf("help of %s: %q", row.Name, row.Help)
		}
		delete(listed, row.Name)
	}
	for name := range listed {
		t.Errorf("deploy/README.md has %s, which there is not", name)
	}
}

// expand reads a_{b,c}{label}: the braces behind an underscore, or those that
// begin with a comma, are a choice.
func expand(token string) (names, labels []string) {
	before, rest, ok := strings.Cut(token, "{")
	inner, after, _ := strings.Cut(rest, "}")
	switch {
	case !ok:
		return []string{token}, nil
	case strings.HasSuffix(before, "_") || strings.HasPrefix(inner, ","):
		for choice := range strings.SplitSeq(inner, ",") {
			more, l := expand(before + choice + after)
			names, labels = append(names, more...), l
		}
		return names, labels
	}
	return []string{before}, strings.Split(inner, ",")
}
