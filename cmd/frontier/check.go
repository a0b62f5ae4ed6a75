package main

import (
	"context"
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier"
)

type checkCmd struct {
	URLs bool `name:"urls" help:"Also look for every URL in its filter."`
}

// Run checks every shard and fails when one has faults.
func (c *checkCmd) Run(env *boot.Env, g *cli) error {
	return g.open(env, func(ctx context.Context, f *frontier.Frontier) error {
		var list []*frontier.Check
		var faults int64
		for k := range f.Shards() {
			r, err := f.Check(ctx, k, c.URLs)
			if err != nil {
				return err
			}
			list = append(list, r)
			faults += r.Faulted
		}
		if err := g.answer(env, list, func(w io.Writer) { showChecks(w, list) }); err != nil {
			return err
		}
		if faults > 0 {
			return fmt.Errorf("check: %d faults in %s", faults, g.Crawl)
		}
		return nil
	})
}

func showChecks(w io.Writer, list []*frontier.Check) {
	row(w, "SHARD", "SITES", "LEASES", "QUEUED", "WAITING", "OPEN", "DEAD", "URLS LOOKED FOR", "FAULTS", "")
	for _, r := range list {
		note := ""
		if r.Moving {
			note = "changed meanwhile, counters not compared"
		}
		row(w, r.Shard, r.Sites, r.Leases, r.Gauges["queued"], r.Gauges["waiting"], r.Gauges["open"], r.Gauges["dead"], r.Probed, r.Faulted, note)
	}
	for _, r := range list {
		for _, fault := range r.Faults {
			fmt.Fprintf(w, "shard %d: %s\n", r.Shard, fault)
		}
	}
}
