package main_test

import (
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/cmd/internal/metric"
	"seine/shard/shardtest"
)

// Every sample names its crawl, and is of a metric that the table of metrics has,
// with its labels.
func TestMetricsTable(t *testing.T) {
	t.Parallel()
	redis := shardtest.One(t)
	out := filepath.Join(t.TempDir(), "pages.jsonl")
	p := start(t, "--redis", redis.Addrs[0], "--crawl", "mine", "--shards", "2", "--plan-urls", "10k", "--metrics-addr", "127.0.0.1:0", "--contact", "https://example.com", "--out", out)
	rows := map[string]metric.Row{}
	for _, row := range metric.Table {
		rows[row.Name] = row
	}
	page, described := scrape(t, p), ""
	sample := regexp.MustCompile(`^([a-z_]+)\{crawl="mine"(?:,(.*))?\} [-+.0-9eNaIinf]+$`)
	for line := range strings.Lines(page) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "# TYPE ") {
			described = strings.Fields(line)[2]
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("%s is no sample of the crawl", line)
			continue
		}
		if !strings.HasPrefix(m[1], described) || described == "" {
			t.Errorf("%s stands behind the type of %q", m[1], described)
		}
		if !strings.HasPrefix(m[1], "seine_") {
			continue
		}
		row, ok := rows[described]
		var labels []string
		for _, l := range regexp.MustCompile(`(?:^|,)([a-z]+)="`).FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" {
				labels = append(labels, l[1])
			}
		}
		slices.Sort(labels)
		if want := slices.Sorted(slices.Values(row.Labels)); !ok || !slices.Equal(labels, want) {
			t.Errorf("%s: the table has %v, labels %v", line, row.Name, want)
		}
	}
	for _, want := range []string{`seine_build_info{crawl="mine",program="fetcher"`, `seine_disk_free_bytes{crawl="mine",of="jsonl"}`, `seine_frontier_silent{crawl="mine",shard="1"} 0`, `seine_crawl_live_programs{crawl="mine"} 1`} {
		if !strings.Contains(page, "\n"+want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// scrape reads the metrics of a running fetcher, once it serves the shards' too.
func scrape(t *testing.T, p *process) string {
	t.Helper()
	return scrapeUntil(t, p, func(served string) []string {
		if strings.Contains(served, "seine_frontier_ready_sites") {
			return nil
		}
		return []string{"metrics of shards"}
	})
}

// scrapeUntil reads the metrics of a running fetcher until none is missing.
func scrapeUntil(t *testing.T, p *process, missing func(served string) []string) string {
	t.Helper()
	at := regexp.MustCompile(`healthz" addr=(\S+)`)
	lacks := []string{"anything"}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		m := at.FindStringSubmatch(p.log.String())
		if m == nil {
			continue
		}
		resp, err := http.Get("http://" + m[1] + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if lacks = missing(string(text)); len(lacks) == 0 {
			return string(text)
		}
	}
	t.Fatalf("the fetcher does not serve %s", strings.Join(lacks, "; "))
	return ""
}
