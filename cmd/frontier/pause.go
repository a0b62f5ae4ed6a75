package main

import (
	"context"
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier"
)

// target is what a pause is for: the crawl, a shard or a site.
type target struct {
	Site  *string `xor:"target" placeholder:"SITE" help:"Only this site."`
	Shard *int    `xor:"target" placeholder:"K" help:"Only this shard."`
}

type pauseCmd struct {
	target
	Reason string `placeholder:"TEXT" help:"Reason of the pause of a site. block --list shows it."`
}

type resumeCmd struct{ target }

// Run pauses.
func (c *pauseCmd) Run(env *boot.Env, g *cli) error {
	if c.Reason != "" && c.Site == nil {
		return boot.Usage("--reason is kept with a site: give --site too")
	}
	return c.set(env, g, c.Reason, true)
}

// Run resumes.
func (c *resumeCmd) Run(env *boot.Env, g *cli) error { return c.set(env, g, "", false) }

func (t *target) set(env *boot.Env, g *cli, reason string, paused bool) error {
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		what, note, err := t.apply(ctx, f, reason, paused)
		if err != nil {
			return err
		}
		word := map[bool]string{true: "paused", false: "resumed"}[paused]
		return g.answer(env, map[string]any{"crawl": g.name(), "what": what, "paused": paused}, func(w io.Writer) {
			fmt.Fprintf(w, "%s %s\n", word, what)
			if note != "" {
				fmt.Fprintln(w, note)
			}
		})
	})
}

// apply sets the pause. It returns what it is of, and what else to know.
func (t *target) apply(ctx context.Context, f frontier.Operated, reason string, paused bool) (what, note string, err error) {
	switch {
	case t.Site != nil: // an empty one is no site, and not the crawl
		site, err := siteOf(f, *t.Site)
		if err != nil {
			return "", "", err
		}
		k := frontier.ShardOf(f, site)
		met, err := f.Met(ctx, k, site)
		if err != nil {
			return "", "", err
		}
		if paused && !met {
			note = unmet(site)
		}
		return "site " + site, note, f.Alter(ctx, k, site, frontier.SiteChange{Paused: &paused, Reason: reason})
	case t.Shard != nil:
		if err := checkShard(f, *t.Shard); err != nil {
			return "", "", err
		}
		return fmt.Sprintf("shard %d", *t.Shard), "", f.Pause(ctx, *t.Shard, paused)
	}
	return "the crawl", "", f.Pause(ctx, -1, paused)
}
