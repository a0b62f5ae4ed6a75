package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/shard/shardtest"
)

// web answers for any host: pages without end, each with links of all sorts, files of
// several types, a host for each error, and one whose certificate nobody knows.
func web(t *testing.T) (connectTo []string) {
	t.Helper()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, _, _ := strings.Cut(r.Host, ".")
		code, err := strconv.Atoi(strings.TrimPrefix(first, "e"))
		n, _ := strconv.Atoi(filepath.Base(r.URL.Path))
		switch {
		case r.URL.Path == "/robots.txt":
			io.WriteString(w, "User-agent: *\nDisallow: /private\n")
		case err == nil && code > 200:
			w.WriteHeader(code)
		case strings.HasPrefix(r.URL.Path, "/file"):
			w.Header().Set("Content-Type", "application/pdf")
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<h1>%d</h1><a href=/p/%d></a><a href=/p/%d></a><a href=/private/%[1]d></a><a href=/file/%[1]d></a><a href=mailto:a@b.example></a>", n, 2*n, 2*n+1)
			fmt.Fprintf(w, "<a href=http://e404.example/%d></a><a href=http://e403.example/%[1]d></a><a href=http://e500.example/%[1]d></a><a href=https://bad.example/%[1]d></a><a href=http://down.example/%[1]d></a><a href=http://s%d.example/p/1></a>", n, n%sites)
		}
	}))
	t.Cleanup(plain.Close)
	bad := httptest.NewUnstartedServer(http.NotFoundHandler())
	bad.Config.ErrorLog = log.New(io.Discard, "", 0)
	bad.StartTLS()
	t.Cleanup(bad.Close)
	return []string{"--connect-to", "bad.example:443:" + bad.Listener.Addr().String(), "--connect-to", "down.example:80:127.0.0.1:1",
		"--connect-to", "*.example:80:" + plain.Listener.Addr().String(), "--allow-net", "127.0.0.0/8"}
}

// sites are how many the web has, but for those that fail.
const sites = 12

// program is one that runs.
type program struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed when it ended
	mu   sync.Mutex
	log  bytes.Buffer
}

func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *program) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// run starts a program that ends with the test.
func run(t *testing.T, name string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(name, args...), gone: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.gone)
		p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			said := p.said()
			t.Logf("%.200s:\n%s", fmt.Sprint(name, args), said[max(0, len(said)-3000):])
		}
	})
	return p
}

// kill kills it with -9; a second time does nothing.
func (p *program) kill() {
	p.cmd.Process.Kill()
	<-p.gone
}

// addr is where it serves its metrics.
func (p *program) addr(t *testing.T) (addr string) {
	t.Helper()
	until(t, "a program that serves metrics", func() string {
		m := regexp.MustCompile(`healthz" addr=(\S+)`).FindStringSubmatch(p.said())
		if m == nil {
			return "it says: " + p.said()
		}
		addr = m[1]
		return ""
	})
	return addr
}

// until waits until lacks says nothing.
func until(t *testing.T, what string, lacks func() string) {
	t.Helper()
	last := ""
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if last = lacks(); last == "" {
			return
		}
	}
	t.Fatalf("no %s: %s", what, last)
}

// server is a Prometheus.
type server struct {
	t    *testing.T
	addr string
}

// prometheus starts one that scrapes targets and runs the alert rules.
func prometheus(t *testing.T, targets ...string) *server {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("prometheus is missing; scripts/setup installs it")
		}
		t.Skip("SKIPPED, needs prometheus; scripts/setup installs it")
	}
	alerts, err := filepath.Abs("../alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yaml")
	list, err := json.Marshal(targets)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("global: {scrape_interval: 500ms, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs: [{job_name: seine, static_configs: [{targets: %s}]}]\n", alerts, list)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 { // another process may take the port first
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &server{t: t, addr: l.Addr().String()}
		l.Close()
		p := run(t, program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+s.addr)
		for {
			if resp, err := http.Get("http://" + s.addr + "/-/ready"); err == nil {
				resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					return s
				}
			}
			select {
			case <-p.gone:
			case <-time.After(50 * time.Millisecond):
				continue
			}
			break
		}
	}
	t.Fatal("prometheus does not start")
	return nil
}

// get reads an answer of the API into v.
func (s *server) get(path string, v any) error {
	resp, err := http.Get("http://" + s.addr + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := struct{ Data, Error any }{Data: v}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%d: %v", resp.StatusCode, answer.Error)
	}
	return nil
}

// sample is one of what a query answers.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

