package main

import (
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier/redis"
)

type createCmd struct{ boot.CrawlFlags }

// Run creates the crawl, or finishes a creation that broke off.
func (c *createCmd) Run(env *boot.Env, g *cli) error {
	if c.Shards == 0 {
		return boot.Usage("--shards N is needed to create a crawl: as many as there are masters, or a multiple")
	}
	settings := c.ToSettings()
	if err := boot.CheckAgent(&settings); err != nil {
		return err
	}
	client, err := g.fit(env, &c.CrawlFlags)
	if err != nil {
		return err
	}
	defer client.Close()
	f, err := redis.Create(env.Stop, client, g.Crawl, c.ToLayout(), settings)
	if err != nil {
		return err
	}
	if err := boot.WarnWatermarks(env.Stop, f, env.Log); err != nil {
		return err
	}
	layout := f.Layout()
	return g.answer(env, map[string]any{"crawl": g.Crawl, "layout": layout, "settings": f.Settings().Masked()}, func(w io.Writer) {
		fmt.Fprintf(w, "created %s: %s, filters for %d URLs at %g\n", g.Crawl, boot.Number(int64(layout.Shards), "shard"), layout.PlanURLs, layout.ErrorRate)
	})
}
