package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"seine/cmd/internal/boot"
	"seine/frontier"
)

// target is what a pause is for: the crawl, a shard or a site.
type target struct {
	Site  *string `arg:"" optional:"" help:"Only this site, or the site of this host."`
	Shard *int    `placeholder:"K" help:"Only this shard."`
}

type pauseCmd struct {
	target
	Reason string `placeholder:"TEXT" help:"Reason of the pause of a site. block --list shows it."`
}

type resumeCmd struct{ target }

// Run pauses.
func (c *pauseCmd) Run(env *boot.Env, g *cli) error {
	if c.Reason != "" && c.Site == nil {
		return boot.Usage("--reason is kept with a site: name the site too")
	}
	return c.set(env, g, c.Reason, true)
}

// Run resumes.
func (c *resumeCmd) Run(env *boot.Env, g *cli) error { return c.set(env, g, "", false) }

func (t *target) set(env *boot.Env, g *cli, reason string, paused bool) error {
	if t.Site != nil && t.Shard != nil {
		return boot.Usage("give a site or --shard, not both")
	}
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		what, note, changed, err := t.apply(ctx, f, reason, paused)
		if err != nil {
			return err
		}
		word := map[bool]string{true: "paused", false: "resumed"}[paused]
		return g.answer(env, map[string]any{"crawl": g.name(), "what": what, "paused": paused, "changed": changed}, func(w io.Writer) {
			if !changed && !paused {
				fmt.Fprintf(w, "%s was not paused\n", what)
				return
			}
			fmt.Fprintf(w, "%s %s\n", word, what)
			if note != "" {
				fmt.Fprintln(w, note)
			}
		})
	})
}

// apply sets the pause. It returns what it is of, what else to know, and whether it was
// not so before.
func (t *target) apply(ctx context.Context, f frontier.Operated, reason string, paused bool) (what, note string, changed bool, err error) {
	if t.Site != nil { // an empty one is no site, and not the crawl
		site, err := siteOf(f, *t.Site)
		if err != nil {
			return "", "", false, err
		}
		k := frontier.ShardOf(f, site)
		met, err := f.KnowsSite(ctx, k, site)
		if err != nil {
			return "", "", false, err
		}
		states, err := f.SiteStates(ctx, k, []string{site})
		if err != nil {
			return "", "", false, err
		}
		if paused && !met {
			note = unmet(site)
		}
		return "site " + site, note, (states[0].Paused != nil) != paused, f.Alter(ctx, k, site, frontier.SiteChange{Paused: &paused, Reason: reason})
	}
	before, err := f.PausedShards(ctx)
	if err != nil {
		return "", "", false, err
	}
	if t.Shard == nil {
		changed = len(before) > 0 && !paused || len(before) < f.Shards() && paused
		return "the crawl", "", changed, f.Pause(ctx, -1, paused)
	}
	if err := checkShard(f, *t.Shard); err != nil {
		return "", "", false, err
	}
	return fmt.Sprintf("shard %d", *t.Shard), "", slices.Contains(before, *t.Shard) != paused, f.Pause(ctx, *t.Shard, paused)
}
