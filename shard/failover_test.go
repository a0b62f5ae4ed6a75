package shard_test

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seine/shard"
	"seine/shard/shardtest"
)

// TestRunAckWhileDemoted: a master that becomes a replica, or ends the call by hand or
// with its connection, while WAIT is under way has not acknowledged: the call is made
// again.
func TestRunAckWhileDemoted(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		s := shardtest.Start(t, shardtest.Config{Kind: kind, Replicas: 1})
		n, replica := s.Nodes[0], s.Nodes[1]
		c := open(t, s)
		read := shard.NewScript("read", "#!lua flags=no-writes\n"+`return redis.call("GET", KEYS[1])`)
		stat := func(section, want string) {
			t.Helper()
			for ctx := within(t); !contains(fmt.Sprint(n.Do(t, "info", section)), want); {
				if ctx.Err() != nil {
					t.Fatalf("no %s", want)
				}
			}
		}
		demote := func() { n.Do(t, "replicaof", "127.0.0.1", "1") }
		for _, x := range []struct {
			name   string
			script *shard.Script
			blow   func()
			seen   string
		}{
			{"during WAIT", count, demote, "errorstat_UNBLOCKED"},
			{"CLIENT UNBLOCK", count, func() {
				for line := range strings.Lines(fmt.Sprint(n.Do(t, "client", "list"))) {
					if id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " "); contains(line, "cmd=wait") {
						n.Do(t, "client", "unblock", id, "error")
					}
				}
			}, "errorstat_UNBLOCKED"},
			{"CLIENT KILL", count, func() { n.Do(t, "client", "kill", "type", "normal", "skipme", "yes") }, ""},
			{"before WAIT", read, nil, "errorstat_ERR"},
		} {
			if x.blow == nil {
				demote()
			} else {
				replica.Stop(t)
			}
			n.Do(t, "config", "resetstat")
			done := make(chan string, 1)
			go func() {
				_, acked, err := c.RunAck(within(t), 0, x.script, 1, time.Minute, []string{"k"}, 1)
				done <- fmt.Sprint(acked, err)
			}()
			if x.blow != nil {
				stat("clients", "blocked_clients:1")
				x.blow()
			}
			if x.seen != "" {
				stat("errorstats", x.seen)
			}
			if x.blow != nil {
				replica.Cont(t)
			}
			n.Do(t, "replicaof", "no", "one")
			if got := <-done; got != "1 <nil>" {
				t.Errorf("%s: %s", x.name, got)
			}
		}
	})
}

// replied is an error reply that a raw connection read.
type replied string

func (r replied) Error() string { return string(r) }
func (replied) RedisError()     {}

