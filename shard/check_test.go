package shard_test

import (
	"errors"
	"testing"

	"seine/shard"
	"seine/shard/shardtest"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		s := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: 3, AOF: "everysec"})
		c := open(t, s)
		if warnings, err := c.Check(t.Context()); err != nil || len(warnings) > 0 {
			t.Fatalf("well set up: %v, %v", warnings, err)
		}
		if masters, err := c.Masters(t.Context()); err != nil || len(masters) != 3 {
			t.Fatalf("masters: %v, %v", masters, err)
		}
		for _, n := range s.Nodes[:2] {
			n.Do(t, "config", "set", "list-compress-depth", "0", "cluster-require-full-coverage", "yes", "appendonly", "no")
		}
		warnings, err := c.Check(t.Context())
		if err != nil || len(warnings) != 3 {
			t.Fatalf("%v, %v", warnings, err)
		}
		for _, w := range warnings {
			if len(w.Servers) != 2 || w.Set == "" {
				t.Errorf("%v", w)
			}
		}
		s.Nodes[1].Do(t, "config", "set", "maxmemory-policy", "allkeys-lru")
		_, err = c.Check(t.Context())
		if !errors.Is(err, shard.ErrUnfit) || !contains(err.Error(), s.Addrs[1]+" has maxmemory-policy allkeys-lru") || contains(err.Error(), s.Addrs[0]) {
			t.Errorf("evicting: %v", err)
		}
	})
}

func TestCheckNamesServerWithoutBloom(t *testing.T) {
	t.Parallel()
	s := shardtest.Start(t, shardtest.Config{NoBloom: true})
	_, err := open(t, s).Check(t.Context())
	if !errors.Is(err, shard.ErrNoBloom) || !contains(err.Error(), s.Addrs[0]) || !contains(err.Error(), "--loadmodule") {
		t.Errorf("%v", err)
	}
}

func TestCheckRefusesReplica(t *testing.T) {
	t.Parallel()
	master, s := shardtest.One(t), shardtest.One(t)
	host, port := split(master.Addrs[0])
	s.Nodes[0].Do(t, "replicaof", host, port)
	if _, err := open(t, s).Check(t.Context()); !errors.Is(err, shard.ErrUnfit) || !contains(err.Error(), "name its master "+master.Addrs[0]) {
		t.Errorf("%v", err)
	}
}

// A managed server may forbid INFO and CONFIG; the crawl runs all the same.
func TestCheckWhereAskingIsForbidden(t *testing.T) {
	t.Parallel()
	s := shardtest.One(t)
	s.Nodes[0].Do(t, "acl", "setuser", "app", "on", ">secret", "~c:*", "+@all", "-info", "-config")
	c, err := shard.Open(t.Context(), shard.Config{Addrs: []string{"redis://app:secret@" + s.Addrs[0]}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if warnings, err := c.Check(t.Context()); err != nil || len(warnings) > 0 || c.Cluster() {
		t.Errorf("%v, %v", warnings, err)
	}
}
