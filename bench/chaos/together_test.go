//go:build linux

package chaos

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"seine/shard/shardtest"
)

// failover makes the replica of a pair master, in the way that how names: "" in
// agreement with the old one.
func (w *world) failover(m int, how string) {
	w.t.Helper()
	next := w.replica(m)
	w.until("a failover", func() bool { // a replica that was just made may not be fit to take over
		args := []any{"cluster", "failover"}
		if how != "" {
			args = append(args, how)
		}
		next.Client().Do(context.Background(), args...)
		return strings.Contains(fmt.Sprint(next.Do(w.t, "info", "replication")), "role:master")
	})
	w.redis.WaitWhole(w.t)
}

// all runs a command on every server.
func (w *world) all(args ...any) {
	w.t.Helper()
	for _, n := range w.redis.Nodes {
		n.Do(w.t, args...)
	}
}

// TestFaultsTogether: fetchers killed, failovers of all kinds, ended connections,
// forgotten scripts and rights taken away for a while, mixed at random. Nothing is
// lost, and no fetcher ends for another reason than that it lacked a right.
func TestFaultsTogether(t *testing.T) {
	w := build(t, setup{pages: either(6000, 30_000), delay: 100 * time.Millisecond, forgets: true,
		redis: shardtest.Config{Masters: 6, Replicas: 1}, fetch: []string{"--ack", "replica"}})
	w.start(3)
	counts := map[string]int{}
	faults := []struct {
		name string
		do   func()
	}{
		{"fetchers killed", func() { f := w.pick(); f.kill(); f.start() }},
		{"failovers", func() { w.failover(w.rng.IntN(6), "") }},
		{"forced failovers", func() { w.failover(w.rng.IntN(6), "force") }},
		{"takeovers", func() { w.failover(w.rng.IntN(6), "takeover") }},
		{"clients killed", func() { w.all("client", "kill", "type", "normal", "skipme", "yes") }},
		{"scripts flushed", func() { w.all("script", "flush") }},
		{"rights taken", func() {
			rights := []string{"rpush", "zadd", "hincrby", "hset", "zrem", "bf.insert", "hget", "wait"}
			right := rights[w.rng.IntN(len(rights))]
			w.all("acl", "setuser", "default", "-"+right)
			<-time.After(time.Duration(200+w.rng.IntN(1500)) * time.Millisecond)
			w.all("acl", "setuser", "default", "+"+right)
		}},
	}
	for i := range either(28, 140) {
		w.progress(either(60, 100))
		fault := faults[(i+w.rng.IntN(2))%len(faults)]
		fault.do()
		counts[fault.name]++
		w.blows++
		for _, f := range w.fetchers {
			if f.running() {
				continue
			}
			if text := f.logged()[f.from:]; f.err == nil || !strings.Contains(text, "may not") {
				t.Errorf("after %s %s ended by itself: %v\n%s", fault.name, f.name, f.err, f.tail())
			}
			counts["fetchers ended for want of a right"]++
			f.start()
		}
	}
	for _, fault := range faults {
		w.note(fault.name, counts[fault.name])
	}
	w.note("fetchers ended for want of a right", counts["fetchers ended for want of a right"])
	w.calm()
	v := w.judge()
	w.nothingLost(v)
}
