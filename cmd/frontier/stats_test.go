package main

import (
	"path/filepath"
	"testing"

	"seine/frontier"
)

// TestStatsOfFleet: stats counts fetchers by what limits them and programs by version,
// most first.
func TestStatsOfFleet(t *testing.T) {
	d := &desk{t: t, addr: "127.0.0.1:1"}
	dir := filepath.Join(t.TempDir(), "state")
	d.ok("seed --state " + dir + " --seed http://a.example/")
	f := open(t, dir)
	defer f.Close()
	if err := f.Serve(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct{ kind, version, limit string }{
		{frontier.KindFetcher, "v2", "cpu"}, {frontier.KindFetcher, "v1", "politeness"}, {frontier.KindFetcher, "v2", "politeness"}, {frontier.KindSeeder, "v2", ""},
	} {
		m := frontier.NewMember(p.kind, p.version)
		m.Limit = p.limit
		if _, err := f.Announce(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	d.ok("stats --state "+dir, "limited by 2 politeness, 1 cpu versions 3 v2, 1 v1 done in")
}
