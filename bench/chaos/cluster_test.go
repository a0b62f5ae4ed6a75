//go:build linux

package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seine/shard/shardtest"
)

// Replicas are made masters in agreement with the old ones.
func TestFailover(t *testing.T) {
	w := build(t, setup{redis: shardtest.Config{Masters: either(3, 6), Replicas: 1}})
	w.start(3)
	for range either(1, 3) {
		for m := range w.setup.redis.Masters {
			w.progress(either(50, 100))
			w.redis.Failover(t, w.replica(m))
			w.blows++
		}
	}
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	w.explained(v)
}

// replica is the node of a pair that now follows the other.
func (w *world) replica(m int) *shardtest.Node {
	w.t.Helper()
	master := w.redis.Nodes[m]
	if strings.Contains(fmt.Sprint(master.Do(w.t, "info", "replication")), "role:slave") {
		return master
	}
	return w.redis.Replicas(m)[0]
}

// freeze is how long a frozen master does not answer.
func freeze() time.Duration { return either(5*time.Second, 10*time.Second) }

// One master is frozen for a while. Shards of the others go on, what waits is
// bounded, and after the thaw all goes on.
func TestMasterFrozen(t *testing.T) {
	w := build(t, setup{web: even, pages: either(4500, 60_000), redis: shardtest.Config{Masters: 6, NodeTimeout: 30 * time.Second}})
	w.start(3)
	w.progress(either(300, 1000))
	r := w.measureRates(freeze())
	for range either(1, 5) {
		n := w.redis.Nodes[w.rng.IntN(6)]
		others := w.hostsBeside(n)
		r.start(others)
		n.Stop(t)
		w.blows++
		<-time.After(freeze())
		r.stop()
		for _, f := range w.fetchers {
			if open := f.metric("seine_crawl_open_bytes", ""); open < 0 || open > 64<<20 {
				t.Errorf("%s: pages that wait hold %.0f bytes", f.name, open)
			}
		}
		n.Cont(t)
		w.progress(100)
	}
	r.judge("rate kept by other masters", 0.8)
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	w.explained(v)
}
