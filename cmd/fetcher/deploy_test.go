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
	served := scrape(t, p)
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
			// A histogram has no buckets before its first observation.
			if name == "seine_crawl_fetch_seconds_bucket" {
				continue
			}
			if !strings.Contains(served, "\n"+name) {
				t.Errorf("%s asks for %s, which a fetcher does not serve", file, name)
			}
		}
	}
}

// scrape reads the metrics of a running fetcher, once it serves the shards' too.
func scrape(t *testing.T, p *process) string {
	t.Helper()
	at := regexp.MustCompile(`healthz" addr=(\S+)`)
	deadline := time.Now().Add(30 * time.Second)
	for ; time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
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
		if strings.Contains(string(text), "seine_frontier_ready_sites") {
			return string(text)
		}
	}
	t.Fatalf("the fetcher serves no metrics of shards:\n%s", p.log)
	return ""
}
