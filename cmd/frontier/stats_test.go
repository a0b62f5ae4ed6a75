package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/frontier"
)

// TestStatsOfFleet: stats counts fetchers by what limits them and programs by version,
// most first.
func TestStatsOfFleet(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, addr: "127.0.0.1:1"}
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

// TestUpOfAVanishedFetcherEnds: it was up until it was last seen.
func TestUpOfAVanishedFetcherEnds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := frontier.Member{Kind: frontier.KindFetcher, Version: "v1", Started: now.Add(-time.Hour), Seen: now.Add(-10 * time.Minute)}
	var out strings.Builder
	printMembers(&out, nil, []frontier.Member{m})
	if text := out.String(); !strings.Contains(text, "VANISHED") || !strings.Contains(text, "50m0s\t10m0s ago") {
		t.Error(text)
	}
	out.Reset()
	printMembers(&out, []frontier.Member{m}, nil)
	if text := out.String(); !strings.Contains(text, "1h0m0s\t10m0s ago") {
		t.Error(text)
	}
}
