package main

import (
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/ask"
	"seine/shard/shardtest"
)

// TestWalls: the verbs say which sites are behind walls, since when and until when, and `set`
// ends the back-offs; in Redis, and in a directory that another process has open.
func TestWalls(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		d := newOperator(t, shardtest.One(t))
		d.ok("create --shards 2 --plan-urls 10k --walls on")
		testWalls(t, d, d.open("seine"), "")
	})
	t.Run("state", func(t *testing.T) {
		d, f, dir := newOperatorByState(t)
		testWalls(t, d, f, " --state "+dir)
	})
}

func testWalls(t *testing.T, d *operator, f whyBackend, at string) {
	meet := func(site string, count int) {
		t.Helper()
		v := lease(t, f, site, 1)
		o := frontier.Outcome{Index: 1, Kind: frontier.Retry, Cause: frontier.CauseWall, NotBefore: time.Minute, Facts: &frontier.Facts{Status: 403, Wall: "acme"}}
		st := frontier.Settlement{Lease: v.Lease, Outcomes: []frontier.Outcome{o}, Release: &frontier.Release{}}
		st.Walls = &frontier.Walls{Count: count, Vendor: "acme", Pause: frontier.WallPause(count)}
		if _, err := f.Settle(t.Context(), frontier.ShardOf(f, site), []frontier.Settlement{st}); err != nil {
			t.Fatal(err)
		}
	}
	d.ok("seed --seed http://a.example/1 --seed http://a.example/2"+at, "admitted 2")
	d.ok("sites --by walls"+at, "WALLS")
	meet("a.example", 5)
	d.ok("seed --seed http://b.example/"+at, "admitted 1")
	meet("b.example", 3)
	d.ok("seed --seed http://c.example/"+at, "admitted 1")
	meet("c.example", 1)
	d.ok("stats"+at, "0 blocked; 2 behind walls")
	var list ask.SiteList
	if d.json(&list, "sites --by walls"+at); len(list.Sites) != 2 || !list.Exact || list.Sites[0].Site != "a.example" || list.Sites[0].Walls.Count != 5 || list.Sites[0].Walls.Vendor != "acme" || list.Sites[1].Walls.Left > ask.Span(time.Hour) {
		t.Errorf("%+v", list)
	}
	d.ok("sites --site a.example"+at, " 5 acme 403 ")
	d.ok("sites --site c.example"+at, " 1 acme 403 ")
	var report ask.Summary
	if d.json(&report, "report"+at); len(report.Walls) != 1 || report.Walls[0] != (ask.Count{Name: "acme", URLs: 3}) {
		t.Errorf("%+v", report.Walls)
	}
	d.ok("report"+at, "walls of 3 acme", "3 wall 403")
	a := &ask.Answer{}
	d.json(a, "why http://a.example/2"+at)
	if a.State != ask.StateQueued || !strings.Contains(a.Why, "its site is behind a wall of acme, which answered 5 times in a row since 20") || !strings.Contains(a.Why, "the whole fleet backs off from it for another ") {
		t.Error(a.Why)
	}
	d.ok("why http://a.example/1"+at, "attempt 1 failed", "its site behind a wall of acme, which answered 5 times in a row since 20")
	d.ok("why http://c.example/"+at, "behind a wall of acme, which answered once since 20")

	d.ok("set --delay 2s"+at, "delay")
	d.ok("stats"+at, "2 behind walls")
	d.ok("set --walls off"+at, "walls")
	d.ok("stats"+at, "0 behind walls")
	if d.json(&list, "sites --by walls"+at); len(list.Sites) != 0 {
		t.Errorf("%+v", list)
	}
	d.ok("set --walls on"+at, "walls off on")
	d.refused(2, "set --walls maybe"+at, "walls is")
}
