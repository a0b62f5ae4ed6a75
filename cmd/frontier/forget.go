package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"seine/cmd/internal/boot"
	"seine/frontier"
)

type forgetCmd struct {
	Site string `arg:"" help:"The site, or a host of it."`
}

// Run removes the credentials that a site keeps for its origins.
func (c *forgetCmd) Run(env *boot.Env, g *cli) error {
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		site, err := siteOf(f, c.Site)
		if err != nil {
			return err
		}
		k := frontier.ShardOf(f, site)
		states, err := f.SiteStates(ctx, k, []string{site})
		if err != nil {
			return err
		}
		origins := int64(strings.Count(states[0].Credentials, "\n"))
		if origins > 0 {
			none := ""
			if err := f.Alter(ctx, k, site, frontier.SiteChange{Credentials: &none}); err != nil {
				return err
			}
			env.Log.Info("credentials removed", "crawl", g.name(), "site", site, "origins", origins)
		}
		return g.answer(env, map[string]any{"crawl": g.name(), "site": site, "origins": origins}, func(w io.Writer) {
			fmt.Fprintf(w, "removed the credentials of %s of %s\n", boot.Number(origins, "origin"), site)
			if states[0].Place == frontier.PlaceLeased {
				fmt.Fprintln(w, "a fetcher works on the site: its visit still sends them, the next one does not")
			}
		})
	})
}
