//go:build linux

package chaos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"seine/shard/shardtest"
)

// The network between fetchers and one master, or all of them, is slow, resets
// connections, cuts replies short or swallows them. Calls are repeated, without
// loss and without doing anything twice.
func TestNetworkFaults(t *testing.T) {
	n := &network{t: t, server: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), before: map[string]*toxiproxy.Proxy{}}
	w := build(t, setup{redis: shardtest.Config{Masters: 6, Through: n.through}, lease: 30 * time.Second})
	var proxies []*toxiproxy.Proxy
	for _, addr := range w.redis.Addrs {
		proxies = append(proxies, n.before[addr])
	}
	w.via = proxies[0].Listen // the others are heard of there
	w.start(3)
	for _, toxic := range w.toxics() {
		w.progress(either(50, 100))
		before := w.repeats()
		struck := proxies
		if w.rng.IntN(2) == 0 {
			one := w.rng.IntN(len(proxies))
			struck = proxies[one : one+1]
		}
		n.poison(struck, toxic)
		if strings.Contains(toxic, `"latency"`) {
			w.progress(100)
		} else {
			w.until("calls to be repeated", func() bool { return w.repeats() >= before+10 })
		}
		w.blows++
		n.heal(struck)
	}
	w.note("calls repeated", int(w.repeats()))
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	if v.repeats != 0 || v.Doubled.Count != 0 || v.lost != 0 {
		t.Errorf("something was done twice:\n%s", v.Report)
	}
}

// network is a proxy before each node.
type network struct {
	t      *testing.T
	server *toxiproxy.ApiServer
	before map[string]*toxiproxy.Proxy // by the node's address
}

// through puts a proxy before an address.
func (n *network) through(addr string) string {
	p := toxiproxy.NewProxy(n.server, addr, "127.0.0.1:0", addr)
	if err := p.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(p.Stop)
	n.before[addr] = p
	return p.Listen
}

func (n *network) poison(proxies []*toxiproxy.Proxy, toxic string) {
	n.t.Helper()
	for _, p := range proxies {
		if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			n.t.Fatal(toxic, ": ", err)
		}
	}
}

func (n *network) heal(proxies []*toxiproxy.Proxy) {
	n.t.Helper()
	for _, p := range proxies {
		if err := p.Toxics.RemoveToxic(context.Background(), "blow"); err != nil {
			n.t.Fatal(err)
		}
	}
}

// toxics are the faults in the order of their blows, with bytes or milliseconds
// by chance.
func (w *world) toxics() (all []string) {
	kinds := []struct{ kind, stream, attribute string }{
		{"latency", "downstream", "jitter"},
		{"limit_data", "downstream", "bytes"}, // replies cut in the middle
		{"limit_data", "upstream", "bytes"},   // calls cut in the middle
		{"reset_peer", "downstream", "timeout"},
		{"reset_peer", "upstream", "timeout"},
		{"timeout", "downstream", "timeout"}, // replies swallowed
		{"timeout", "upstream", "timeout"},
	}
	for range either(1, 6) {
		w.rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		for _, k := range kinds {
			n := 20 + w.rng.IntN(1000)
			if k.kind == "latency" {
				n /= 10
			}
			all = append(all, fmt.Sprintf(`{"name": "blow", "type": %q, "stream": %q, "attributes": {%q: %d}}`, k.kind, k.stream, k.attribute, n))
		}
	}
	return all
}

// repeats is how many calls fetchers repeated because a connection broke.
func (w *world) repeats() (sum float64) {
	all := make([]float64, len(w.fetchers))
	var wg sync.WaitGroup
	for i, f := range w.fetchers {
		wg.Go(func() { all[i] = f.metric("seine_shard_retries_total", `fault="broken"`) })
	}
	wg.Wait()
	for _, n := range all {
		sum += max(0, n)
	}
	return sum
}
