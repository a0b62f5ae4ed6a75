package shard_test

import (
	"errors"
	"testing"

	"seine/shard"
	"seine/shard/shardtest"
)

func TestCheckAck(t *testing.T) {
	t.Parallel()
	alone := shardtest.One(t)
	c := open(t, alone)
	if _, err := c.CheckAck(t.Context(), 1); !errors.Is(err, shard.ErrUnfit) || !contains(err.Error(), alone.Addrs[0]) {
		t.Errorf("no replica: %v", err)
	}
	s := shardtest.WithReplicas(t, 3, 1)
	c = open(t, s)
	if w, err := c.CheckAck(t.Context(), 1); w != nil || err != nil {
		t.Errorf("a replica each: %v, %v", w, err)
	}
	if _, err := c.CheckAck(t.Context(), 2); !errors.Is(err, shard.ErrUnfit) {
		t.Errorf("two of one: %v", err)
	}
	s.Replicas(0)[0].Kill(t)
	for { // until its master noticed
		w, err := c.CheckAck(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if w == nil {
			continue
		}
		if len(w.Servers) != 1 || w.Servers[0] != s.Addrs[0] {
			t.Errorf("%v", w)
		}
		return
	}
}
