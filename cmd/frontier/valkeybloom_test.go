package main

import (
	"os"
	"testing"

	"seine/shard/shardtest"
)

// Valkey with its own bloom module holds a crawl; it has no dumps, and the verbs say
// what it lacks and leave nothing behind.
func TestValkeyBloom(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.Start(t, shardtest.Config{ValkeyBloom: true, AOF: "everysec"}))
	d.ok("create --shards 2 --plan-urls 1000")
	d.ok("seed --seed http://a.example/ --seed http://b.example/", "admitted 2")
	d.ok("seed --seed http://a.example/", "seen 1")
	d.ok("bloom info --probe 100")
	d.ok("check --urls")
	dir := t.TempDir()
	d.refused(1, "bloom dump "+dir, "neither BF.SCANDUMP nor BF.LOADCHUNK")
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("a dump that failed left %v, %v", files, err)
	}
	d.ok("delete seine --yes")
}
