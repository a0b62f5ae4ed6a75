package main

import (
	"fmt"
	"io"
	"time"

	"seine/cmd/internal/boot"
	"seine/frontier/redis"
)

type listCmd struct{}

// Run lists the crawls.
func (c *listCmd) Run(env *boot.Env, g *cli) error {
	client, err := g.client(env)
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := redis.List(env.Stop, client)
	if err != nil {
		return err
	}
	return g.answer(env, list, func(w io.Writer) {
		row(w, "CRAWL", "STATE", "SHARDS", "CREATED")
		for _, l := range list {
			created := "-"
			if !l.Created.IsZero() {
				created = l.Created.Format(time.RFC3339)
			}
			row(w, l.Crawl, l.State, l.Layout.Shards, created)
		}
		for _, l := range list {
			if l.Fault != "" {
				fmt.Fprintf(w, "%s: %s\n", l.Crawl, l.Fault)
			}
		}
	})
}
