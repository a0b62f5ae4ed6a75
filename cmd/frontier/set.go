package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/redis"
)

type setCmd struct {
	boot.CrawlFlags
	Site  string `group:"polite" placeholder:"SITE" help:"Change --delay, --per-site or --max-per-site for this site alone."`
	Reset bool   `group:"polite" help:"With --site: restore the values of the crawl."`
}

// Run changes the settings that were given and shows each before and after.
func (c *setCmd) Run(env *boot.Env, g *cli) error {
	if slices.Contains(env.Given, "site") {
		return c.setSite(env, g)
	}
	if c.Reset {
		return boot.Usage("--reset is for one site: give --site too")
	}
	if err := c.Check(); err != nil {
		return err
	}
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		if err := c.SameLayout(f.Layout(), g.State != ""); err != nil {
			return err
		}
		before, after, err := c.Store(ctx, f)
		if err != nil {
			return err
		}
		if r, ok := f.(*redis.Frontier); ok {
			if err := boot.WarnWatermarks(ctx, r, env.Log); err != nil {
				return err
			}
		}
		changes := frontier.Changes(before, after)
		if slices.ContainsFunc(changes, func(d frontier.Change) bool { return d.Flag == "recrawl" }) {
			if err := warnOfDone(ctx, env, f); err != nil {
				return err
			}
		}
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

// warnOfDone logs that pages which are done do not become due by a new rule: the crawl
// keeps nothing of them but that they are known.
func warnOfDone(ctx context.Context, env *boot.Env, f frontier.Operated) error {
	stats, err := f.RecentStats(ctx)
	if err != nil {
		return err
	}
	if t := frontier.Total(stats); t.Done-t.Recrawled > t.Recrawls {
		env.Log.Warn("pages that were fetched before a rule matched them are not recrawled by it; queue them with frontier seed --refetch", "pages", t.Done-t.Recrawled-t.Recrawls)
	}
	return nil
}

// besideSite are the flags that may stand beside --site and say nothing of it.
var besideSite = []string{"site", "reset", "state", "crawl", "json", "config", "log-level", "log-format", "lease", "ack"}

// setSite changes what the crawl has for one site. Only the command line counts: the
// file and the environment are about the crawl.
func (c *setCmd) setSite(env *boot.Env, g *cli) error {
	given := 0
	for _, name := range env.Given {
		if slices.Contains(boot.SiteSettings, name) {
			given++
		} else if !slices.Contains(besideSite, name) && !strings.HasPrefix(name, "redis") {
			return boot.Usage("--%s is of the whole crawl; of one site there are --%s", name, strings.Join(boot.SiteSettings, ", --"))
		}
	}
	if given == 0 && !c.Reset {
		return boot.Usage("--site %s: nothing to set; give --%s, or --reset", c.Site, strings.Join(boot.SiteSettings, ", --"))
	}
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		site, err := siteOf(f, c.Site)
		if err != nil {
			return err
		}
		before, after, err := c.StoreSite(ctx, f, site, env.Given, c.Reset)
		if err != nil {
			return err
		}
		return g.answer(env, map[string]any{"site": site, "settings": after.Masked(), "rev": after.Rev}, func(w io.Writer) {
			row(w, "SETTING OF "+site, "BEFORE", "AFTER")
			row(w, "delay", before.DelayOf(site), after.DelayOf(site))
			row(w, "per-site", perSite(before, site), perSite(after, site))
			row(w, "max-per-site", before.CapOf(site), after.CapOf(site))
		})
	})
}

func perSite(s *frontier.Settings, site string) int {
	if r := s.Rule(site); r != nil && r.PerSite > 0 {
		return r.PerSite
	}
	return s.PerSite
}
