package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/ask"
)

type sitesCmd struct {
	By    string `enum:"queued,rate,dead,delay,age" default:"queued" help:"Order: ${enum}."`
	Site  string `placeholder:"SITE" help:"Only this site, or the site of this host."`
	Limit int    `least:"1" default:"20" placeholder:"N" help:"At most so many (${default})."`
}

// Run shows the first sites of an order.
func (c *sitesCmd) Run(env *boot.Env, g *cli) error {
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		if c.Site != "" {
			if _, err := siteOf(f, c.Site); err != nil {
				return err
			}
		}
		list, err := ask.Sites(ctx, f, ask.SitesQuery{By: c.By, Site: c.Site, Limit: c.Limit})
		if err != nil {
			return err
		}
		return g.answer(env, list, func(w io.Writer) { showSites(w, list) })
	})
}

func showSites(w io.Writer, list *ask.SiteList) {
	row(w, "SITE", "SHARD", "STATE", "QUEUED", "WAITING", "PAGES", "DEAD", "PAGES/S", "DELAY", "REASON", "FAILED", "LAST", "AGE", "LEFT")
	for _, s := range list.Sites {
		row(w, s.Site, s.Shard, s.Place, s.Queued, s.Waiting, s.Pages, s.Dead, fmt.Sprintf("%.2f", s.Rate), s.Delay, s.Reason, s.Failures, s.Last, s.Age, s.Left)
	}
	if !list.Exact {
		fmt.Fprintf(w, "of %d sites with work %d were looked at: those of the shards' lists of the first, and some drawn by lot\n", list.Known, list.Looked)
	}
	for _, text := range list.Unread {
		row(w, "UNREAD", text)
	}
}

type reportCmd struct{}

// Run shows what became of a whole crawl.
func (c *reportCmd) Run(env *boot.Env, g *cli) error {
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		r, err := ask.Report(ctx, f)
		if err != nil {
			return err
		}
		r.Crawl = g.name()
		return g.answer(env, r, func(w io.Writer) { showSummary(w, r) })
	})
}

// listMost is how many lines of each list are shown; --json has all.
const listMost = 20

func showSummary(w io.Writer, r *ask.Summary) {
	row(w, "crawl", r.Crawl+": "+r.Ended)
	for _, text := range r.Unread {
		row(w, "UNREAD", text)
	}
	t := &r.Total
	row(w, "URLs", fmt.Sprintf("%d known, %d done, %d dead, %d retries; %d queued, %d waiting, %d in flight", t.Known, t.Done, t.Dead, t.Retried, t.Queued, t.Waiting, t.Open))
	row(w, "links", fmt.Sprintf("%d found, %d of them duplicates", r.Links.Found, r.Links.Duplicates))
	whole := "all of them listed"
	if !r.Seeds.Whole {
		whole = fmt.Sprintf("%d listed with --json", len(r.Seeds.List))
	}
	row(w, "seeds", fmt.Sprintf("%d, %s", r.Seeds.Total, whole))
	for _, list := range []struct {
		name   string
		counts []ask.Count
	}{
		{"seeds", r.Seeds.Fates}, {"status", r.Codes}, {"media", r.Media}, {"dead of", r.Causes},
		{"retried for", r.Retries}, {"sites by last answer", r.Sites}, {"refused links", r.Links.Refused},
	} {
		showCounts(w, list.name, list.counts)
	}
	for i, s := range r.Seeds.List[:min(len(r.Seeds.List), listMost)] {
		row(w, head("seed", i), fmt.Sprintf("%s %s", s.Fate, s.URL))
	}
	for _, list := range []struct {
		name string
		tops []ask.Top
	}{{"largest sites", r.Largest}, {"most dead", r.Deadest}} {
		for i, top := range list.tops[:min(len(list.tops), listMost)] {
			text := fmt.Sprintf("%d %s", top.Count, top.Site)
			if top.Short > 0 {
				text += fmt.Sprintf(" (or up to %d more)", top.Short)
			}
			row(w, head(list.name, i), text)
		}
	}
}

// head is the name of a list at its first line.
func head(name string, i int) string {
	if i > 0 {
		return strings.Repeat(" ", 2)
	}
	return name
}

func showCounts(w io.Writer, name string, counts []ask.Count) {
	for i, c := range counts[:min(len(counts), listMost)] {
		text := fmt.Sprintf("%d %s", c.URLs, c.Name)
		if c.Bytes > 0 {
			text += fmt.Sprintf(", %d bytes", c.Bytes)
		}
		row(w, head(name, i), text)
	}
}
