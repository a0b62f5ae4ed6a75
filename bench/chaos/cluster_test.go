//go:build linux

package chaos

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"seine/bench/web"
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

// The slots of all shards move to other masters under load, back to back; two
// masters come, take their part, and go again.
func TestShardsMoved(t *testing.T) {
	// Else a master that gave its last slot away would follow who took it.
	stay := []string{"cluster-allow-replica-migration no"}
	w := build(t, setup{redis: shardtest.Config{Masters: 6, Directives: stay}})
	w.start(3)
	w.progress(either(150, 300))
	for range either(1, 5) {
		for k := range 24 {
			w.move(k, w.redis.Nodes[(w.holder(k)+1)%6])
		}
	}
	w.progress(either(50, 300))
	first, second := w.redis.AddMaster(t), w.redis.AddMaster(t)
	for k := 0; k < 24; k += 4 {
		w.move(k, first)
		w.move(k+1, second)
	}
	w.progress(either(50, 300))
	for k := 0; k < 24; k += 4 {
		w.move(k, w.redis.Nodes[0])
		w.move(k+1, w.redis.Nodes[1])
	}
	w.dismiss(first)
	w.dismiss(second)
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	w.explained(v)
}

// holder is the node that has shard k.
func (w *world) holder(k int) int {
	w.t.Helper()
	return w.redis.MasterOf(w.t, w.shards()[k].Slot).Index
}

// move moves the slot of shard k.
func (w *world) move(k int, to *shardtest.Node) {
	w.t.Helper()
	w.redis.BeginMove(w.t, w.shards()[k].Slot, to).Finish(w.t)
	w.blows++
}

// dismiss takes a master without slots out of the cluster.
func (w *world) dismiss(n *shardtest.Node) {
	w.t.Helper()
	n.Kill(w.t)
	for _, other := range w.redis.Nodes {
		// A node that was dismissed itself does not answer.
		other.Client().Do(context.Background(), "cluster", "forget", n.ID())
	}
}

// freeze is how long a frozen master does not answer.
func freeze() time.Duration { return either(5*time.Second, 10*time.Second) }

// One master is frozen for a while. Shards of the others go on, what waits is
// bounded, and after the thaw all goes on. How much of their rate the others
// keep is told, and in the long form it must be 80%.
func TestMasterFrozen(t *testing.T) {
	even := web.Config{Sites: 60, Exponent: 1000, Links: 20, New: 0.3, Features: web.Spellings}
	w := build(t, setup{web: even, pages: either(4500, 60_000), redis: shardtest.Config{Masters: 6, NodeTimeout: 30 * time.Second}})
	w.start(3)
	w.progress(either(300, 1000))
	kept := 1.0
	for range either(1, 5) {
		n := w.redis.Nodes[w.rng.IntN(6)]
		others := w.hostsBeside(n)
		before := w.rate(others)
		n.Stop(t)
		w.blows++
		during := w.rate(others)
		for _, f := range w.fetchers {
			if held := f.metric("seine_crawl_open_bytes", ""); held < 0 || held > 64<<20 {
				t.Errorf("%s: pages that wait hold %.0f bytes", f.name, held)
			}
		}
		n.Cont(t)
		kept = min(kept, during/before)
		w.progress(100)
	}
	w.note("rate kept by other masters", fmt.Sprintf("%.0f%%", 100*kept))
	if long() && kept < 0.8 {
		t.Errorf("shards on other masters kept %.0f%% of their rate", 100*kept)
	}
	w.calm()
	v := w.judge()
	w.nothingLost(v)
	w.explained(v)
}

// hostsBeside are the hosts whose shards are not at n.
func (w *world) hostsBeside(n *shardtest.Node) map[string]bool {
	w.t.Helper()
	shards := w.shards()
	hosts := map[string]bool{}
	for k := range w.web.Sites() {
		if host := w.web.Host(k); shards[w.front.ShardOf(host)].Master != n.Addr {
			hosts[host] = true
		}
	}
	return hosts
}

// rate is how many requests a second these hosts get, as long as a freeze is.
func (w *world) rate(hosts map[string]bool) float64 {
	from := time.Now()
	<-time.After(freeze())
	count := 0
	for _, r := range w.web.Log() {
		if hosts[r.Host] && r.At.After(from) {
			count++
		}
	}
	return float64(count) / time.Since(from).Seconds()
}