// callers make every kind of call to shard k, again and again until stop is called,
// which reports how many of each were made. No call may fail; what was acknowledged
// must stay.
func callers(t *testing.T, c *shard.Client, k int, tag string) (stop func() map[string]int64) {
	keys := shard.KeysOf("c", tag)
	n, sites := keys.Stats(), keys.Meta()
	ended := make(chan struct{})
	var all sync.WaitGroup
	made := make(map[string]*atomic.Int64)
	loop := func(name string, call func(i int64) error) {
		calls := new(atomic.Int64)
		made[name] = calls
		all.Go(func() {
			for i := int64(1); ; i++ {
				select {
				case <-ended:
					return
				default:
				}
				if err := call(i); err != nil {
					t.Errorf("%s of shard %d: %v", name, k, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	flagged := shard.NewScript("flagged", "#!lua flags=allow-oom\n"+`return redis.call("HINCRBY", KEYS[1], "n", 1)`)
	reads := shard.NewScript("reads", "#!lua flags=no-writes\n"+`return redis.call("GET", KEYS[1])`)
	acked := int64(0)
	for i := range 3 {
		loop(fmt.Sprint("RunAck ", i), func(int64) error {
			_, by, err := c.RunAck(within(t), k, count, 1, 10*time.Second, []string{n}, 1)
			if by > 0 {
				atomic.AddInt64(&acked, 1)
			}
			return err
		})
	}
	loop("RunAck, read only", func(int64) error {
		_, _, err := c.RunAck(within(t), k, reads, 1, 10*time.Millisecond, []string{n})
		return err
	})
	loop("Run", func(int64) error { _, err := c.Run(within(t), k, flagged, []string{sites}); return err })
	loop("Run, read only", func(int64) error { _, err := c.Run(within(t), k, reads, []string{n}); return err })
	loop("Do", func(i int64) error { _, err := c.Do(within(t), k, sites, "HSET", sites, "do", i); return err })
	loop("Hash", func(int64) error { _, err := c.Hash(within(t), k, sites); return err })
	loop("CompareAndSet", func(i int64) error {
		have, err := c.Do(within(t), k, sites, "HGET", sites, "cas")
		if err == nil {
			_, err = c.CompareAndSet(within(t), k, sites, shard.Fields{"cas", shard.Text(have)}, shard.Fields{"cas", strconv.FormatInt(i, 10)})
		}
		return err
	})
	loop("Each", func(int64) error {
		return c.Each(within(t), k, "raw", n, func(ctx context.Context, at shard.Endpoint) error {
			conn, err := at.Dial(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(5 * time.Second))
			if at.Ask {
				fmt.Fprint(conn, "ASKING\r\n")
			}
			fmt.Fprintf(conn, "INCRBY %s 0\r\n", n)
			line, err := bufio.NewReader(conn).ReadString('\n')
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "-"); ok {
				return replied(rest)
			}
			return err
		})
	})
	return func() map[string]int64 {
		close(ended)
		all.Wait()
		have, err := c.Do(within(t), k, n, "GET", n)
		if err != nil || shard.Int(have) < acked {
			t.Errorf("shard %d counts %v, %d were acknowledged (%v)", k, have, acked, err)
		}
		sum := make(map[string]int64)
		for name, calls := range made {
			sum[name] = calls.Load()
		}
		return sum
	}
}

// TestCallsThroughFailovers: no call fails through failovers of all kinds, ended
// connections and forgotten scripts, and what was acknowledged stays.
func TestCallsThroughFailovers(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		s := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: 3, Replicas: 1})
		c := open(t, s)
		if _, err := c.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		m := shard.NewMap(3)
		var stops []func() map[string]int64
		for k := range 2 {
			stops = append(stops, callers(t, c, k, m.Tag(k)))
		}
		for _, how := range []string{"", "force", "takeover", "", "takeover", "force"} {
			for k := range 2 {
				pair := []*shardtest.Node{s.Nodes[k], s.Replicas(k)[0]}
				next := pair[1]
				if !contains(fmt.Sprint(next.Do(t, "info", "replication")), "role:slave") {
					next = pair[0]
				}
				for ctx := within(t); ; { // a replica that was just made may not be fit to take over
					args := []any{"cluster", "failover"}
					if how != "" {
						args = append(args, how)
					}
					if next.Client().Do(t.Context(), args...); contains(fmt.Sprint(next.Do(t, "info", "replication")), "role:master") {
						break
					}
					if ctx.Err() != nil {
						t.Fatal("no failover")
					}
					<-time.After(10 * time.Millisecond)
				}
				for _, n := range pair {
					n.Do(t, "client", "kill", "type", "normal", "skipme", "yes")
					n.Do(t, "script", "flush")
				}
			}
			s.WaitWhole(t)
		}
		for k, stop := range stops {
			for name, calls := range stop() {
				if calls == 0 {
					t.Errorf("%s of shard %d was never made", name, k)
				}
			}
		}
	})
}

// TestCallsThroughSentinelFailovers is the same of servers that sentinels watch.
func TestCallsThroughSentinelFailovers(t *testing.T) {
	t.Parallel()
	s := shardtest.Start(t, shardtest.Config{Replicas: 1, Sentinels: 3, NodeTimeout: time.Second, AOF: "everysec"})
	c, err := shard.Open(t.Context(), shard.Config{Addrs: []string{s.SentinelURL()}, TryTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop := callers(t, c, 0, "t")
	for range 2 {
		old := s.Master(t, nil)
		for ctx := within(t); ; { // sentinels take no second failover for a while
			err := s.Watch[0].Client().Do(t.Context(), "sentinel", "failover", "seine").Err()
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			<-time.After(50 * time.Millisecond)
		}
		s.Master(t, old)
		old.WaitRole(t, "slave")
	}
	for name, calls := range stop() {
		if calls == 0 {
			t.Errorf("%s was never made", name)
		}
	}
}
