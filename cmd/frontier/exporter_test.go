package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/cmd/internal/boot"
	"seine/cmd/internal/metric"
	"seine/frontier"
	"seine/shard/shardtest"
)

// output is what a program writes while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *output) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *output) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// serve runs a verb that serves, until the test ends, and returns its address.
func (d *operator) serve(args ...string) (addr string) {
	d.t.Helper()
	stop, cancel := context.WithCancel(context.Background())
	errs := new(output)
	app := boot.App{Name: "frontier", About: about, Grammar: &cli{}, In: strings.NewReader(""), Out: io.Discard, Err: errs, Environ: []string{"SEINE_REDIS=" + d.addr}}
	ended := make(chan int, 1)
	go func() { ended <- app.Run(stop, stop, args) }()
	d.t.Cleanup(func() {
		cancel()
		if code := <-ended; code != 0 {
			d.t.Errorf("%v ended with %d: %s", args, code, errs)
		}
	})
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if m := regexp.MustCompile(`serving .* addr=(\S+)`).FindStringSubmatch(errs.String()); m != nil {
			return m[1]
		}
	}
	d.t.Fatalf("%v does not serve: %s", args, errs)
	return ""
}

// page is what an address answers.
func page(t *testing.T, url string) (code int, text string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// The exporter shows a crawl with no fetcher alive, the server of each shard, and
// that a master is silent, while it is.
func TestExporter(t *testing.T) {
	t.Parallel()
	s := shardtest.Start(t, shardtest.Config{Masters: 3})
	d := newOperator(t, s)
	d.ok("create --crawl mine --shards 3 --plan-urls 10k")
	d.ok("seed --crawl mine --seed https://a.example/ --seed https://b.example/ --seed https://c.example/")
	f := d.open("mine")
	deadLetterAll(t, f, map[string]string{"https://a.example/": "tls", "https://b.example/": "dns", "https://c.example/": "dns"})
	d.refused(2, "exporter --crawl mine --due soon", `--due: "soon" is no date such as`)
	addr := d.serve("exporter", "--crawl", "mine", "--listen", "127.0.0.1:0", "--due", "2027-01-31")

	until := func(what string, want ...string) string {
		t.Helper()
		var text string
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			_, text = page(t, "http://"+addr+"/metrics")
			missing := ""
			for _, w := range want {
				if !strings.Contains(text, "\n"+w) {
					missing = w
				}
			}
			if missing == "" {
				return text
			}
		}
		t.Fatalf("%s: not all of %q in\n%s", what, want, text)
		return ""
	}
	text := until("no fetcher",
		`seine_exporter_up{crawl="mine"} 1`, `seine_frontier_dead_letters{crawl="mine",cause="dns"} 2`, `seine_frontier_programs{crawl="mine",kind="fetcher"} 0`,
		`seine_redis_up{crawl="mine",shard="2"} 1`, `seine_redis_clients_limit{crawl="mine",shard="0"} `, `seine_redis_cpu_seconds_total{crawl="mine",shard="0"} `,
		`seine_redis_disk_ok{crawl="mine",shard="1"} 1`, `seine_redis_shard_info{crawl="mine",shard="0",master="`+s.Nodes[0].Addr, `seine_bloom_capacity_items{crawl="mine",shard="1"} `,
		`seine_frontier_silent{crawl="mine",shard="0"} 0`, `seine_frontier_feed_elements{crawl="mine"} 0`, `seine_build_info{crawl="mine",program="exporter"`,
		`seine_frontier_due_timestamp_seconds{crawl="mine"} 1.8013536e+09`, `seine_frontier_eta_seconds{crawl="mine"} 0`, `seine_frontier_slowest_site_seconds{crawl="mine"} 0`)
	table := map[string]bool{}
	for _, row := range metric.Table {
		table[row.Name] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (seine_\S+)`).FindAllStringSubmatch(text, -1) {
		if !table[m[1]] {
			t.Errorf("%s is not in the table of metrics", m[1])
		}
	}

	m := frontier.NewMember(frontier.KindFetcher, "v9.9")
	m.Rate, m.Limit = 12.5, "cpu"
	member, err := frontier.Attend(t.Context(), f, func() frontier.Member { return m }, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Leave(context.Background(), "")
	until("a fetcher", `seine_frontier_programs{crawl="mine",kind="fetcher"} 1`, `seine_frontier_fetchers_limited_by{crawl="mine",bound="cpu"} 1`,
		`seine_frontier_program_versions{crawl="mine",version="v9.9"} 1`, `seine_frontier_pages_per_second{crawl="mine"} 12.5`)

	s.Nodes[2].Stop(t)
	until("a silent master", `seine_redis_up{crawl="mine",shard="2"} 0`, `seine_redis_up{crawl="mine",shard="1"} 1`)
	s.Nodes[2].Cont(t)
	until("it answers again", `seine_redis_up{crawl="mine",shard="2"} 1`, `seine_frontier_silent{crawl="mine",shard="2"} 0`, `seine_exporter_up{crawl="mine"} 1`)
	if code, text := page(t, "http://"+addr+"/healthz"); code != 200 {
		t.Errorf("healthz: %d %s", code, text)
	}
}
