package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"seine/cmd/internal/boot"
	"seine/frontier"
)

type blockCmd struct {
	Site   string `arg:"" optional:"" help:"The site, or a host of it."`
	Reason string `placeholder:"TEXT" help:"Why: it is kept with the site and goes to the log; needed to block."`
	List   bool   `help:"List the sites that are blocked or paused, since when and why."`
}

type unblockCmd struct {
	Site string `arg:"" help:"The site, or a host of it."`
}

// Run blocks a site: its queue is dropped and nothing more of it is admitted. Or
// it lists what is stopped.
func (c *blockCmd) Run(env *boot.Env, g *cli) error {
	switch {
	case c.List && c.Site+c.Reason != "":
		return boot.Usage("--list lists all and takes no site and no --reason")
	case c.List:
		return listStopped(env, g)
	case c.Site == "" || c.Reason == "":
		return boot.Usage("give a site and a --reason to block it, or --list")
	}
	return setBlock(env, g, c.Site, c.Reason, true)
}

func listStopped(env *boot.Env, g *cli) error {
	return g.open(env, func(ctx context.Context, f *frontier.Frontier) error {
		list, err := f.Stopped(ctx)
		if err != nil {
			return err
		}
		return g.answer(env, list, func(w io.Writer) {
			row(w, "SITE", "STATE", "SINCE", "REASON")
			for _, s := range list {
				state := map[bool]string{true: "blocked", false: "paused"}[s.Blocked]
				row(w, s.Site, state, s.Since.Format(time.RFC3339), s.Reason)
			}
		})
	})
}

// Run lets a site be admitted again.
func (c *unblockCmd) Run(env *boot.Env, g *cli) error { return setBlock(env, g, c.Site, "", false) }

func setBlock(env *boot.Env, g *cli, text, reason string, blocked bool) error {
	return g.open(env, func(ctx context.Context, f *frontier.Frontier) error {
		site, err := siteOf(f, text)
		if err != nil {
			return err
		}
		if err := f.Alter(ctx, f.ShardOf(site), site, frontier.SiteChange{Blocked: &blocked, Reason: reason}); err != nil {
			return err
		}
		word := map[bool]string{true: "blocked", false: "unblocked"}[blocked]
		env.Log.Info("site "+word, "crawl", g.Crawl, "site", site, "reason", reason)
		return g.answer(env, map[string]any{"crawl": g.Crawl, "site": site, "blocked": blocked, "reason": reason}, func(w io.Writer) {
			fmt.Fprintf(w, "%s %s\n", word, site)
		})
	})
}
