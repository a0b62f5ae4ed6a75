package main_test

import (
	"path/filepath"
	"testing"
	"time"

	"seine/bench/web"
	"seine/extract/sink/jsonl"
	"seine/shard/shardtest"
)

// TestCookiesOfWeb: with cookies two fetchers reach every page of sites that want one,
// side by side; without, none of those sites' pages.
func TestCookiesOfWeb(t *testing.T) {
	t.Parallel()
	for _, kept := range []string{"site", "off"} {
		t.Run(kept, func(t *testing.T) {
			t.Parallel()
			w, err := web.New(web.Config{Seed: 7, Sites: 6, Pages: 300, Features: web.Gentle | web.Cookies, CrawlDelay: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			server, err := w.Listen("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			args := []string{"--redis", shardtest.One(t).Addrs[0], "--shards", "1", "--plan-urls", "10k", "--connect-to", server.ConnectTo(),
				"--cookies", kept, "--delay", "1ms", "--per-site", "4", "--visit-urls", "8", "--exit-when-done"}
			for _, s := range w.Seeds() {
				args = append(args, "--seed", s)
			}
			var outs []string
			for _, p := range []*process{start(t, args...), start(t, args...)} {
				p.wait(t)
				files, _ := filepath.Glob(filepath.Join(filepath.Dir(p.out), "pages*.jsonl"))
				outs = append(outs, files...)
			}
			report, err := w.Verify(web.Plan{Slack: time.Second}, w.Log(), jsonl.Records(outs...))
			if err != nil {
				t.Fatal(err)
			}
			if report.Gates == 0 || report.OK() != (kept == "site") {
				t.Errorf("%d gates: %v", report.Gates, report)
			}
		})
	}
}
