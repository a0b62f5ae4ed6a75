package main_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"seine/shard/shardtest"
)

// Every metric that the dashboard and the alert rules name is one that a
// fetcher serves.
func TestDeployMetrics(t *testing.T) {
	redis := shardtest.One(t)
	p := start(t, "--redis", redis.Addrs[0], "--shards", "2", "--plan-urls", "10k", "--metrics-addr", "127.0.0.1:0", "--contact", "https://example.com")
	asked := map[string]string{} // metric, and who asks for it
	for _, file := range []string{"grafana.json", "alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`seine_[a-z_]+`).FindAllString(string(text), -1)
		if len(names) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, name := range names {
			asked[name] = file
		}
	}
	delete(asked, "seine_crawl_fetch_seconds_bucket") // a histogram has none before its first observation
	scrapeUntil(t, p, func(served string) (missing []string) {
		for name, file := range asked {
			if !strings.Contains(served, "\n"+name) {
				missing = append(missing, name+", which "+file+" asks for")
			}
		}
		return missing
	})
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
