package main

import (
	"strings"
	"testing"

	"seine/frontier"
	"seine/shard/shardtest"
)

// A rule of --recrawl does not reach pages that were fetched before it: set logs how many
// there are, and seed --refetch queues them. A crawl without any is not warned of.
func TestSetRecrawlSaysWhatItDoesNotReach(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.One(t))
	const warning = "pages that were fetched before a rule matched them are not recrawled by it; queue them with frontier seed --refetch"
	set := func(crawl string) string {
		t.Helper()
		code, out, errs := d.run("set", "--recrawl", "/=24h", "--crawl", crawl)
		if code != 0 || !strings.Contains(out, "recrawl") {
			t.Fatal(code, out, errs)
		}
		return errs
	}
	d.ok("create --shards 1 --plan-urls 10k --crawl fresh")
	d.ok("seed --seed http://a.example/1 --crawl fresh", "admitted 1")
	if errs := set("fresh"); strings.Contains(errs, "frontier seed --refetch") {
		t.Errorf("nothing was fetched: %s", errs)
	}
	d.ok("create --shards 1 --plan-urls 10k --crawl old")
	d.ok("seed --seed http://a.example/1 --seed http://a.example/2 --seed http://a.example/3 --crawl old", "admitted 3")
	f := d.open("old")
	visit := lease(t, f, "a.example", 2)
	if _, err := f.Settle(t.Context(), 0, []frontier.Settlement{{Lease: visit.Lease, Release: &frontier.Release{}, Outcomes: []frontier.Outcome{
		{Index: visit.Items[0].Index, Kind: frontier.Done}, {Index: visit.Items[1].Index, Kind: frontier.Done}}}}); err != nil {
		t.Fatal(err)
	}
	if errs := set("old"); !strings.Contains(errs, warning) || !strings.Contains(errs, "pages=2") {
		t.Errorf("no warning of two pages: %s", errs)
	}
	d.ok("seed --refetch --seed "+visit.Items[0].URL+" --crawl old", "admitted 1")
}
