package main

import (
	"fmt"
	"strings"
	"testing"

	"seine/shard/shardtest"
)

// TestOneMasterWantsAPassword: a cluster of which one master asks for a password is reported
// with that master's address and how to give one, and nothing is printed as if it were
// all.
func TestOneMasterWantsAPassword(t *testing.T) {
	t.Parallel()
	s := shardtest.Start(t, shardtest.Config{Masters: 6})
	d := newOperator(t, s)
	d.ok("create --shards 6 --plan-urls 1k")
	n := s.Nodes[3]
	c := n.Client()
	if err := c.ConfigSet(t.Context(), "requirepass", "geheim").Err(); err != nil {
		t.Fatal(err)
	}
	d.in = ""
	for i := range 60 {
		d.in += fmt.Sprintf("http://s%d.example/\n", i)
	}
	want := []string{"not logged in to " + n.Addr + ", which asks for a password", "SEINE_REDIS_PASSWORD", "--redis-password-file"}
	for _, command := range []string{"stats", "stats --json", "seed --file -", "check"} {
		code, _, errs := d.run(strings.Fields(command)...)
		for _, text := range want {
			if code != 1 || !strings.Contains(errs, text) {
				t.Errorf("%s: code %d, no %q in %s", command, code, text, errs)
			}
		}
	}
	if code, out, errs := d.run("report"); code != 3 || !strings.Contains(strings.Join(strings.Fields(out), " "), "shard 3: stats: shard: "+want[0]) {
		t.Errorf("report: code %d, %s%s", code, out, errs)
	}
}
