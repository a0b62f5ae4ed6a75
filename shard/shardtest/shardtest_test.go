package shardtest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"seine/shard/shardtest"
)

func TestOne(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		s := shardtest.Start(t, shardtest.Config{Kind: kind, AOF: "always"})
		n := s.Nodes[0]
		n.Do(t, "bf.reserve", "f", 0.001, 1000)
		n.Do(t, "set", "k", "v")
		n.Kill(t)
		if err := n.Client().Ping(context.Background()).Err(); err == nil {
			t.Fatal("a killed server answers")
		}
		n.Restart(t)
		if v := n.Do(t, "get", "k"); v != "v" {
			t.Fatalf("after restart: %v", v)
		}
	})
}

func TestCluster(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		s := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: 3, Replicas: 1})
		for i, slot := range []int{0, 6000, 16383} {
			if got := s.MasterOf(t, slot); got != s.Nodes[i] {
				t.Fatalf("slot %d is at node %d", slot, got.Index)
			}
		}
		s.Failover(t, s.Replicas(1)[0])
		if got := s.MasterOf(t, 6000); got != s.Replicas(1)[0] {
			t.Fatalf("after failover slot 6000 is at node %d", got.Index)
		}
		s.Nodes[2].Do(t, "set", "a", "1") // slot 15495
		s.BeginMove(t, 15495, s.Nodes[0]).Finish(t)
		if v := s.Nodes[0].Do(t, "get", "a"); v != "1" {
			t.Fatalf("after the move: %v", v)
		}
		s.Nodes[0].Kill(t)
		if got := s.MasterOf(t, 100); got != s.Replicas(0)[0] {
			t.Fatalf("after the kill slot 100 is at node %d", got.Index)
		}
	})
}

// Without a server or the module a test is skipped; where CI is set it fails.
func TestMissing(t *testing.T) {
	t.Parallel()
	if os.Getenv("SHARDTEST_MISSING") != "" {
		shardtest.One(t)
		return
	}
	for _, c := range []struct{ env, want string }{
		{"PATH=/none CI=", "SKIP"},
		{"PATH=/none CI=true", "FAIL"},
		{"SEINE_REDISBLOOM=/none CI=", "SKIP"},
		{"SEINE_REDISBLOOM=/none CI=true", "FAIL"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMissing$", "-test.v")
		cmd.Env = append(os.Environ(), append(strings.Fields(c.env), "SHARDTEST_MISSING=1")...)
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), "--- "+c.want+": TestMissing") || !strings.Contains(string(out), "scripts/setup") {
			t.Errorf("with %s: want %s, got\n%s", c.env, c.want, out)
		}
	}
}
