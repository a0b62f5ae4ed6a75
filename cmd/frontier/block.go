package main

import (
	"context"
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier"
)

type blockCmd struct {
	Site   string `arg:"" help:"The site, or a host of it."`
	Reason string `required:"" placeholder:"TEXT" help:"Why; goes to the log."`
}

type unblockCmd struct {
	Site string `arg:"" help:"The site, or a host of it."`
}

// Run blocks a site: its queue is dropped and nothing more of it is admitted.
func (c *blockCmd) Run(env *boot.Env, g *cli) error { return setBlock(env, g, c.Site, c.Reason, true) }

// Run lets a site be admitted again.
func (c *unblockCmd) Run(env *boot.Env, g *cli) error { return setBlock(env, g, c.Site, "", false) }

func setBlock(env *boot.Env, g *cli, text, reason string, blocked bool) error {
	return g.open(env, func(ctx context.Context, f *frontier.Frontier) error {
		site, err := siteOf(f, text)
		if err != nil {
			return err
		}
		if err := f.Alter(ctx, f.ShardOf(site), site, frontier.SiteChange{Blocked: &blocked}); err != nil {
			return err
		}
		word := map[bool]string{true: "blocked", false: "unblocked"}[blocked]
		env.Log.Info("site "+word, "crawl", g.Crawl, "site", site, "reason", reason)
		return g.answer(env, map[string]any{"crawl": g.Crawl, "site": site, "blocked": blocked, "reason": reason}, func(w io.Writer) {
			fmt.Fprintf(w, "%s %s\n", word, site)
		})
	})
}
