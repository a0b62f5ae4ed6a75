package redis

import (
	"errors"
	"strings"
	"testing"

	"seine/frontier"
	"seine/shard"
	"seine/shard/shardtest"
)

// TestCreateThatDoesNotFit writes nothing; what fits is created, and what broke off
// is listed, finished within what it has reserved already, and deleted.
func TestCreateThatDoesNotFit(t *testing.T) {
	t.Parallel()
	s := shardtest.Start(t, shardtest.Config{Directives: []string{"maxmemory 64mb"}})
	c, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	layout := frontier.Layout{Shards: 4, PlanURLs: 40_000_000, ErrorRate: 1e-6}
	_, err = Create(t.Context(), c, "a", layout, frontier.DefaultSettings())
	if !errors.Is(err, shard.ErrUnfit) || !strings.Contains(err.Error(), "maxmemory 64 MB") {
		t.Errorf("%v, want that it does not fit", err)
	}
	if n := c.Redis().DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys were written", n)
	}

	layout.PlanURLs = 10_000_000 // 40 MB
	f, err := Create(t.Context(), c, "a", layout, frontier.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	// As if it had died after the third shard.
	c.Redis().HSet(t.Context(), shard.RootKey("a"), "state", stateCreating)
	c.Redis().Del(t.Context(), f.keys[3].Meta(), f.keys[3].Filter(0))
	if list, err := List(t.Context(), c); err != nil || len(list) != 1 || list[0].State != stateCreating {
		t.Errorf("listed: %+v, %v", list, err)
	}
	if _, err := Create(t.Context(), c, "a", layout, frontier.DefaultSettings()); err != nil {
		t.Error("finishing it: ", err)
	}
	c.Redis().HSet(t.Context(), shard.RootKey("a"), "state", stateCreating)
	if _, err := Delete(t.Context(), c, "a"); err != nil {
		t.Error(err)
	}
	if n := c.Redis().DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// TestCreateThatDoesNotFitMachine: without maxmemory the plan is held against the memory
// of the machine, which masters there share.
func TestCreateThatDoesNotFitMachine(t *testing.T) {
	t.Parallel()
	for name, masters := range map[string]int{"one": 0, "cluster": 3} {
		t.Run(name, func(t *testing.T) {
			s := shardtest.Start(t, shardtest.Config{Masters: masters})
			c, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			total := shard.Int(shard.InfoFields(c.Redis().Info(t.Context(), "memory").Val())["total_system_memory"])
			layout := frontier.Layout{Shards: 3, PlanURLs: total / 3, ErrorRate: 1e-6} // half of it on each of three masters
			_, err = Create(t.Context(), c, "a", layout, frontier.DefaultSettings())
			if !errors.Is(err, shard.ErrUnfit) || !strings.Contains(err.Error(), "no maxmemory is set") {
				t.Errorf("%v, want that it does not fit", err)
			}
			if there := c.Redis().Exists(t.Context(), shard.CrawlsKey()).Val(); there != 0 {
				t.Error("it is on the list of crawls")
			}
		})
	}
}

// TestCreateThatBreaksOff: it is listed and can be deleted.
func TestCreateThatBreaksOff(t *testing.T) {
	t.Parallel()
	c := connect(t)
	ctx := t.Context()
	c.Redis().Set(ctx, shard.KeysOf("a", shard.NewMap(3).Tag(1)).Filter(0), "somebody's", 0)
	if _, err := Create(ctx, c, "a", small(3), frontier.DefaultSettings()); err == nil {
		t.Fatal("created over a key of another type")
	}
	if list, err := List(ctx, c); err != nil || len(list) != 1 || list[0].Crawl != "a" || list[0].State != stateCreating {
		t.Errorf("listed: %+v, %v", list, err)
	}
	if _, err := Delete(ctx, c, "a"); err != nil {
		t.Error(err)
	}
	if list, err := List(ctx, c); err != nil || len(list) != 0 {
		t.Errorf("listed: %+v, %v", list, err)
	}
}
