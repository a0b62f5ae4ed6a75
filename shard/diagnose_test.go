package shard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seine/shard"
	"seine/shard/shardtest"
)

// diagnose returns the findings about some servers, by what was looked at, but for
// those that are so on a busy machine.
func diagnose(t *testing.T, s *shardtest.Server, user string) map[string]shard.Finding {
	t.Helper()
	c, err := shard.Open(t.Context(), shard.Config{Addrs: []string{"redis://" + user + s.Addrs[0]}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	by := map[string]shard.Finding{}
	for _, f := range c.Diagnose(t.Context()) {
		if f.What == "latency" || f.What == "fork" {
			continue
		}
		if (f.Level == shard.OK) != (f.Do == "") {
			t.Errorf("%+v: what is not ok says what to do, what is ok does not", f)
		}
		if old, there := by[f.What]; !there || old.Level == shard.OK {
			by[f.What] = f
		}
	}
	return by
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		t.Run("well", func(t *testing.T) {
			s := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: 2, Replicas: 1, AOF: "everysec", NodeTimeout: 15 * time.Second,
				Directives: []string{"maxmemory 100mb", "cluster-replica-validity-factor 0", "tcp-keepalive 60"}})
			found := diagnose(t, s, "")
			for what, f := range found {
				if f.Level != shard.OK {
					t.Errorf("%s: %+v", what, f)
				}
			}
			for what, has := range map[string]string{"version": map[shardtest.Kind]string{"redis": "Redis 7", "valkey": "Valkey 8"}[kind],
				"bloom module": "bf, version 20", "memory": "% of maxmemory", "replicas": "1", "persistence": "append-only", "cluster": "16384 of 16384",
				"clocks of masters": "apart", "connections": "more programs", "maxmemory-policy": "noeviction"} {
				if !strings.Contains(found[what].Found, has) {
					t.Errorf("%s: %+v, want %q", what, found[what], has)
				}
			}
			if n := len(found["version"].Servers); n != 2 {
				t.Errorf("a finding that is the same at both masters names %d", n)
			}
			s.Nodes[0].Do(t, "acl", "setuser", "app", "on", ">secret", "~*", "+@all", "-config", "-info", "-module")
			for what, level := range map[string]shard.Level{"CONFIG GET": shard.Warn, "INFO": shard.Warn, "bloom module": shard.OK} {
				s.Nodes[1].Do(t, "acl", "setuser", "app", "on", ">secret", "~*", "+@all", "-config", "-info", "-module")
				if f := diagnose(t, s, "app:secret@")[what]; f.Level != level {
					t.Errorf("without rights: %s: %+v", what, f)
				}
			}
		})
		t.Run("badly", func(t *testing.T) {
			s := shardtest.Start(t, shardtest.Config{Kind: kind, NoBloom: true, Directives: []string{"maxmemory-policy allkeys-lru", "maxmemory 1500kb",
				"list-compress-depth 0", "timeout 100", "tcp-keepalive 0", "maxclients 6", "busy-reply-threshold 100"}})
			for i := range 200 {
				s.Nodes[0].Do(t, "set", fmt.Sprint("k", i), strings.Repeat("x", 10000))
			}
			found := diagnose(t, s, "")
			for what, level := range map[string]shard.Level{"maxmemory-policy": shard.Fail, "bloom module": shard.Fail, "evicted keys": shard.Fail, "memory": shard.Fail,
				"persistence": shard.Warn, "list-compress-depth": shard.Warn, "timeout": shard.Warn, "tcp-keepalive": shard.Warn, "busy-reply-threshold": shard.Warn} {
				if f := found[what]; f.Level != level {
					t.Errorf("%s: %+v, want %s", what, f, level)
				}
			}
		})
		t.Run("half", func(t *testing.T) { // a cluster, one master of which is gone
			s := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: 2, AOF: "no", NodeTimeout: time.Second,
				Directives: []string{"cluster-require-full-coverage yes", `save "3600 1"`}})
			s.Nodes[1].Kill(t)
			for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
				found := diagnose(t, s, "")
				bad := []string{}
				for what, level := range map[string]shard.Level{"cluster": shard.Fail, "answer": shard.Fail, "cluster-require-full-coverage": shard.Warn, "memory": shard.Warn,
					"cluster-node-timeout": shard.Warn, "replicas": shard.Warn, "appendfsync": shard.Warn, "save": shard.Warn} {
					if f := found[what]; f.Level != level {
						bad = append(bad, fmt.Sprintf("%s: %+v, want %s", what, f, level))
					}
				}
				if len(bad) == 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatal(strings.Join(bad, "\n"))
				}
			}
		})
	})
}
