package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"seine/frontier/plan"
	"seine/shard/shardtest"
)

// Plans need no Redis: they come from the units that the program brings along or
// from a file, and say which are missing.
func TestPlan(t *testing.T) {
	t.Parallel()
	d := &operator{t: t}
	d.ok("plan --pages 1e6 --sites 1e4 --days 2", "unit costs of", "fetchers", "masters", "frontier create", "100% after")
	d.ok("plan --pages 1e6 --sites 10 --days 1", "NOT POSSIBLE", "--days")
	d.ok("plan --pages 1e5 --sites 1000 --embedded", "fetcher --embedded")
	d.refused(2, "plan", "--pages")
	d.ok("plan --pages 1e6 --sites 1e4 --duplicates mark", "contents 1", "--duplicates mark")
	d.refused(2, "plan --pages 1e6 --sites 1e4 --duplicates skip", "sha256")
	d.refused(2, "plan --pages 1e6 --sites 1e4 --duplicates mark --digest none", "digest none")
	d.refused(2, "plan --pages 5 --sites 10", "at least one")
	var p plan.Plan
	if d.json(&p, "plan --pages 1e6 --sites 1e4"); p.Asked.Pages != 1e6 || p.Seconds < 100 || p.Redis == nil {
		t.Errorf("%+v", p)
	}
	// Flags have the defaults that the package documents.
	want := plan.Default()
	want.Pages, want.Sites, want.Known, want.Queued = 1e6, 1e4, p.Asked.Known, p.Asked.Queued
	want.Memory, want.MasterMemory = 8<<30, 16<<30
	if !reflect.DeepEqual(p.Asked, want) {
		t.Errorf("%+v, not %+v", p.Asked, want)
	}

	file := filepath.Join(t.TempDir(), "bench.txt")
	if err := os.WriteFile(file, []byte("cpu: mine\npkg: seine/fetch\nBenchmarkInFlight-2 1 40000 B/request\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.refused(2, "plan --pages 1e6 --sites 1e4 --bench "+file, "are missing: fetch BenchmarkFetch/kept/1KB cpu-ns/page")
	sizes := filepath.Join(t.TempDir(), "sizes")
	if err := os.WriteFile(sizes, []byte("10\n2000\n\n10\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.ok("plan --site-sizes "+sizes, "2020 pages on 3 sites, the largest 2000", "largest sites")
	if err := os.WriteFile(sizes, []byte("10\nmany\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.refused(2, "plan --site-sizes "+sizes, "line 2")
}

// A plan may be that of what a running crawl has still to do.
func TestPlanFrom(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.One(t))
	d.ok("create --crawl c --shards 1 --plan-urls 10k", "created")
	d.ok("seed --crawl c --seed http://a.example/ --seed http://b.example/ --seed http://b.example/x", "admitted 3")
	d.ok("plan --from c", "3 pages on 2 sites")
	d.refused(3, "plan --from nothing", "no such crawl")
}
