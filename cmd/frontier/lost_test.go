package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

// siteIn is a site of shard k.
func siteIn(f *redis.Frontier, k int) string {
	for i := 0; ; i++ {
		if site := fmt.Sprintf("s%d.example", i); frontier.ShardOf(f, site) == k {
			return site
		}
	}
}

// loseShard is a crawl of three shards on as many masters, of which that of shard k has,
// or has not, the root and what is beside it.
func loseShard(t *testing.T, root bool) (d *operator, f *redis.Frontier, ill *shardtest.Node, name string) {
	s := shardtest.Masters(t, 3)
	d = newOperator(t, s)
	ill = s.MasterOf(t, shard.Slot(shard.NewMap(3).Tag(2)))
	name = "lost"
	for (s.MasterOf(t, shard.Slot(shard.RootKey(name))) == ill) != root || s.MasterOf(t, shard.Slot(shard.LiveKey(name))) == ill {
		name += "t"
	}
	d.ok("create --shards 3 --plan-urls 10k --delay 3s --crawl " + name)
	return d, d.open(name), ill, name
}

// A master that comes back without its data: its shard is named with the way back, the
// others go on, and a dump with an export made before brings it back. Who waits for the
// shard goes on then.
func TestShardThatLostItsKeys(t *testing.T) {
	t.Parallel()
	d, f, ill, name := loseShard(t, false)
	here, there := siteIn(f, 2), siteIn(f, 0)
	d.ok(fmt.Sprintf("seed --seed http://%s/a --seed http://%s/b --seed http://%s/ --crawl %s", here, here, there, name), "admitted 3")
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "left.zst")
	d.ok("bloom dump "+dir+" --crawl "+name, "dumped 3 shards")
	d.ok("export "+file+" --crawl "+name, "queued 3")

	ill.Do(t, "FLUSHALL")
	way := fmt.Sprintf("%s lost the keys of shard 2, other shards have theirs; the way back: `frontier bloom load DIR --shard 2` if there is a dump, `frontier check --repair`", ill.Addr)
	d.ok("stats --crawl "+name, "NOT COUNTED shard 2: "+way, "queued 1", "not ready: ")
	d.ok("shards --crawl "+name, way)
	for verb, want := range map[string]string{"why http://" + here + "/a": way, "seed --seed http://" + there + "/more": "", "export " + filepath.Join(dir, "x.zst"): way, "check": way} {
		code, out, errs := d.run(append(strings.Fields(verb), "--crawl", name)...)
		if want == "" {
			if code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), "admitted 1") {
				t.Errorf("%s: code %d, %s%s", verb, code, out, errs)
			}
		} else if code == 0 || !strings.Contains(out+errs, want) {
			t.Errorf("%s: code %d, %s%s, want %q", verb, code, out, errs, want)
		}
	}
	if reply, err := f.Tick(t.Context(), 0, frontier.TickRequest{Want: 1}); err != nil || len(reply.Due) != 1 {
		t.Errorf("another shard: %+v, %v", reply, err)
	}
	if stats, err := f.RecentStats(t.Context()); err != nil || !stats[2].Silent || stats[0].Silent {
		t.Errorf("%+v, %v", stats, err)
	}

	waits := make(chan error, 2)
	go func() {
		_, err := f.Tick(t.Context(), 2, frontier.TickRequest{Want: 1})
		waits <- err
	}()
	go func() {
		url := "http://" + here + "/a"
		verdicts := make([]frontier.Verdict, 1)
		err := f.Admit(t.Context(), 2, []frontier.Candidate{{URL: url, Site: here, Fingerprint: canon.FingerprintOf([]byte(here), []byte(url))}}, verdicts)
		if err == nil && verdicts[0] != frontier.Seen {
			err = fmt.Errorf("verdict %v of a URL that the dump has", verdicts[0])
		}
		waits <- err
	}()
	select {
	case err := <-waits:
		t.Errorf("a call to a lost shard ended: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	d.ok("bloom load "+dir+" --shard 2 --crawl "+name, "loaded 1 shard")
	d.ok("check --repair --crawl "+name, "epoch, revision and pause set")
	for range 2 {
		if err := <-waits; err != nil {
			t.Error(err)
		}
	}
	d.ok("seed --refetch --file "+file+" --crawl "+name, "admitted 3")
	d.ok("check --urls --crawl " + name)
	d.ok("stats --crawl "+name, ", ready,", "queued 5")
	d.ok("delete --yes " + name)
	if _, err := f.Tick(t.Context(), 2, frontier.TickRequest{Want: 1}); !errors.Is(err, frontier.ErrStale) {
		t.Errorf("after delete: %v", err)
	}
}

// Without a dump a repair makes empty filters, and an export or the seeds fill them.
func TestLostShardWithoutADump(t *testing.T) {
	t.Parallel()
	d, f, ill, name := loseShard(t, false)
	here := siteIn(f, 2)
	d.ok(fmt.Sprintf("seed --seed http://%s/a --crawl %s", here, name), "admitted 1")
	ill.Do(t, "FLUSHALL")
	d.ok("check --repair --crawl "+name, "starts again with empty filters")
	d.ok("stats --crawl "+name, ", ready,", "queued 0")
	d.ok(fmt.Sprintf("seed --seed http://%s/a --crawl %s", here, name), "admitted 1")
	d.ok("check --urls --crawl " + name)
}

// The root went with a master: verbs say so, fetchers wait, and create makes it again with
// the shards that are there.
func TestRootThatIsLost(t *testing.T) {
	t.Parallel()
	d, f, ill, name := loseShard(t, true)
	there := siteIn(f, 0)
	d.ok(fmt.Sprintf("seed --seed http://%s/a --crawl %s", there, name), "admitted 1")
	ill.Do(t, "FLUSHALL")
	if _, err := f.Refresh(t.Context()); !errors.Is(err, frontier.ErrLostShard) || !strings.Contains(err.Error(), "lost the root of "+name) {
		t.Errorf("%v", err)
	}
	d.refused(3, "create --shards 3 --plan-urls 20k --crawl "+name, "layout")
	d.ok("create --shards 3 --plan-urls 10k --delay 3s --crawl "+name, "created "+name)
	d.ok("stats --crawl "+name, ", ready,", "queued 1")
	d.ok("check --urls --crawl " + name)
	if _, err := f.Tick(t.Context(), 2, frontier.TickRequest{Want: 1}); err != nil {
		t.Error(err)
	}
	if _, err := f.Refresh(t.Context()); err != nil {
		t.Error(err)
	}
}
