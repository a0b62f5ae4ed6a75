package main_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/collectors"
	"github.com/rs/zerolog"

	"seine/bench/web"
	"seine/shard/shardtest"
)

// politeWeb is a web of many sites that each ask for a delay of their own in
// robots.txt, and remember when they were asked for anything.
type politeWeb struct {
	srv    *httptest.Server
	delays []time.Duration

	mu    sync.Mutex
	asked [][]time.Time // by the kernel's clock: when requests arrived, however busy this process is
}

func newPoliteWeb(t *testing.T, sites int, least, most time.Duration) *politeWeb {
	t.Helper()
	m := &politeWeb{asked: make([][]time.Time, sites)}
	for i := range sites {
		d := least + (most-least)*time.Duration(i)/time.Duration(max(sites-1, 1))
		m.delays = append(m.delays, d.Round(time.Millisecond))
	}
	m.srv = httptest.NewUnstartedServer(http.HandlerFunc(m.answer))
	m.srv.Listener, m.srv.Config.ConnContext = web.Stamp(m.srv.Listener), web.ConnContext
	m.srv.Start()
	t.Cleanup(m.srv.Close)
	return m
}

func (m *politeWeb) answer(w http.ResponseWriter, r *http.Request) {
	at := web.Arrival(r)
	var i int
	if _, err := fmt.Sscanf(r.Host, "s%d.example", &i); err != nil || i >= len(m.delays) {
		http.NotFound(w, r)
		return
	}
	m.mu.Lock()
	m.asked[i] = append(m.asked[i], at)
	m.mu.Unlock()
	if r.URL.Path == "/robots.txt" {
		fmt.Fprintf(w, "User-agent: *\nCrawl-delay: %.3f\n", m.delays[i].Seconds())
		return
	}
	w.Header().Set("Content-Type", "text/html")
	io.WriteString(w, "<title>page</title>")
}

// seeds writes a file with more pages of each site than fit into span.
func (m *politeWeb) seeds(t *testing.T, span time.Duration) string {
	t.Helper()
	var b strings.Builder
	for i, d := range m.delays {
		for p := range int(span/d) + 10 {
			fmt.Fprintf(&b, "http://s%d.example/p%d\n", i, p)
		}
	}
	name := filepath.Join(t.TempDir(), "seeds")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// args are the flags of a fetcher of this web.
func (m *politeWeb) args(redis, shards string) []string {
	_, port, _ := net.SplitHostPort(m.srv.Listener.Addr().String())
	return []string{"--redis", redis, "--shards", shards, "--plan-urls", "100k", "--delay", "20ms", "--lease", "6s",
		"--connect-to", "::127.0.0.1:" + port, "--per-address", "0"}
}

// count is how many requests came so far.
func (m *politeWeb) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, site := range m.asked {
		n += len(site)
	}
	return n
}

// check holds every gap against the promise and returns the share of what mean
// delays allow that was fetched until end. A delay is stretched by 1 to 1.5.
func (m *politeWeb) check(t *testing.T, end time.Time) float64 {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	short, got, allowed := 0, 0.0, 0.0
	for i, site := range m.asked {
		if len(site) == 0 {
			t.Errorf("s%d was never asked", i)
			continue
		}
		slices.SortFunc(site, time.Time.Compare)
		for j := range site[1:] {
			if gap := site[j+1].Sub(site[j]); gap < m.delays[i] {
				if short++; short < 10 {
					t.Errorf("s%d: request %d came %v after the one before, promised %v", i, j+1, gap, m.delays[i])
				}
			}
		}
		got += float64(len(site))
		allowed += 1 + end.Sub(site[0]).Seconds()/(1.25*m.delays[i].Seconds())
	}
	t.Logf("%d sites, %.0f requests, %d gaps too short, %.1f%% of what mean delays allow", len(m.asked), got, short, 100*got/allowed)
	return got / allowed
}

// slowRedis puts a proxy before a server that adds so much to each way.
func slowRedis(t *testing.T, addr string, each time.Duration) string {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	server.Metrics.ProxyMetrics = collectors.NewProxyMetricCollectors()
	proxy := toxiproxy.NewProxy(server, "redis", "127.0.0.1:0", addr)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	for _, stream := range []string{"upstream", "downstream"} {
		toxic := fmt.Sprintf(`{"type":"latency","stream":%q,"attributes":{"latency":%d}}`, stream, each.Milliseconds())
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			t.Fatal(err)
		}
	}
	return proxy.Listen
}

// TestPoliteFleet: three fetchers and many sites; the sites' own clocks find no
// gap shorter than promised: undisturbed, with a fetcher killed, and with Redis
// slow. SEINE_LONG=1 runs it with 500 sites, delays of 50 ms to 2 s, for 30 s.
func TestPoliteFleet(t *testing.T) {
	t.Parallel()
	sites, most, span, share := 60, 500*time.Millisecond, 8*time.Second, 0.0 // CI's machines are too busy for a share
	if os.Getenv("SEINE_LONG") != "" {
		sites, most, span, share = 500, 2*time.Second, 30*time.Second, 0.95
	}
	for _, c := range []struct {
		name string
		kill bool
		slow bool
	}{{"undisturbed", false, false}, {"fetcher killed", true, false}, {"Redis slow", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newPoliteWeb(t, sites, 50*time.Millisecond, most)
			var args []string
			if c.slow {
				args = m.args(slowRedis(t, shardtest.One(t).Addrs[0], 25*time.Millisecond), "1")
			} else {
				args = m.args(strings.Join(shardtest.Masters(t, 6).Addrs, ","), "6")
			}
			all := []*process{start(t, append(args, "--file", m.seeds(t, span))...)}
			for range 2 {
				all = append(all, start(t, args...))
			}
			for m.count() < sites {
				time.Sleep(10 * time.Millisecond) // between looks
			}
			if c.kill {
				time.Sleep(span / 3) // the blow falls in mid-crawl
				all[0].cmd.Process.Signal(syscall.SIGKILL)
				all = append(all[1:], start(t, args...))
				time.Sleep(span * 2 / 3)
			} else {
				time.Sleep(span) // pages are fetched meanwhile
			}
			end := time.Now()
			got := m.check(t, end)
			if share > 0 && !c.kill && !c.slow && got < share {
				t.Errorf("%.3f of what mean delays allow, want %.2f", got, share)
			}
			for _, p := range all {
				p.cmd.Process.Signal(syscall.SIGTERM)
			}
			for _, p := range all {
				p.wait(t)
			}
		})
	}
}
