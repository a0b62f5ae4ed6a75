//go:build linux

package chaos

import (
	"testing"
	"time"

	"seine/shard/shardtest"
)

// One server with a replica, watched by sentinels: the master is killed with -9,
// the replica, which lags, takes over, and the old one comes back as its replica.
// With --ack replica nothing is lost.
func TestSentinelFailover(t *testing.T) {
	w := build(t, setup{redis: shardtest.Config{Replicas: 1, Sentinels: 3, NodeTimeout: time.Second, AOF: "everysec"}, fetch: []string{"--ack", "replica"}, pages: either(1500, 20_000), delay: 100 * time.Millisecond})
	w.start(3)
	for range either(1, 10) {
		w.progress(either(200, 300))
		old := w.redis.Master(t, nil)
		next := w.redis.Nodes[1-old.Index]
		next.Stop(t)
		old.Do(t, "client", "kill", "type", "replica")
		w.progress(20)
		old.Kill(t)
		w.blows++
		next.Cont(t)
		w.redis.Rejoin(t, old)
	}
	w.calm()
	w.nothingLost(w.judge())
}
