package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/audit"
	"seine/frontier/redis"
)

type checkCmd struct {
	URLs   bool `name:"urls" help:"Also check that the filter of each queued URL contains it."`
	Repair bool `help:"Repair the faults that can be repaired."`
}

// Run checks every shard, repairs it if asked to, and fails when faults are left.
func (c *checkCmd) Run(env *boot.Env, g *cli) error {
	if g.State != "" {
		return c.state(env, g)
	}
	return g.openRedis(env, func(ctx context.Context, f *redis.Frontier) error {
		look := audit.Check
		if c.Repair {
			look = audit.Repair
		}
		var list []*audit.Report
		var faults int64
		failed := frontier.EachShard(ctx, f, nil, func(k int) error {
			r, err := look(ctx, f, k, c.URLs)
			if r != nil { // a repair that was cut off returns what it repaired
				list = append(list, r)
				faults += r.Faulted
			}
			return err
		})
		err := g.answer(env, list, func(w io.Writer) { printChecks(w, list) })
		if failed != nil || err != nil {
			return errors.Join(failed, err)
		}
		switch {
		case faults == 0:
			return nil
		case c.Repair:
			return fmt.Errorf("check: %d faults in %s that could not be repaired", faults, g.Crawl)
		}
		return fmt.Errorf("check: %d faults in %s; --repair repairs what it can", faults, g.Crawl)
	})
}

func printChecks(w io.Writer, list []*audit.Report) {
	row(w, "SHARD", "SITES", "LEASES", "QUEUED", "WAITING", "RECRAWLS", "OPEN", "DEAD", "URLS LOOKED FOR", "REPAIRED", "FAULTS")
	for _, r := range list {
		row(w, r.Shard, r.Sites, r.Leases, r.Gauges["queued"], r.Gauges["waiting"], r.Gauges["recrawls"], r.Gauges["open"], r.Gauges["dead"], r.Probed, r.Repairs, r.Faulted)
	}
	for _, r := range list {
		printFaults(w, r.Shard, "repaired: ", r.Repaired, r.Repairs)
		printFaults(w, r.Shard, "", r.Faults, r.Faulted)
		printFaults(w, r.Shard, "note: ", r.Notes, int64(len(r.Notes)))
	}
}

// printFaults writes a line for each text, and how many more there are.
func printFaults(w io.Writer, k int, what string, texts []string, all int64) {
	for _, text := range texts {
		fmt.Fprintf(w, "shard %d: %s%s\n", k, what, text)
	}
	if more := all - int64(len(texts)); more > 0 {
		fmt.Fprintf(w, "shard %d: %sand %d more\n", k, what, more)
	}
}
