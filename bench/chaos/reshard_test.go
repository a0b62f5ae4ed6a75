//go:build linux

package chaos

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"seine/shard/shardtest"
)

// The slots of all shards move to other masters under load, by the tool that
// operators use: at half its speed, and back to back; two masters come, take
// their part, and go again. Shards of masters that are not part of a move keep
// their rate.
func TestShardsMoved(t *testing.T) {
	// Else a master that gave its last slot away would follow who took it.
	stay := []string{"cluster-allow-replica-migration no"}
	w := build(t, setup{web: even, pages: either(16_000, 60_000), delay: 300 * time.Millisecond, redis: shardtest.Config{Masters: 6, Directives: stay}})
	w.start(3)
	w.progress(either(300, 1000))
	r := w.measureRates(either(4*time.Second, 20*time.Second))
	turns := 0
	for range either(0, 3) {
		w.turnSlots(turns, 6, r)
		turns++
	}
	r.judge("rate kept beside slow moves", 0.9)
	for range either(1, 3) {
		w.turnSlots(turns, 1, r)
		turns++
	}
	r.judge("rate kept beside moves without pause", 0.9)
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

// turnSlots moves the slots of each master, and with them all shards, to the
// next one, after as many turns before. Several parts have pauses as long as
// they took; one has none, and neither have the masters among each other.
func (w *world) turnSlots(before, parts int, r *rates) {
	w.t.Helper()
	const masters = 6
	// redis-cli takes the lowest slots of a master first. The highest group goes
	// first, to where the lowest is still, which leaves last.
	for g := masters - 1; g >= 0; g-- {
		from, to := w.redis.Nodes[(g+before)%masters], w.redis.Nodes[(g+before+1)%masters]
		slots := (g+1)*16384/masters - g*16384/masters
		untouched := w.hostsBeside(from, to)
		r.start(untouched)
		for p := range parts {
			began := time.Now()
			w.reshard(from, to, (p+1)*slots/parts-p*slots/parts)
			if parts > 1 {
				<-time.After(time.Since(began)) // shapes the load, waits for nothing
			}
		}
		r.stop()
	}
}

// reshard lets redis-cli move the first slots of one master to another.
func (w *world) reshard(from, to *shardtest.Node, slots int) {
	w.t.Helper()
	w.until("redis-cli to find the cluster in order", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		out, err := exec.CommandContext(ctx, "redis-cli", "--cluster", "reshard", from.Addr, "--cluster-from", from.ID(), "--cluster-to", to.ID(),
			"--cluster-slots", fmt.Sprint(slots), "--cluster-yes").CombinedOutput()
		if err != nil && !strings.Contains(string(out), "Please fix your cluster problems before resharding") {
			w.t.Fatalf("redis-cli --cluster reshard: %v\n%s", err, out[max(0, len(out)-2000):])
		}
		return err == nil
	})
	w.blows++
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
