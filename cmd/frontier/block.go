package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"seine/cmd/internal/boot"
	"seine/frontier"
)

type blockCmd struct {
	Site   string `arg:"" optional:"" help:"The site, or a host of it."`
	Reason string `placeholder:"TEXT" help:"Reason of the block. It is stored with the site and logged. Needed to block."`
	List   bool   `help:"List blocked and paused sites with time and reason, and paused shards."`
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
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		list, partial := f.Stopped(ctx)
		if partial != nil && !errors.Is(partial, frontier.ErrPartial) {
			return partial
		}
		shards, err := f.PausedShards(ctx)
		if err != nil {
			return err
		}
		return errors.Join(partial, g.answer(env, list, func(w io.Writer) {
			row(w, "SITE", "STATE", "SINCE", "REASON")
			for _, k := range shards {
				row(w, fmt.Sprintf("shard %d", k), "paused", "-", "")
			}
			for _, s := range list {
				state := map[bool]string{true: "blocked", false: "paused"}[s.Blocked]
				row(w, s.Site, state, s.Since.Format(time.RFC3339), s.Reason)
			}
		}))
	})
}

// Run lets a site be admitted again.
func (c *unblockCmd) Run(env *boot.Env, g *cli) error { return setBlock(env, g, c.Site, "", false) }

func setBlock(env *boot.Env, g *cli, text, reason string, blocked bool) error {
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		site, err := siteOf(f, text)
		if err != nil {
			return err
		}
		met, err := f.KnowsSite(ctx, frontier.ShardOf(f, site), site)
		if err != nil {
			return err
		}
		states, err := f.SiteStates(ctx, frontier.ShardOf(f, site), []string{site})
		if err != nil {
			return err
		}
		changed := (states[0].Blocked != nil) != blocked
		dropped, err := alterBlock(ctx, f, site, frontier.SiteChange{Blocked: &blocked, Reason: reason})
		if err != nil {
			return err
		}
		word := map[bool]string{true: "blocked", false: "unblocked"}[blocked]
		if changed || blocked {
			env.Log.Info("site "+word, "crawl", g.name(), "site", site, "reason", reason)
		}
		answer := map[string]any{"crawl": g.name(), "site": site, "blocked": blocked, "reason": reason, "met": met, "changed": changed}
		if blocked {
			answer["dropped"] = dropped
		}
		return g.answer(env, answer, func(w io.Writer) {
			if !blocked && !changed {
				fmt.Fprintf(w, "%s was not blocked\n", site)
				return
			}
			fmt.Fprintf(w, "%s %s\n", word, site)
			switch {
			case blocked && met:
				fmt.Fprintf(w, "dropped %s; unblock does not bring them back\n", boot.Number(dropped, "URL"))
			case blocked:
				fmt.Fprintln(w, unmet(site))
			}
		})
	})
}

// alterBlock changes a site and returns how many URLs its shard dropped meanwhile.
func alterBlock(ctx context.Context, f frontier.Operated, site string, change frontier.SiteChange) (int64, error) {
	k := frontier.ShardOf(f, site)
	before, err := f.ShardStats(ctx, k)
	if err != nil {
		return 0, err
	}
	if err := f.Alter(ctx, k, site, change); err != nil {
		return 0, err
	}
	after, err := f.ShardStats(ctx, k)
	if err != nil {
		return 0, err
	}
	return after.Blocked - before.Blocked, nil
}

// unmet reports a site that may be misspelt.
func unmet(site string) string {
	return fmt.Sprintf("no URL of %s is queued, and none was fetched within a day: this is for URLs to come", site)
}
