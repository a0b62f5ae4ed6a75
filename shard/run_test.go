package shard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seine/shard"
	"seine/shard/shardtest"
)

var count = shard.NewScript("count", `return redis.call("INCRBY", KEYS[1], ARGV[1])`)

// open connects to s for the length of the test.
func open(t testing.TB, s *shardtest.Server) *shard.Client {
	t.Helper()
	c, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs[:1]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// within is a context that ends when even a busy machine should have answered.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func run(t testing.TB, c *shard.Client, k int, s *shard.Script, key string, args ...any) any {
	t.Helper()
	v, err := c.Run(within(t), k, s, []string{key}, args...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRun(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		for _, masters := range []int{0, 3} {
			s := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: masters})
			c := open(t, s)
			if c.Cluster() != (masters > 0) {
				t.Fatalf("%d masters: Cluster() = %v", masters, c.Cluster())
			}
			m := shard.NewMap(6)
			for k := range m.Len() {
				key := shard.KeysOf("c", m.Tag(k)).Stats()
				for want := int64(2); want <= 4; want += 2 {
					if v := run(t, c, k, count, key, 2); v != want {
						t.Fatalf("shard %d: %v, want %d", k, v, want)
					}
				}
				if _, err := c.Redis().ScriptFlush(t.Context()).Result(); err != nil {
					t.Fatal(err)
				}
				if v := run(t, c, k, count, key, 1); v != int64(5) {
					t.Fatalf("shard %d after SCRIPT FLUSH: %v", k, v)
				}
			}
		}
	})
}

func TestRunReportsScriptErrors(t *testing.T) {
	t.Parallel()
	c := open(t, shardtest.One(t))
	var serr *shard.Error
	for text, want := range map[string]string{
		`error("broken on purpose")`:              "broken on purpose",
		`return redis.error_reply("OOM no room")`: "OOM no room",
	} {
		_, err := c.Run(within(t), 3, shard.NewScript("fails", text), []string{"k"})
		if !errors.As(err, &serr) || serr.Shard != 3 || serr.Op != "fails" {
			t.Fatalf("%v", err)
		}
		if got := serr.Err.Error(); !contains(got, want) {
			t.Errorf("%q, want %q in it", got, want)
		}
	}
	if v, err := c.Run(within(t), 0, shard.NewScript("nil", "return false"), []string{"k"}); v != nil || err != nil {
		t.Errorf("nil reply: %v, %v", v, err)
	}
}

// A master that is killed and comes back is waited for; what was remembered
// before is of an older epoch.
func TestRunThroughRestart(t *testing.T) {
	t.Parallel()
	for _, masters := range []int{0, 2} {
		s := shardtest.Start(t, shardtest.Config{Masters: masters, AOF: "always"})
		c := open(t, s)
		n := s.Nodes[0]
		key := shard.KeysOf("c", shard.NewMap(2).Tag(0)).Stats()
		run(t, c, 0, count, key, 1)
		before := c.Epoch(0)
		if run(t, c, 0, count, key, 1); c.Epoch(0) != before {
			t.Error("the epoch rose without a cause")
		}
		n.Kill(t)
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := c.Run(short, 0, count, []string{key}, 0)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("dead master: %v", err)
		}
		done := make(chan any)
		go func() {
			v, err := c.Run(within(t), 0, count, []string{key}, 0)
			done <- fmt.Sprint(v, err)
		}()
		n.Restart(t)
		if got := <-done; got != "2 <nil>" {
			t.Fatalf("after the restart: %v", got)
		}
		if after := c.Epoch(0); after <= before {
			t.Errorf("epoch %d before the restart, %d after", before, after)
		}
	}
}

