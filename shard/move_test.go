package shard_test

import (
	"fmt"
	"testing"
	"time"

	"seine/shard"
	"seine/shard/shardtest"
)

func TestRunThroughMove(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		for _, endpoint := range []string{"ip", "unknown-endpoint"} { // with the latter hosts are null
			t.Run(endpoint, func(t *testing.T) {
				t.Parallel()
				runThroughMove(t, kind, "cluster-preferred-endpoint-type "+endpoint)
			})
		}
	})
}

func runThroughMove(t *testing.T, kind shardtest.Kind, endpoint string) {
	s := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: 2, Directives: []string{endpoint}})
	c := open(t, s)
	keys := shard.KeysOf("c", shard.NewMap(2).Tag(0))
	slot := shard.Slot(shard.NewMap(2).Tag(0))
	both := shard.NewScript("both", `return redis.call("INCR", KEYS[1]) + redis.call("INCR", KEYS[2])`)
	pair := []string{keys.Stats(), keys.Meta()}
	call := func() any {
		v, err := c.Run(within(t), 0, both, pair)
		return fmt.Sprint(v, err)
	}
	if got := call(); got != "2 <nil>" {
		t.Fatal(got)
	}
	before := c.Epoch(0)

	move := s.BeginMove(t, slot, s.Nodes[1])
	move.Keys(t, keys.Stats()) // the keys are here and there: TRYAGAIN
	result := make(chan any)
	go func() { result <- call() }()
	untilRefused(t, s.Nodes[0])
	move.Keys(t, keys.Meta()) // all there: ASK
	if got := <-result; got != "4 <nil>" {
		t.Fatal(got)
	}
	if got := call(); got != "6 <nil>" {
		t.Fatal(got)
	}
	if _, acked, err := c.RunAck(within(t), 0, both, 0, time.Second, pair); err != nil || acked != 0 {
		t.Fatal(acked, err)
	}
	if v, err := c.Do(within(t), 0, keys.Stats(), "get", keys.Stats()); v != "4" || err != nil {
		t.Fatal(v, err)
	}
	move.Finish(t) // MOVED
	if got := call(); got != "10 <nil>" {
		t.Fatal(got)
	}
	if _, _, err := c.RunAck(within(t), 0, both, 0, time.Second, pair); err != nil {
		t.Fatal(err)
	}
	if after := c.Epoch(0); after <= before {
		t.Errorf("epoch %d before the move, %d after", before, after)
	}
	if c.Epoch(1) != 0 {
		t.Errorf("epoch of an untouched shard is %d", c.Epoch(1))
	}
}

// A slot on its way to a master that owned none yet: no slot table names that
// node, only the redirect does.
func TestRunThroughMoveToNewMaster(t *testing.T) {
	t.Parallel()
	s := shardtest.Masters(t, 2)
	c := open(t, s)
	key := shard.KeysOf("c", shard.NewMap(2).Tag(0)).Stats()
	run(t, c, 0, count, key, 1)
	move := s.BeginMove(t, shard.Slot(shard.NewMap(2).Tag(0)), s.AddMaster(t))
	move.Keys(t, key)
	for want := int64(2); want <= 3; want++ {
		if v := run(t, c, 0, count, key, 1); v != want { // ASK
			t.Fatalf("%v, want %d", v, want)
		}
	}
	move.Finish(t)
	for want := int64(4); want <= 5; want++ {
		if v := run(t, c, 0, count, key, 1); v != want { // MOVED, then by the table
			t.Fatalf("%v, want %d", v, want)
		}
	}
	for ctx := within(t); ; { // the redirect has the table read again, beside the calls
		owner, err := c.Owner(ctx, key)
		if owner == move.To.Addr {
			return
		}
		if err != nil || ctx.Err() != nil {
			t.Fatalf("owner %s, want %s (%v)", owner, move.To.Addr, err)
		}
	}
}

// untilRefused waits until the node has refused a call for a half moved slot.
func untilRefused(t testing.TB, n *shardtest.Node) {
	t.Helper()
	for ctx := within(t); ctx.Err() == nil; {
		if contains(fmt.Sprint(n.Do(t, "info", "errorstats")), "errorstat_TRYAGAIN") {
			return
		}
	}
	t.Fatal("no TRYAGAIN")
}
