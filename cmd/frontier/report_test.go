package main

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/ask"
	"seine/shard/shardtest"
)

// TestReportAndSites: both verbs say what was settled, on Redis and in a directory
// that another process has open.
func TestReportAndSites(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		d := newOperator(t, shardtest.One(t))
		d.ok("create --shards 2 --plan-urls 10k")
		testReport(t, d, d.open("seine"), "")
	})
	t.Run("state", func(t *testing.T) {
		d, f, dir := newOperatorByState(t)
		before := testReport(t, d, f, " --state "+dir)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		after := &ask.Summary{}
		if d.json(after, "report --state "+dir); !reflect.DeepEqual(after, before) {
			t.Errorf("opened again:\n%+v\n%+v", after, before)
		}
	})
}

func testReport(t *testing.T, d *operator, f whyBackend, at string) *ask.Summary {
	d.ok("report"+at, "finished: nothing is left")
	d.ok("seed --seed http://a.example/"+at, "admitted 1")
	page := func(status int, media, seed string) *frontier.Facts {
		return &frontier.Facts{Status: status, Media: media, Bytes: 100, Links: 5, Known: 2, Refused: [frontier.Reasons]uint32{1: 1}, Seed: seed}
	}
	settle := func(site string, outcomes ...frontier.Outcome) {
		t.Helper()
		v := lease(t, f, site, len(outcomes))
		free := &frontier.Release{Delay: 3 * time.Second, Remain: time.Hour, Why: "adaptive", Failures: 1}
		settled, err := f.Settle(t.Context(), frontier.ShardOf(f, site), []frontier.Settlement{{Lease: v.Lease, Outcomes: outcomes, Release: free}})
		if err != nil || slices.Contains(settled[0].Outcomes, false) {
			t.Fatal(settled, err)
		}
	}
	settle("a.example", frontier.Outcome{Index: 1, Facts: page(200, "html", "http://a.example/")})
	d.ok("seed --seed http://b.example/ --seed http://b.example/2"+at, "admitted 2")
	settle("b.example", frontier.Outcome{Index: 1, Kind: frontier.Dead, Cause: "status", Text: "Not Found", Facts: page(503, "", "http://b.example/")},
		frontier.Outcome{Index: 2, Kind: frontier.Retry, Cause: "timeout", NotBefore: time.Hour, Facts: &frontier.Facts{Seed: "http://b.example/2"}})

	r := &ask.Summary{}
	d.json(r, "report"+at)
	want := &ask.Summary{
		Crawl: r.Crawl, Ended: "nobody works on it, 1 URL is left", Fetchers: map[string]int{}, Began: r.Began, Shards: r.Shards, Total: r.Total, Bytes: 200,
		Codes:   []ask.Count{{Name: "200", URLs: 1, Bytes: 100}, {Name: "503", URLs: 1, Bytes: 100}},
		Media:   []ask.Count{{Name: "html", URLs: 1, Bytes: 100}},
		Causes:  []ask.Count{{Name: "status", URLs: 1}},
		Retries: []ask.Count{{Name: "timeout", URLs: 1}},
		Sites:   []ask.Count{{Name: "2xx", URLs: 1}, {Name: "timeout", URLs: 1}},
		Links:   ask.Links{Found: 10, Duplicates: 4, Refused: []ask.Count{{Name: "scope", URLs: 2}}},
		Seeds: ask.Seeds{Total: 2, Whole: true, Outcomes: []ask.Count{{Name: "200", URLs: 1}, {Name: "status", URLs: 1}},
			List: []ask.Seed{{URL: "http://b.example/", Outcome: "status"}, {URL: "http://b.example/2", Outcome: "waiting: timeout"}, {URL: "http://a.example/", Outcome: "200"}}, Left: 1},
		Largest: []ask.Top{{Site: "a.example", Count: 1}},
		Deadest: []ask.Top{{Site: "b.example", Count: 1}},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("report:\n%+v, want\n%+v", r, want)
	}
	if age := time.Since(r.Began); age < 0 || age > time.Hour {
		t.Errorf("it began %v", r.Began)
	}
	if r.Total.Done != 1 || r.Total.Dead != 1 {
		t.Errorf("%+v", r.Total)
	}
	d.ok("report"+at, "2 settled, 1 not yet; all of them listed", "waiting: timeout http://b.example/2", "200 http://a.example/", "2 scope", "largest sites 1 a.example")

	out := strings.Join(strings.Fields(d.ok("sites --by dead"+at, "a.example")), " ")
	if !regexp.MustCompile(`ready (1h0m0s|59m\d+s) 0 1 0 1 0\.00 3s adaptive 1 - timeout`).MatchString(out) { // some seconds may have passed
		t.Error(out)
	}
	var list ask.SiteList
	if d.json(&list, "sites"+at); !list.Exact || len(list.Sites) != 2 || list.Sites[0].Site != "b.example" || list.Sites[0].Waiting != 1 || list.Sites[0].Left != ask.Span(3*time.Second) {
		t.Errorf("%+v", list)
	}
	d.ok("sites --site www.a.example"+at, "a.example", "idle - 0 0 1 0")
	d.refused(2, "sites --by size"+at, "--by")
	return r
}