// However many call at once, a master sees at most eight connections.
func TestAtMostEightConnections(t *testing.T) {
	t.Parallel()
	s := shardtest.One(t)
	c, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs, Name: "many"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	block := shard.NewScript("block", `for i = 1, 20000 do redis.call("GET", KEYS[1]) end return 1`)
	var calls sync.WaitGroup
	for range 64 {
		calls.Go(func() {
			if _, err := c.Run(within(t), 0, block, []string{"k"}); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	list := fmt.Sprint(s.Nodes[0].Do(t, "client", "list"))
	if n := strings.Count(list, "name=many "); n < 2 || n > 8 {
		t.Errorf("%d connections:\n%s", n, list)
	}
}

func TestRunThroughFailover(t *testing.T) {
	t.Parallel()
	s := shardtest.WithReplicas(t, 3, 1)
	c := open(t, s)
	key := shard.KeysOf("c", shard.NewMap(3).Tag(0)).Stats()
	_, acked, err := c.RunAck(within(t), 0, count, 1, 10*time.Second, []string{key}, 1)
	if err != nil || acked != 1 {
		t.Fatal(acked, err)
	}
	before := c.Epoch(0)
	s.Nodes[0].Kill(t)
	if v := run(t, c, 0, count, key, 1); v != int64(2) {
		t.Fatalf("after the failover: %v", v)
	}
	if after := c.Epoch(0); after <= before {
		t.Errorf("epoch %d before the failover, %d after", before, after)
	}
	if _, acked, err = c.RunAck(within(t), 0, count, 1, time.Millisecond, []string{key}, 1); err != nil || acked != 0 {
		t.Errorf("without a replica: acked by %d, %v", acked, err)
	}
	if owner, err := c.Owner(t.Context(), key); err != nil || owner != s.Replicas(0)[0].Addr {
		t.Errorf("owner %s, %v", owner, err)
	}
}

// What no replica has got is not called acknowledged.
func TestRunAckWithFrozenReplica(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		s := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: 1, Replicas: 1, NodeTimeout: time.Minute})
		c := open(t, s)
		replica := s.Replicas(0)[0]
		ack := func(timeout time.Duration) (any, int) {
			v, acked, err := c.RunAck(within(t), 0, count, 1, timeout, []string{"k"}, 1)
			if err != nil {
				t.Fatal(err)
			}
			return v, acked
		}
		if v, acked := ack(time.Minute); v != int64(1) || acked != 1 {
			t.Fatal(v, acked)
		}
		replica.Stop(t)
		if v, acked := ack(20 * time.Millisecond); v != int64(2) || acked != 0 {
			t.Errorf("frozen replica: %v, acknowledged by %d", v, acked)
		}
		replica.Cont(t)
		if v, acked := ack(time.Minute); v != int64(3) || acked != 1 {
			t.Errorf("thawed replica: %v, acknowledged by %d", v, acked)
		}
	})
}

// A frozen master costs a try its time-out, not the call for ever.
func TestRunThroughFreeze(t *testing.T) {
	t.Parallel()
	s := shardtest.One(t)
	c, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs, TryTimeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run(t, c, 0, count, "k", 0)
	before := c.Epoch(0)
	s.Nodes[0].Stop(t)
	done := make(chan error)
	go func() {
		_, err := c.Run(within(t), 0, count, []string{"k"}, 0)
		done <- err
	}()
	for c.Epoch(0) == before { // until a try was given up
		select {
		case err := <-done:
			t.Fatal("a frozen server answered: ", err)
		default:
		}
	}
	s.Nodes[0].Cont(t)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestEachGivesUpOnPermanentErrors(t *testing.T) {
	t.Parallel()
	c := open(t, shardtest.One(t))
	tries := 0
	err := c.Each(within(t), 0, "probe", "k", func(context.Context, shard.Endpoint) error {
		if tries++; tries < 3 {
			return io.ErrUnexpectedEOF
		}
		return redis.ErrCrossSlot
	})
	if tries != 3 || !errors.Is(err, redis.ErrCrossSlot) {
		t.Errorf("%d tries, %v", tries, err)
	}
}

func BenchmarkRun(b *testing.B) {
	c := open(b, shardtest.One(b))
	keys, args := []string{"k", "l", "m"}, []any{1, "two", 3}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Run(b.Context(), 0, count, keys, args...); err != nil {
			b.Fatal(err)
		}
	}
}

// TestScriptErrors: an error of a script names the file and the line there, on
// every server.
func TestScriptErrors(t *testing.T) {
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		c := open(t, shardtest.Start(t, shardtest.Config{Kind: kind}))
		for _, flags := range []string{"", "#!lua flags=allow-oom\n"} {
			for _, bad := range []struct {
				text, want string
			}{
				{"-- second\nlocal x = nil + 1\n", "b.lua:2: "},
				{"\n\nfail()\n", "a.lua:2: "},
				{"redis.call('HSET', KEYS[1], 'a', 1)\nreturn redis.call('LPOP', KEYS[1])\n", "b.lua:2"},
				{"\nlocal = 1\n", "b.lua:2: "},
			} {
				s := shard.JoinScript("bad", flags, shard.ScriptPart{File: "a.lua", Text: "-- first\nlocal function fail() error({err = nil .. ''}) end\n"},
					shard.ScriptPart{File: "b.lua", Text: bad.text})
				_, err := c.Run(within(t), 0, s, []string{"k"})
				if err == nil || !strings.Contains(err.Error(), bad.want) || strings.Contains(err.Error(), "user_script") {
					t.Errorf("%q: %v, want %s", flags+bad.text, err, bad.want)
				}
				var e *shard.Error
				if !errors.As(err, &e) || e.Op != "bad" {
					t.Errorf("%v is no error of the script", err)
				}
			}
		}
	})
}
