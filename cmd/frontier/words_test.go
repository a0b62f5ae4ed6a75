package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/ask"
	"seine/shard"
	"seine/shard/shardtest"
)

// What a person gets wrong about TLS and passwords is an error with the flags that help.
func TestLoginInWords(t *testing.T) {
	t.Parallel()
	s := shardtest.One(t)
	d := newOperator(t, s)
	for _, c := range []struct{ args, want string }{
		{"stats --redis-tls --redis " + s.Addrs[0], "leave --redis-tls and rediss:// out"},
		{"stats --redis redis://me:secret@" + s.Addrs[0], "give Redis's password in SEINE_REDIS_PASSWORD or --redis-password-file"},
	} {
		if code, _, errs := d.run(strings.Fields(c.args)...); code == 0 || !strings.Contains(errs, c.want) || strings.Contains(errs, "secret") {
			t.Errorf("%s: code %d, %s; want %q", c.args, code, errs, c.want)
		}
	}
	if _, _, errs := d.run("list", "--redis", "redis://me:secret@"+s.Addrs[0]); !strings.Contains(errs, "a password on the command line") || !strings.Contains(errs, "flag=--redis") || strings.Contains(errs, "secret") {
		t.Error(errs)
	}
	if _, _, errs := d.run("list", "--redis", "redis://"+s.Addrs[0]); strings.Contains(errs, "a password on") {
		t.Error(errs)
	}
	d.ok("version", "frontier ")
	var v struct{ Program, Version string }
	if d.json(&v, "version"); v.Program != "frontier" || v.Version == "" {
		t.Errorf("%+v", v)
	}
}

// A right that is missing in six shards is one message.
func TestOneMessageForSixShards(t *testing.T) {
	t.Parallel()
	s := shardtest.One(t)
	d := newOperator(t, s)
	d.ok("create --shards 6 --plan-urls 10k")
	s.Nodes[0].Do(t, "ACL", "SETUSER", "short", "on", ">pw", "~*", "+@all", "-zadd")
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("pw"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := d.run("seed", "--seed", "http://a.example/", "--redis-user", "short", "--redis-password-file", password)
	for strings.Contains(strings.SplitN(errs, "\n", 2)[0], "level=WARN") {
		_, errs, _ = strings.Cut(errs, "\n")
	}
	if code != 3 || strings.Count(errs, "ZADD") != 1 || !strings.Contains(errs, "shards 0, 1, 2, 3, 4 and 5: open: ") {
		t.Errorf("code %d: %s", code, errs)
	}
}

// A shard of a full master is full, that of a read-only one takes no writes, and neither
// is called ready; report without rights has no zeros.
func TestShardsOfFullAndReadOnlyMasters(t *testing.T) {
	t.Parallel()
	s := shardtest.Masters(t, 3)
	d := newOperator(t, s)
	d.ok("create --shards 3 --plan-urls 10k")
	master := func(k int) *shardtest.Node { return s.MasterOf(t, shard.Slot(shard.NewMap(3).Tag(k))) }
	master(1).Do(t, "CONFIG", "SET", "maxmemory", "1mb")
	master(2).Do(t, "CONFIG", "SET", "min-replicas-to-write", "1")
	out := strings.Split(strings.TrimSpace(d.ok("shards")), "\n")
	for k, want := range []string{"ready", "full", "takes no writes: NOREPLICAS"} {
		line := out[1+k]
		if !strings.HasPrefix(line, fmt.Sprint(k)) || !strings.Contains(line, want) || k > 0 && strings.Contains(line, "ready") {
			t.Errorf("shard %d: %s; want %q", k, line, want)
		}
	}
	d.ok("stats", "not ready: shard 1 is full; shard 2 takes no writes")
}

func TestReportWithoutRights(t *testing.T) {
	t.Parallel()
	s := shardtest.One(t)
	d := newOperator(t, s)
	d.ok("create --shards 2 --plan-urls 10k")
	d.ok("seed --seed http://a.example/", "admitted 1")
	s.Nodes[0].Do(t, "ACL", "SETUSER", "nobody", "on", ">pw", "~seine:root", "~seine:crawls", "+@all")
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("pw"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := d.run("report", "--redis-user", "nobody", "--redis-password-file", password)
	if code != 3 || strings.Contains(out, "0 known") || !strings.Contains(out+errs, "not allowed") {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

// sites has when a site is due; plan --from counts sites that are finished.
func TestSitesAreDueAndCounted(t *testing.T) {
	t.Parallel()
	d := newOperator(t, shardtest.One(t))
	d.ok("create --shards 1 --plan-urls 10k --delay 30m")
	d.ok("seed --seed http://a.example/ --seed http://b.example/ --seed http://b.example/2 --seed http://c.example/", "admitted 4")
	f := d.open("seine")
	d.ok("sites --site c.example", "SITE SHARD STATE DUE QUEUED", "c.example 0 ready now 1")
	reply, err := f.Tick(t.Context(), 0, frontier.TickRequest{Want: 3})
	if err != nil || len(reply.Due) != 3 {
		t.Fatal(reply, err)
	}
	visits, err := f.Visit(t.Context(), 0, slices.DeleteFunc(reply.Due, func(due frontier.Ticket) bool { return due.Site == "c.example" }), frontier.VisitLimits{URLs: 1})
	if err != nil || len(visits) != 2 {
		t.Fatal(visits, err)
	}
	for _, visit := range visits {
		facts := &frontier.Facts{Status: 200}
		if _, err := f.Settle(t.Context(), 0, []frontier.Settlement{{Lease: visit.Lease, Release: &frontier.Release{Remain: 30 * time.Minute},
			Outcomes: []frontier.Outcome{{Index: visit.Items[0].Index, Kind: frontier.Done, Facts: facts}}}}); err != nil {
			t.Fatal(err)
		}
	}
	d.ok("sites --site a.example", "a.example 0 idle - 0")
	var list ask.SiteList
	if d.json(&list, "sites --site b.example"); list.Sites[0].Due == nil || time.Duration(*list.Sites[0].Due) < 29*time.Minute {
		t.Errorf("%+v", list.Sites)
	}
	d.ok("plan --from seine", "4 pages on 3 sites")
	d.ok("bloom info --shard 0", "0 0 4")
	d.refused(2, "bloom info --shard 1", "shards 0 to 0")
}
