package main

import (
	"context"
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/redis"
)

type setCmd struct{ boot.CrawlFlags }

// Run changes the settings that were given and shows each before and after.
func (c *setCmd) Run(env *boot.Env, g *cli) error {
	if c.GivesLayout() {
		return boot.Usage("shards, limit-by, plan-urls, error-rate, strip-params and sort-query are fixed when a crawl is created")
	}
	if err := c.Check(); err != nil {
		return err
	}
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		before, after, err := f.Set(ctx, func(s *frontier.Settings) error {
			c.Apply(s)
			return boot.CheckAgent(s)
		})
		if err != nil {
			return err
		}
		if r, ok := f.(*redis.Frontier); ok {
			if err := boot.WarnMarks(ctx, r, env.Log); err != nil {
				return err
			}
		}
		changes := boot.Changes(before, after)
		return g.answer(env, map[string]any{"changes": changes, "settings": after.Masked(), "rev": after.Rev}, func(w io.Writer) {
			if len(changes) == 0 {
				fmt.Fprintln(w, "nothing changed")
				return
			}
			row(w, "SETTING", "BEFORE", "AFTER")
			for _, d := range changes {
				row(w, d.Flag, d.Before, d.After)
			}
		})
	})
}
