package main_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seine/frontier"
)

// fleetServer serves the web of a crawl to one fetcher.
type fleetServer struct {
	w      *shardedCrawl
	server *httptest.Server

	mu  sync.Mutex
	log []request
}

type request struct {
	host string
	at   time.Time
}

func (w *shardedCrawl) newServer() *fleetServer {
	d := &fleetServer{w: w}
	d.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			d.mu.Lock()
			d.log = append(d.log, request{r.Host, time.Now()})
			d.mu.Unlock()
		}
		w.answer(rw, r)
	}))
	w.t.Cleanup(d.server.Close)
	return d
}

// since is what was asked for after a time.
func (d *fleetServer) since(at time.Time) (after []request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.log {
		if k.at.After(at) {
			after = append(after, k)
		}
	}
	return after
}

// fetcher starts one that fetches from this server, with leases as short as they may be.
func (d *fleetServer) fetcher(args ...string) *process {
	_, port, _ := net.SplitHostPort(d.server.Listener.Addr().String())
	return start(d.w.t, append(args, "--redis", strings.Join(d.w.redis.Addrs, ","), "--crawl", d.w.crawl, "--connect-to", "::127.0.0.1:"+port, "--lease", fleetLease.String())...)
}

const (
	fleetLease = 5 * time.Second
	fleetDelay = time.Second
)

// A fetcher that joins another has its share of the requests soon: a site is leased for
// no more than can be asked there in 10 seconds, and the first gives up the sites that it
// keeps once it has heard of the second. When the first one is killed, no site waits
// longer than a lease.
func TestFleetShares(t *testing.T) {
	t.Parallel()
	const sites = 200
	w := newShardedCrawl(t, 3, func(s *frontier.Settings) { s.Delay, s.Robots = fleetDelay, "ignore" })
	file, _, _ := w.seeds(sites, 80)
	a, b := w.newServer(), w.newServer()
	first := a.fetcher("--file", file)
	begun := time.Now()
	until(t, "all sites are asked", func() bool { return len(a.since(begun)) > 3*sites })
	b.fetcher()
	until(t, "the second one asks", func() bool { return len(b.since(begun)) > 0 })
	joined := b.since(begun)[0].at
	share := 0.0
	for end := joined.Add(30 * time.Second); time.Now().Before(end) && share < 0.4; {
		from := time.Now()
		time.Sleep(2 * time.Second)
		of, other := len(b.since(from)), len(a.since(from))
		share = float64(of) / float64(of+other)
		t.Logf("%v after it joined the second one asks for %.2f of %d", time.Since(joined).Round(time.Second), share, of+other)
	}
	if share < 0.4 {
		t.Errorf("the share of the second of two fetchers is %.2f", share)
	}

	killed := time.Now()
	if err := first.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	last, asked := make(map[string]time.Time), make(map[string]time.Time)
	for _, k := range append(a.since(begun), b.since(begun)...) {
		if k.at.After(last[k.host]) {
			last[k.host] = k.at
		}
	}
	until(t, "all sites are asked after the kill", func() bool {
		for _, k := range b.since(killed) {
			if asked[k.host].IsZero() {
				asked[k.host] = k.at
			}
		}
		return len(asked) == sites
	})
	var longest time.Duration
	for host, at := range asked {
		longest = max(longest, at.Sub(last[host]))
	}
	t.Logf("the longest that a site waited was %v", longest)
	if most := fleetLease + fleetDelay + 5*time.Second; longest > most {
		t.Errorf("a site waited for %v, more than a lease", longest)
	}
}
