package main_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

// shardedCrawl is a crawl of some shards on as many masters, of which that of the last
// shard falls ill. The root of the crawl is on another; its list of programs is not.
type shardedCrawl struct {
	t     *testing.T
	redis *shardtest.Server
	ill   *shardtest.Node
	crawl string
	f     *redis.Frontier
	web   *httptest.Server
	links func(site, page int) string // of a page

	mu    sync.Mutex
	asked map[string]int // times, by URL
}

func newShardedCrawl(t *testing.T, shards int, change func(*frontier.Settings)) *shardedCrawl {
	t.Helper()
	w := &shardedCrawl{t: t, redis: shardtest.Masters(t, shards), asked: make(map[string]int), links: func(int, int) string { return "" }}
	client, err := shard.Open(t.Context(), shard.Config{Addrs: w.redis.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	w.ill = w.redis.MasterOf(t, shard.Slot(shard.NewMap(shards).Tag(shards-1)))
	on := func(key string) *shardtest.Node { return w.redis.MasterOf(t, shard.Slot(key)) }
	w.crawl = "sick"
	for i := 0; on(shard.RootKey(w.crawl)) == w.ill || on(shard.LiveKey(w.crawl)) != w.ill; i++ {
		w.crawl = fmt.Sprint("sick", i)
	}
	s := frontier.DefaultSettings()
	s.Delay, s.Jitter = 20*time.Millisecond, 0
	if change != nil {
		change(&s)
	}
	if w.f, err = redis.Create(t.Context(), client, w.crawl, frontier.Layout{Shards: shards, PlanURLs: 1_000_000}.Complete(), s); err != nil {
		t.Fatal(err)
	}
	w.web = httptest.NewServer(http.HandlerFunc(w.answer))
	t.Cleanup(w.web.Close)
	return w
}

func (w *shardedCrawl) answer(rw http.ResponseWriter, r *http.Request) {
	var site, page int
	if n, _ := fmt.Sscanf(r.Host+r.URL.Path, "s%d.example/p%d", &site, &page); n != 2 {
		http.NotFound(rw, r)
		return
	}
	w.mu.Lock()
	w.asked[r.Host+r.URL.Path]++
	w.mu.Unlock()
	rw.Header().Set("Content-Type", "text/html")
	io.WriteString(rw, "<title>page</title>"+w.links(site, page))
}

// isIll reports whether a site is of the shard that falls ill.
func (w *shardedCrawl) isIll(site int) bool {
	return w.f.ShardOf(fmt.Sprintf("s%d.example", site)) == w.f.Shards()-1
}

// count is how many pages of shards that stay well, and of the other, were asked
// for.
func (w *shardedCrawl) count() (well, ill int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for at := range w.asked {
		var site int
		fmt.Sscanf(at, "s%d.example", &site)
		if w.isIll(site) {
			ill++
		} else {
			well++
		}
	}
	return well, ill
}

// seeds writes a file of so many pages of each of some sites, and returns how many
// of them are of shards that stay well, and of the other.
func (w *shardedCrawl) seeds(sites, pages int) (file string, well, ill int) {
	var b strings.Builder
	for p := range pages {
		for s := range sites {
			fmt.Fprintf(&b, "http://s%d.example/p%d\n", s, p)
			if w.isIll(s) {
				ill++
			} else {
				well++
			}
		}
	}
	file = filepath.Join(w.t.TempDir(), "seeds")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file, well, ill
}

// fetcher starts one, with leases of the default length.
func (w *shardedCrawl) fetcher(args ...string) *process {
	_, port, _ := net.SplitHostPort(w.web.Listener.Addr().String())
	return start(w.t, append(args, "--redis", strings.Join(w.redis.Addrs, ","), "--crawl", w.crawl, "--connect-to", "::127.0.0.1:"+port, "--exit-when-done")...)
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: ", what)
		}
	}
}