func (s *sample) number() float64 {
	text, _ := s.Value[1].(string)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// query asks for what is now.
func (s *server) query(q string) []sample {
	s.t.Helper()
	var answer struct{ Result []sample }
	if err := s.get("/api/v1/query?query="+url.QueryEscape(q), &answer); err != nil {
		s.t.Fatalf("%s: %v", q, err)
	}
	return answer.Result
}

// sum adds up what a query answers, NaN where that is nothing.
func (s *server) sum(q string) float64 {
	list := s.query(q)
	if len(list) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for i := range list {
		sum += list[i].number()
	}
	return sum
}

// crawls are those that a query finds.
func (s *server) crawls(q string) map[string]bool {
	found := map[string]bool{}
	for _, r := range s.query(q) {
		found[r.Metric["crawl"]] = true
	}
	return found
}

// whole fails unless every query of the dashboards answers for a crawl with numbers,
// but for those of the metrics in without, which say why.
func (s *server) whole(crawl string, without map[string]string) {
	s.t.Helper()
	until(s.t, "data for "+crawl, func() (lacks string) {
		for _, b := range boards {
			for _, p := range b.panels {
				for _, q := range p.targets {
					excused := false
					for prefix := range without {
						excused = excused || strings.Contains(q.query, prefix)
					}
					if excused {
						continue
					}
					list := s.query(filled(q.query, crawl))
					if len(list) == 0 {
						lacks += "\n" + b.name + ", " + p.title + ": " + q.query
					}
					for i := range list {
						v := list[i].number()
						if math.IsNaN(v) || p.unit == "percentunit" && (v < 0 || v > 1 && strings.Contains(q.query, " / ")) {
							lacks += fmt.Sprintf("\n%s, %s: %s is %v", b.name, p.title, q.query, v)
						}
					}
				}
			}
		}
		if lacks == "" {
			return ""
		}
		var answer struct {
			ActiveTargets []struct{ ScrapeURL, LastError string }
		}
		if err := s.get("/api/v1/targets", &answer); err != nil {
			return lacks + err.Error()
		}
		for _, target := range answer.ActiveTargets {
			if target.LastError != "" {
				lacks += fmt.Sprintf("\n%s: %s", target.ScrapeURL, target.LastError)
			}
		}
		return lacks
	})
}

// figures is what frontier stats --json says, as far as it is compared.
type figures struct {
	Total   counts
	Shards  []counts
	DeadNow float64 `json:"dead_now"`
	Rate    float64
	Members []struct{ Kind string }
}

type counts struct {
	Ready, Queued, Waiting, Open, Known, Done, Dead, Retried, Lost float64
	Shard                                                          int
	Memory                                                         struct{ Limit float64 }
}

// runVerb runs a verb of frontier.
func runVerb(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(filepath.Join(bin(t), "frontier"), args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("frontier %v: %v: %s", args, err, &errs)
	}
	return out.Bytes()
}

func figuresOf(t *testing.T, where []string) (f figures) {
	t.Helper()
	if err := json.Unmarshal(runVerb(t, append([]string{"stats", "--json"}, where...)...), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// query finds the query of a panel.
func queryOf(t *testing.T, name, title, legend string) string {
	t.Helper()
	for _, b := range boards {
		for _, p := range b.panels {
			for _, q := range p.targets {
				if b.name == name && p.title == title && q.legend == legend {
					return q.query
				}
			}
		}
	}
	t.Fatalf("%s has no %s, %s", name, title, legend)
	return ""
}

// sums fails unless the dashboards show of a paused crawl what frontier stats does.
func (s *server) sums(crawl string, where []string) figures {
	t := s.t
	t.Helper()
	runVerb(t, append([]string{"pause"}, where...)...)
	var now figures
	until(t, crawl+" without open URLs", func() string {
		if now = figuresOf(t, where); now.Total.Open > 0 {
			return fmt.Sprint(now.Total.Open)
		}
		return ""
	})
	want := map[[3]string]float64{
		{"overview", "URLs left", ""}:                                     now.Total.Queued + now.Total.Waiting,
		{"overview", "URLs done", ""}:                                     now.Total.Done,
		{"overview", "URLs now", "queued"}:                                now.Total.Queued,
		{"overview", "URLs now", "waiting for a retry"}:                   now.Total.Waiting,
		{"overview", "URLs now", "leased"}:                                0,
		{"overview", "URLs so far", "known"}:                              now.Total.Known,
		{"overview", "URLs so far", "done"}:                               now.Total.Done,
		{"overview", "URLs so far", "dead"}:                               now.Total.Dead,
		{"shards", "Queued URLs", "{{shard}}"}:                            now.Total.Queued,
		{"sites", "Sites with work", "ready"}:                             now.Total.Ready,
		{"shards", "Silent or paused", "{{shard}} paused"}:                float64(len(now.Shards)),
		{"shards", "URLs that came back from lost fetchers", "{{shard}}"}: now.Total.Lost,
		{"sites", "Fetches that ended in a retry so far", "retried"}:      now.Total.Retried,
	}
	if crawl == "news" {
		limits := 0.0
		for _, shard := range now.Shards {
			limits += shard.Memory.Limit
		}
		want[[3]string{"sites", "Dead letters kept by cause", "{{cause}}"}] = now.DeadNow
		want[[3]string{"shards", "Memory of masters", "{{shard}} maxmemory"}] = limits
	}
	until(t, "equal sums of "+crawl, func() (off string) {
		for at, v := range want {
			if got := s.sum(filled(queryOf(t, at[0], at[1], at[2]), crawl)); got != v {
				off += fmt.Sprintf("\n%v: %v, frontier stats has %v", at, got, v)
			}
		}
		for _, shard := range now.Shards {
			q := fmt.Sprintf(`max(seine_frontier_known_urls{crawl=%q,shard="%d"})`, crawl, shard.Shard)
			if got := s.sum(q); got != shard.Known {
				off += fmt.Sprintf("\nshard %d: %v known, frontier stats has %v", shard.Shard, got, shard.Known)
			}
		}
		return off
	})
	return now
}

// Every query of the dashboards and every alert runs on a Prometheus that scrapes a
// fleet on a cluster with its exporter, and a crawl in one process beside it. Each
// answers for its crawl alone, with the sums that frontier stats has, also when a
// fetcher was killed, which the alerts then tell.
func TestWatch(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		prometheus(t) // says so
	}
	redis := shardtest.Start(t, shardtest.Config{Masters: 2, Replicas: 1, AOF: "everysec", Directives: []string{"maxmemory 300mb"}})
	news := []string{"--redis", strings.Join(redis.Addrs[:2], ","), "--crawl", "news"}
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	config := filepath.Join(dir, "seine.yaml")
	if err := os.WriteFile(config, []byte("fields:\n- {name: title, css: h1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	way := append(web(t), "--config", config, "--metrics-addr", "127.0.0.1:0", "--lease", "5s", "--rotate-size", "16K", "--on-rotate", "true {}", "--contact", "https://crawler.example/bot")
	fetcher := func(name string, args ...string) *program {
		return run(t, filepath.Join(bin(t), "fetcher"), append(append(args, "--out", filepath.Join(dir, name)), way...)...)
	}
	settings := []string{"--scope", "any", "--delay", "100ms", "--jitter", "0", "--max-pages", "1000000"} // with a bound the endless web has an end
	var seeds []string
	for i := range sites {
		seeds = append(seeds, "--seed", fmt.Sprintf("http://s%d.example/p/1", i))
	}
	runVerb(t, append(append([]string{"create", "--shards", "4", "--plan-urls", "100k"}, news...), settings...)...)
	one, two := fetcher("one.jsonl", append(news, seeds...)...), fetcher("two.jsonl", news...)
	solo := fetcher("solo.jsonl", append(append([]string{"--embedded", "--state", state}, settings...), seeds...)...)
	until(t, "two fetchers that say their rate", func() string {
		if f := figuresOf(t, news); len(f.Members) != 2 || f.Rate == 0 {
			return fmt.Sprint(f.Members, f.Rate)
		}
		return ""
	})
	exporter := run(t, filepath.Join(bin(t), "frontier"), append([]string{"exporter", "--listen", "127.0.0.1:0", "--due", "2026-01-01"}, news...)...)
	s := prometheus(t, one.addr(t), two.addr(t), solo.addr(t), exporter.addr(t))

	s.whole("news", withoutFor["news"])
	s.whole("seine", withoutFor["seine"])
	for _, name := range []string{"news", "seine"} { // the variables
		for q, want := range map[string]string{"count by (crawl) (seine_build_info)": name, fmt.Sprintf("count by (shard, crawl) (seine_frontier_queued_urls{crawl=%q})", name): name} {
			if !s.crawls(q)[want] {
				t.Errorf("%s does not have %s", q, want)
			}
		}
	}
	s.alerts()

	until(t, "a fetcher with sites", func() string {
		busy := s.query(`topk(1, seine_crawl_visits_active{crawl="news"} > 3)`)
		if len(busy) == 0 {
			return "nobody has"
		}
		if busy[0].Metric["instance"] == one.addr(t) {
			one, two = two, one
		}
		return ""
	})
	two.kill()
	until(t, "a fetcher less", func() string {
		if n := s.sum(`count(seine_crawl_workers{crawl="news"})`); n != 1 {
			return fmt.Sprint(n)
		}
		return ""
	})
	s.whole("news", withoutFor["news"])
	s.fires("SeineLeasesLost", "news")
	s.fires("SeineLate", "news")
	s.sums("news", news)
	alone := s.sums("seine", []string{"--state", state})
	lines := 0
	files, err := filepath.Glob(filepath.Join(dir, "solo*.jsonl"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
	}
	for q, want := range map[string]float64{
		`seine_crawl_outcomes_total{crawl="seine",kind="done"}`: alone.Total.Done,
		`seine_crawl_outcomes_total{crawl="seine",kind="dead"}`: alone.Total.Dead,
		`seine_sink_records_total{crawl="seine"}`:               float64(lines),
	} {
		if got := s.sum(q); err != nil || got != want {
			t.Errorf("%s: %v, want %v (%v)", q, got, want, err)
		}
	}

	runVerb(t, append([]string{"resume"}, news...)...)
	until(t, "a crawl that goes on", func() string {
		if n := s.sum(`max(seine_frontier_paused{crawl="news"})`); n != 0 {
			return fmt.Sprint(n)
		}
		return ""
	})
	one.kill()
	exporter.kill()
	s.fires("SeineFetchersGone", "news")
	if s.crawls(expr(t, "SeineFetchersGone"))["seine"] {
		t.Error("a crawl whose fetcher lives has none")
	}
}

// withoutFor names metrics that a crawl has not by its nature, and why.
var withoutFor = map[string]map[string]string{
	"news": {
		"seine_crawl_handler_calls_total": "handlers are Go code of other programs",
		"seine_crawl_walls_total":         "no site of this web is behind a wall",
	},
	"seine": {
		"seine_crawl_walls_total":           "no site of this web is behind a wall",
		"seine_crawl_handler_calls_total":   "handlers are Go code of other programs",
		"seine_frontier_eta_seconds":        "from the exporter, which shows crawls in Redis",
		"seine_frontier_slowest_site":       "from the exporter",
		"seine_frontier_fetchers_at_limit":  "from the exporter",
		"seine_frontier_pages_per_second":   "from the exporter",
		"by (kind) (seine_frontier_program": "from the exporter",
		"seine_frontier_dead_letters":       "from the exporter",
		"seine_frontier_paused_sites":       "from the exporter",
		"seine_frontier_blocked_sites":      "from the exporter",
		"seine_frontier_missing_filters":    "from the exporter",
		"seine_frontier_feed_elements":      "from the exporter",
		"seine_exporter_up":                 "of the exporter",
		"seine_redis_":                      "there is no Redis",
		"seine_shard_":                      "there is no Redis",
		"seine_frontier_memory_limit_bytes": "there is no Redis; the metric is 0, and no share of that is",
		"seine_bloom_":                      "what is known is kept exactly",
	},
}

// alerts fails unless Prometheus runs every rule, and each metric that a rule reads is
// there, with the labels that it asks for, but for those that news has not. What a rule makes of them is promtool's test.
func (s *server) alerts() {
	t := s.t
	t.Helper()
	want := len(rules(t))
	until(t, "healthy rules", func() string {
		var answer struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if err := s.get("/api/v1/rules?type=alert", &answer); err != nil {
			return err.Error()
		}
		n, sick := 0, ""
		for _, g := range answer.Groups {
			for _, r := range g.Rules {
				if n++; r.Health != "ok" {
					sick += r.Name + " " + r.Health + " " + r.LastError + "\n"
				}
			}
		}
		if n != want {
			sick += fmt.Sprintf("%d rules of %d", n, want)
		}
		return sick
	})
	for _, r := range rules(t) {
		for _, read := range regexp.MustCompile(`seine_\w+(\{[^}]*\})?`).FindAllString(r.Expr, -1) {
			if name, _, _ := strings.Cut(read, "{"); withoutFor["news"][name] == "" && !s.crawls(read)["news"] {
				t.Errorf("%s reads %s, and news has none", r.Alert, read)
			}
		}
	}
}

// fires waits until the expression of an alert is true for a crawl.
func (s *server) fires(alert, crawl string) {
	s.t.Helper()
	until(s.t, alert, func() string {
		if found := s.crawls(expr(s.t, alert)); !found[crawl] {
			return fmt.Sprint(found)
		}
		return ""
	})
}

func expr(t *testing.T, alert string) string {
	t.Helper()
	for _, r := range rules(t) {
		if r.Alert == alert {
			return r.Expr
		}
	}
	t.Fatalf("there is no %s", alert)
	return ""
}
