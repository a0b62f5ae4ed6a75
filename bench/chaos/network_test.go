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
)

// The network between fetchers and Redis is slow, resets connections, cuts
// replies short or swallows them. Calls are repeated, without loss and without
// doing anything twice.
func TestNetworkFaults(t *testing.T) {
	var proxy *toxiproxy.Proxy
	through := func(addr string) string {
		server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
		proxy = toxiproxy.NewProxy(server, "redis", "127.0.0.1:0", addr)
		if err := proxy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(proxy.Stop)
		return proxy.Listen
	}
	w := build(t, setup{single: true, through: through, lease: 30 * time.Second})
	w.start(3)
	for _, toxic := range w.toxics() {
		w.progress(either(50, 100))
		before := w.repeats()
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			t.Fatal(toxic, ": ", err)
		}
		if strings.Contains(toxic, `"latency"`) {
			w.progress(100)
		} else {
			w.until("calls to be repeated", func() bool { return w.repeats() >= before+10 })
		}
		w.blows++
		if err := proxy.Toxics.RemoveToxic(context.Background(), "blow"); err != nil {
			t.Fatal(err)
		}
	}
	w.note("calls repeated", int(w.repeats()))
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	if v.repeats != 0 || v.Doubled.Count != 0 || v.lost != 0 {
		t.Errorf("something was done twice:\n%s", v.Report)
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