// A fetcher starts, and seeds, while one master is silent: it works on the shards
// that answer, logs whom it waits for, and does not call the crawl done. That
// master is looked at when it answers; while it is not fit, nothing is done there.
func TestStartsBesideASilentMaster(t *testing.T) {
	t.Parallel()
	w := newShardedCrawl(t, 3, nil)
	file, well, ill := w.seeds(60, 5)
	if err := w.ill.Client().ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	w.ill.Stop(t)
	t.Cleanup(func() { w.ill.Cont(t) }) // or it does not end
	p := w.fetcher("--file", file)
	until(t, "the shards that answer are crawled", func() bool { n, _ := w.count(); return n == well })
	until(t, "the silent master is named", func() bool {
		return strings.Contains(p.log.String(), "waiting for "+w.ill.Addr)
	})
	w.ill.Cont(t)
	until(t, "the master that does not fit is named", func() bool {
		log := p.log.String()
		return strings.Contains(log, "is not fit for a crawl") && strings.Contains(log, "maxmemory-policy noeviction")
	})
	if _, n := w.count(); n > 0 {
		t.Errorf("%d pages of a shard were fetched whose master is not fit", n)
	}
	if err := w.ill.Client().ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err(); err != nil {
		t.Fatal(err)
	}
	p.wait(t)
	if a, b := w.count(); a != well || b != ill {
		t.Errorf("%d and %d of %d and %d pages", a, b, well, ill)
	}
}

// Redis that comes up after the fetcher is waited for.
func TestWaitsForRedis(t *testing.T) {
	t.Parallel()
	w := newShardedCrawl(t, 3, nil)
	file, well, ill := w.seeds(6, 2)
	for _, n := range w.redis.Nodes {
		n.Stop(t)
	}
	t.Cleanup(func() {
		for _, n := range w.redis.Nodes {
			n.Cont(t)
		}
	})
	p := w.fetcher("--file", file, "--metrics-addr", "127.0.0.1:0")
	until(t, "it logs that it waits", func() bool { return strings.Contains(p.log.String(), "waiting for "+w.redis.Addrs[0]) })
	at := regexp.MustCompile(`healthz" addr=(\S+)`).FindStringSubmatch(p.log.String())
	if at == nil {
		t.Fatal("it serves nothing while it waits")
	}
	for path, want := range map[string]int{"/healthz": http.StatusServiceUnavailable, "/healthz?live": http.StatusOK, "/metrics": http.StatusOK} {
		resp, err := http.Get("http://" + at[1] + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want || path == "/healthz" && !strings.Contains(string(text), "starting") {
			t.Errorf("%s while it waits: %v, %s %s", path, err, resp.Status, text)
		}
	}
	for _, n := range w.redis.Nodes {
		n.Cont(t)
	}
	p.wait(t)
	if a, b := w.count(); a != well || b != ill {
		t.Errorf("%d and %d of %d and %d pages", a, b, well, ill)
	}
}

// While one of six masters is silent the sites of the others are asked as often as
// before, for as long as that lasts, though all pages link to the silent one, and
// much more than may be open.
func TestSilentMasterSlowsNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, takes long: make check runs it")
	}
	const sites, window = 50, 2 * time.Second
	t.Setenv("GOMEMLIMIT", "96MiB") // so 16 MB may be open
	w := newShardedCrawl(t, 6, func(s *frontier.Settings) { s.Delay, s.Robots, s.Scope = 200*time.Millisecond, "ignore", "any" })
	var ill []int // sites of the shard
	for i := 0; len(ill) < 2; i++ {
		if w.isIll(i) {
			ill = append(ill, i)
		}
	}
	w.links = func(site, page int) string {
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, "<a href='http://s%d.example/of/%d/%d/%d/%s'>x</a>", ill[i%2], site, page, i, strings.Repeat("long", 20))
		}
		return b.String()
	}
	file, _, _ := w.seeds(sites, 200)
	w.fetcher("--file", file)
	until(t, "all sites are asked", func() bool { well, _ := w.count(); return well > 3*sites })
	rate := func() float64 {
		n, _ := w.count()
		begun := time.Now()
		time.Sleep(window)
		now, _ := w.count()
		return float64(now-n) / time.Since(begun).Seconds()
	}
	before := (rate() + rate()) / 2
	w.ill.Stop(t)
	t.Cleanup(func() { w.ill.Cont(t) }) // or it does not end
	var during float64
	const windows = 10
	for range windows {
		r := rate()
		during += r / windows
		t.Logf("%.0f requests/s beside a silent master, %.0f before", r, before)
	}
	if during < before/2 { // it is none where pages pile up; other work on the machine takes its part
		t.Errorf("%.0f requests/s beside a silent master, %.0f before", during, before)
	}
}
