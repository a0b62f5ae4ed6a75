package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/ask"
	"seine/shard"
	"seine/shard/shardtest"
)

// Beside a master that does not answer the verbs show and change what can be, and
// say what is missing; that shard follows when it answers.
func TestVerbsBesideASilentMaster(t *testing.T) {
	t.Parallel()
	s := shardtest.Masters(t, 3)
	d := newOperator(t, s)
	ill := s.MasterOf(t, shard.Slot(shard.NewMap(3).Tag(2)))
	name := "sick"
	for s.MasterOf(t, shard.Slot(shard.RootKey(name))) == ill || s.MasterOf(t, shard.Slot(shard.LiveKey(name))) != ill {
		name += "k"
	}
	d.ok("create --shards 3 --plan-urls 10k --crawl " + name)
	f := d.open(name)
	ill.Stop(t)
	t.Cleanup(func() { ill.Cont(t) })
	d.ok("stats --crawl "+name, "SILENT shard 2 does not answer", "the list of programs cannot be read")
	d.ok("set --delay 7s --crawl "+name, "7s")
	d.ok("pause --crawl "+name, "paused the crawl")
	if s.MasterOf(t, shard.Slot(shard.CrawlsKey())) != ill {
		d.ok("list", name)
	}
	d.ok("shards --crawl "+name, "2 "+fmt.Sprint(shard.Slot(shard.NewMap(3).Tag(2)))+" "+ill.Addr+" - - - - - - - silent", "paused")
	away := t.TempDir()
	t.Run("verbs", func(t *testing.T) { // each waits for the master, so all at once
		for verb, want := range map[string]string{
			"dead list": "timeout http://a.example/", "dead count": "timeout 1", "dead retry": "retried 0", "dead drop --yes": "dropped 0",
			"block --list": "shard 0 paused", "bloom info": "0 0 0", "check": "0 0 0 0 0 0 0 0 0 0 0", "export " + away + "/x.zst": "queued 0", "report": "MISSING shard 2: ",
		} {
			t.Run(verb, func(t *testing.T) {
				t.Parallel()
				code, out, errs := d.run(append(strings.Fields(verb), "--crawl", name)...)
				if out = strings.Join(strings.Fields(out), " "); code != 3 || !strings.Contains(out, want) && verb != "dead list" && verb != "dead count" || !strings.Contains(errs, "cannot be read are left out") {
					t.Errorf("code %d, %s\n%s; want %q", code, out, errs, want)
				}
			})
		}
	})
	ill.Cont(t)
	reply, err := f.Tick(t.Context(), 2, frontier.TickRequest{Want: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); reply.Rev != f.Settings().Rev || !reply.Paused; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the shard stays at revision %d, paused %v; the crawl has %d", reply.Rev, reply.Paused, f.Settings().Rev)
		}
		if reply, err = f.Tick(t.Context(), 2, frontier.TickRequest{Want: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if out := d.ok("stats --crawl " + name); strings.Contains(out, "SILENT") {
		t.Errorf("a shard that answers is called silent:\n%s", out)
	}
}

// A shard whose master takes no writes is not ready, and stats reports
// why; the others are printed beside it.
func TestStatsOfRefusingMasters(t *testing.T) {
	t.Parallel()
	s := shardtest.Masters(t, 3)
	d := newOperator(t, s)
	ill := s.MasterOf(t, shard.Slot(shard.NewMap(3).Tag(2)))
	name := "sick"
	for s.MasterOf(t, shard.Slot(shard.RootKey(name))) == ill || s.MasterOf(t, shard.Slot(shard.LiveKey(name))) == ill {
		name += "k"
	}
	d.ok("create --shards 3 --plan-urls 10k --crawl " + name)
	d.ok("stats --crawl "+name, ", ready,")
	config := func(key, value string) {
		t.Helper()
		if err := ill.Client().ConfigSet(t.Context(), key, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	config("min-replicas-to-write", "1")
	var out string
	for end := time.Now().Add(time.Minute); !strings.Contains(out, "NOREPLICAS") && time.Now().Before(end); {
		out = d.ok("stats --crawl " + name) // a busy machine may let a call run out of time first
	}
	if out = strings.Join(strings.Fields(out), " "); !strings.Contains(out, "not ready: shard 2 takes no writes: NOREPLICAS") || !strings.Contains(out, "REFUSED shard 2 by") {
		t.Error(out)
	}
	var p ask.Progress
	if d.json(&p, "stats --crawl "+name); len(p.Troubles) != 1 || p.Shards[2].Fault == "" || p.Shards[1].Fault != "" || p.ETA.Known {
		t.Errorf("%+v", p)
	}
	config("min-replicas-to-write", "0")
	d.ok("stats --crawl "+name, ", ready,")
}
