package shard_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"seine/shard"
	"seine/shard/shardtest"
)

// Calls follow the master that sentinels name: after it died, after it froze while a
// sentinel is frozen too, and with one sentinel left.
func TestSentinel(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		s := shardtest.Start(t, shardtest.Config{Kind: kind, Replicas: 1, Sentinels: 3, NodeTimeout: time.Second, AOF: "everysec"})
		c, err := shard.Open(t.Context(), shard.Config{Addrs: []string{s.SentinelURL()}, TryTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if c.Cluster() {
			t.Error("it is called a cluster")
		}
		set := func(value string) {
			t.Helper()
			if _, err := c.Do(t.Context(), 0, "k", "SET", "k", value); err != nil {
				t.Fatal(err)
			}
		}
		owner := func() string {
			at, err := c.Owner(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
		set("1")
		replicas := func() string {
			for _, f := range c.Diagnose(t.Context()) {
				if f.What == "replicas" {
					return string(f.Level) + " " + f.Found
				}
			}
			return ""
		}
		if got := replicas(); got != "ok 1" {
			t.Errorf("replicas: %q", got)
		}
		first := s.Master(t, nil)
		if owner() != first.Addr {
			t.Errorf("calls go to %s, the master is %s", owner(), first.Addr)
		}
		epoch := c.Epoch(0)
		first.Kill(t)
		set("2") // waits for the other
		second := s.Master(t, first)
		if owner() != second.Addr || c.Epoch(0) == epoch {
			t.Errorf("calls go to %s, the master is %s; epoch %d, before %d", owner(), second.Addr, c.Epoch(0), epoch)
		}
		if got := replicas(); got != "warn 0" {
			t.Errorf("replicas, after one took over: %q", got)
		}
		s.Rejoin(t, first)

		// One sentinel silent, later one gone too.
		s.Watch[1].Stop(t)
		t.Cleanup(func() { s.Watch[1].Cont(t) })
		second.Stop(t)
		t.Cleanup(func() { second.Cont(t) })
		set("3")
		if owner() != first.Addr || first.Do(t, "get", "k") != "3" {
			t.Errorf("calls go to %s, the master is %s", owner(), first.Addr)
		}
		s.Watch[2].Kill(t)
		set("4")
	})
}

func TestSentinelAddress(t *testing.T) {
	s := shardtest.Start(t, shardtest.Config{Sentinels: 1})
	for addr, want := range map[string]string{
		"redis+sentinel://127.0.0.1:1":                          "the name of the master",
		"redis+sentinel://u:pw@127.0.0.1:1":                     "beside the URL",
		"sentinel://seine@127.0.0.1:1":                          "starts with",
		"redis+sentinel://seine@127.0.0.1:1":                    "cannot reach Redis",
		strings.Replace(s.SentinelURL(), "seine@", "other@", 1): `none of the name "other"`,
	} {
		_, err := shard.Open(t.Context(), shard.Config{Addrs: []string{addr}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if _, err := shard.Open(t.Context(), shard.Config{Addrs: []string{"redis+sentinel://other@" + s.Watch[0].Addr}, Patient: true}); !errors.Is(err, shard.ErrUnreachable) {
		t.Errorf("a name that sentinels do not know is waited for: %v", err) // until the test ends
	}
	c := shard.Config{Addrs: []string{"rediss+sentinel://seine@a,b:1/2"}, Username: "u", Password: "pw"}
	if got := c.String(); got != "rediss+sentinel://seine@a:26379,b:1/2" {
		t.Error(got)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
