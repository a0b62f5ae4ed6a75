package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier/redis"
)

type shardsCmd struct{}

// Run shows each shard.
func (c *shardsCmd) Run(env *boot.Env, g *cli) error {
	return g.openRedis(env, func(ctx context.Context, f *redis.Frontier) error {
		list, err := f.Places(ctx)
		if err != nil {
			return err
		}
		return g.answer(env, list, func(w io.Writer) {
			row(w, "SHARD", "SLOT", "MASTER", "SITES", "QUEUED", "IN FLIGHT", "FILTER URLS", "FILL", "FILTER SIZE", "MEMORY", "STATE")
			for _, p := range list {
				state := "ready"
				switch {
				case p.Silent:
					row(w, p.Shard, p.Slot, p.Master, "-", "-", "-", "-", "-", "-", "-", cmp.Or(p.Fault, "silent"))
					continue
				case p.Memory.Limit > 0 && p.Memory.Used >= p.Memory.Limit:
					state = "full"
				case p.Fault != "":
					state = "takes no writes: " + p.Fault
				case p.Paused:
					state = "paused"
				}
				if p.FiltersLost > 0 {
					state += ", filter missing"
				}
				memory := "no limit"
				if m := p.Memory; m.Limit > 0 {
					memory = fmt.Sprintf("%.1f%%", 100*float64(m.Used)/float64(m.Limit))
				}
				row(w, p.Shard, p.Slot, p.Master, p.Ready+p.PausedReady+p.Leases, p.Queued, p.Open, p.FilterItems,
					fmt.Sprintf("%.1f%%", 100*p.FilterFill), boot.Bytes(uint64(p.FilterBytes)), memory, state)
			}
		})
	})
}
