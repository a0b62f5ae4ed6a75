package shard_test

import (
	"errors"
	"sync"
	"testing"
	"time"

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
			if len(w.Servers) != 2 || w.Do == "" {
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

// A managed server may forbid INFO and CONFIG; the crawl runs all the same, and says
// what it is worse off for.
func TestCheckWithoutRights(t *testing.T) {
	t.Parallel()
	s := shardtest.One(t)
	s.Nodes[0].Do(t, "acl", "setuser", "app", "on", ">secret", "~c:*", "+@all", "-info", "-config")
	c, err := shard.Open(t.Context(), shard.Config{Addrs: []string{"redis://app:secret@" + s.Addrs[0]}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if warnings, err := c.Check(t.Context()); err != nil || len(warnings) != 1 || !contains(warnings[0].String(), "the user app may not run INFO") || c.Cluster() {
		t.Errorf("%v, %v", warnings, err)
	}
}

// TestMissingRights: what a crawl cannot do without is refused at start and named;
// what it can is warned of.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	shardtest.Each(t, func(t *testing.T, kind shardtest.Kind) {
		t.Parallel()
		one := shardtest.Start(t, shardtest.Config{Kind: kind, AOF: "everysec"})
		many := shardtest.Start(t, shardtest.Config{Kind: kind, Masters: 2, AOF: "everysec"})
		for _, x := range []struct {
			lacks, named string
			s            *shardtest.Server
			refused      bool
		}{
			{"-client|setname", "CLIENT SETNAME", one, false},
			{"-client|setname", "CLIENT SETNAME", many, false},
			{"-info", "INFO", many, false},
			{"-memory|usage", "MEMORY USAGE", one, false},
			{"-cluster|slots", "'cluster|slots'", many, true},
			{"-wait", "WAIT", one, true},
		} {
			for _, n := range x.s.Nodes {
				n.Do(t, "acl", "setuser", "app", "reset", "on", ">secret", "~c:*", "+@all", x.lacks)
			}
			c, err := shard.Open(t.Context(), shard.Config{Addrs: []string{"redis://app:secret@" + x.s.Addrs[0]}, Name: "seine-test"})
			var warnings []shard.Warning
			if err == nil {
				warnings, err = c.Check(t.Context())
			}
			if err == nil && x.refused {
				_, err = c.CheckAck(t.Context(), 1)
			}
			if c != nil {
				c.Close()
			}
			switch {
			case x.refused && (!errors.Is(err, shard.ErrForbidden) || errors.Is(err, shard.ErrUnreachable) || !contains(err.Error(), x.named) || !contains(err.Error(), "app")):
				t.Errorf("%s: %v", x.lacks, err)
			case !x.refused && (err != nil || len(warnings) != 1 || !contains(warnings[0].String(), "the user app may not run "+x.named)):
				t.Errorf("%s: %v, %v", x.lacks, warnings, err)
			}
		}
	})
}

// TestCheckWhileLoading: a server that loads its file is not judged by what it says
// meanwhile: calls wait, nobody is warned, and then it is looked at.
func TestCheckWhileLoading(t *testing.T) {
	t.Parallel()
	s := shardtest.Start(t, shardtest.Config{AOF: "always", Directives: []string{"key-load-delay 300", "loading-process-events-interval-bytes 1024"}})
	n := s.Nodes[0]
	n.Do(t, "eval", "for i = 1, 5000 do redis.call('SET', KEYS[1] .. i, i) end return 1", 1, "{k}")
	n.Do(t, "bgrewriteaof")
	for contains(n.Do(t, "info", "persistence").(string), "aof_rewrite_in_progress:1") {
		time.Sleep(5 * time.Millisecond)
	}
	n.Kill(t)
	var restarted sync.WaitGroup
	restarted.Go(func() { n.Restart(t) }) // returns when it has loaded its file
	defer restarted.Wait()
	var mu sync.Mutex
	var reportedMaster []string
	c, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs, Patient: true, Warns: func(w shard.Warning) {
		mu.Lock()
		defer mu.Unlock()
		reportedMaster = append(reportedMaster, w.String())
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	info, _ := c.Redis().Info(t.Context(), "persistence").Result()
	loading := contains(info, "loading:1")
	if !loading {
		t.Log("it has loaded already")
	}
	warnings, err := c.Check(t.Context())
	if err != nil || len(warnings) > 0 {
		t.Errorf("%v, %v", warnings, err)
	}
	if _, err := c.CheckAck(t.Context(), 1); loading && err != nil {
		t.Errorf("its replicas are judged while it loads: %v", err)
	}
	if got, err := c.Do(t.Context(), 0, "{k}1", "GET", "{k}1"); err != nil || shard.Text(got) != "1" {
		t.Errorf("%v, %v", got, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(reportedMaster) > 0 {
		t.Error(reportedMaster)
	}
}
