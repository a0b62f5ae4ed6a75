package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/redis"
)

type listCmd struct{}

// Run lists the crawls.
func (c *listCmd) Run(env *boot.Env, g *cli) error {
	if g.State != "" {
		return listDir(env, g)
	}
	client, err := g.client(env)
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := redis.List(env.Stop, client)
	if err != nil {
		return err
	}
	return printList(env, g, list)
}

// listDir lists the crawl of a directory.
func listDir(env *boot.Env, g *cli) error {
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		r, err := f.Report(ctx)
		if err != nil {
			return err
		}
		return printList(env, g, []frontier.Listed{{Crawl: g.State, State: r.State, Layout: r.Layout}})
	})
}

func printList(env *boot.Env, g *cli, list []frontier.Listed) error {
	return g.answer(env, list, func(w io.Writer) {
		row(w, "CRAWL", "STATE", "SHARDS", "CREATED")
		for _, l := range list {
			created := "-"
			if !l.Created.IsZero() {
				created = l.Created.Format(time.RFC3339)
			}
			shards := "-"
			if l.Layout.Shards > 0 {
				shards = strconv.Itoa(l.Layout.Shards)
			}
			row(w, l.Crawl, l.State, shards, created)
		}
		for _, l := range list {
			if l.Fault != "" {
				fmt.Fprintf(w, "%s: %s\n", l.Crawl, l.Fault)
			}
		}
	})
}
