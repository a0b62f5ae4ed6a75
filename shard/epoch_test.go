package shard_test

import (
	"testing"

	"seine/shard/shardtest"
)

// A connection that broke between two calls raises the epoch though the call
// that finds out succeeds.
func TestEpochRisesOnSilentBreak(t *testing.T) {
	t.Parallel()
	s := shardtest.One(t)
	c := open(t, s)
	run(t, c, 0, count, "k", 1)
	before := c.Epoch(0)
	s.Nodes[0].Do(t, "client", "kill", "type", "normal", "skipme", "yes")
	run(t, c, 0, count, "k", 1)
	if after := c.Epoch(0); after <= before {
		t.Errorf("epoch %d before, %d after", before, after)
	}
}

// A master that became a replica under its name, as behind a service address,
// raises the epoch: what the new one has not got is lost.
func TestEpochRisesOnDemotion(t *testing.T) {
	t.Parallel()
	s := shardtest.One(t)
	n := s.Nodes[0]
	c := open(t, s)
	run(t, c, 0, count, "k", 1)
	before := c.Epoch(0)
	n.Do(t, "replicaof", "127.0.0.1", "1")
	done := make(chan error)
	go func() {
		_, err := c.Run(within(t), 0, count, []string{"k"}, 1)
		done <- err
	}()
	for !contains(n.Client().Info(t.Context(), "errorstats").Val(), "READONLY") {
	}
	n.Do(t, "replicaof", "no", "one")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if after := c.Epoch(0); after <= before {
		t.Errorf("epoch %d before, %d after", before, after)
	}
}
