package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"seine/shard/shardtest"
)

// TestForget: credentials of seeds are exported when asked for, come back from the
// file, and are removed by one verb; of a crawl in Redis and of one in a directory.
func TestForget(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.One(t))
	dir := t.TempDir()
	file, n := "", 0
	export := func(where string) {
		n++
		file = filepath.Join(dir, fmt.Sprint(n, ".zst"))
		d.ok("export " + where + file)
	}
	d.ok("create --plan-urls 10k --shards 2")
	for _, where := range []string{"", "--state " + filepath.Join(dir, "state") + " "} {
		d.ok("seed "+where+"--seed https://me:sesame@a.example/1 --seed https://a.example/2 --seed http://a.example/3", "admitted 3")
		urls := func() (all []string) {
			for _, e := range readExport(t, file) {
				all = append(all, e.URL)
			}
			slices.Sort(all)
			return all
		}
		export(where)
		if got := urls(); !slices.Equal(got, []string{"http://a.example/3", "https://a.example/1", "https://a.example/2"}) {
			t.Errorf("%q: %q", where, got)
		}
		with := []string{"http://a.example/3", "https://me:sesame@a.example/1", "https://me:sesame@a.example/2"}
		export(where + "--credentials ")
		if got := urls(); !slices.Equal(got, with) {
			t.Errorf("%q with credentials: %q", where, got)
		}
		d.ok("forget "+where+"www.a.example", "removed the credentials of 1 origin of a.example")
		d.ok("forget "+where+"a.example --json", `"origins": 0`)
		for _, verb := range []string{"why " + where + "https://a.example/1", "sites " + where, "report " + where} {
			if out := d.ok(verb); strings.Contains(out, "sesame") {
				t.Error(verb, out)
			}
		}
		d.ok("seed " + where + "--file " + file)
		export(where + "--credentials ")
		if got := urls(); !slices.Equal(got, with) {
			t.Errorf("%q, read again: %q", where, got)
		}
	}
}
