package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/ask"
)

type sitesCmd struct {
	By    string `enum:"queued,rate,dead,delay,age,walls" default:"queued" placeholder:"ORDER" help:"Order: ${enum} (${default}). walls lists only sites that the crawl backs off from for walls."`
	Site  string `placeholder:"SITE" help:"Only this site, or the site of this host."`
	Limit int    `least:"1" default:"20" placeholder:"N" help:"Most lines of the answer (${default})."`
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
		return g.answer(env, list, func(w io.Writer) { printSites(w, list) })
	})
}

func printSites(w io.Writer, list *ask.SiteList) {
	row(w, "SITE", "SHARD", "STATE", "DUE", "QUEUED", "WAITING", "PAGES", "DEAD", "PAGES/S", "DELAY", "REASON", "FAILED", "WALLS", "LAST", "AGE", "LEFT")
	for _, s := range list.Sites {
		row(w, s.Site, s.Shard, s.Place, dueOf(s.Due), s.Queued, s.Waiting, s.Pages, s.Dead, fmt.Sprintf("%.2f", s.Rate), s.Delay, s.Reason, s.Failures, wallsOf(s.Walls), s.Last, s.Age, s.Left)
	}
	if !list.Exact {
		fmt.Fprintf(w, "of %d sites with work %d were looked at: those of the shards' lists of the first, and some drawn by lot\n", list.Known, list.Looked)
	}
	for _, text := range list.Unread {
		row(w, "UNREAD", text)
	}
}

// wallsOf is how many walls of whom answered in a row.
func wallsOf(w *ask.Walls) string {
	if w == nil {
		return "-"
	}
	return fmt.Sprintf("%d %s", w.Count, w.Vendor)
}

// dueOf is when a site may be asked next.
func dueOf(due *ask.Span) string {
	switch {
	case due == nil:
		return "-"
	case *due <= 0:
		return "now"
	}
	return due.String()
}

// listMost is how many lines of each list are printed; --json has all.
const listMost = 20

type reportCmd struct{}

// Run shows what became of a whole crawl.
func (c *reportCmd) Run(env *boot.Env, g *cli) error {
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		r, err := ask.Report(ctx, f)
		if err != nil {
			return err
		}
		r.Crawl = g.name()
		err = g.answer(env, r, func(w io.Writer) { boot.PrintReport(w, r, listMost) })
		if r.Unread != nil {
			err = errors.Join(err, frontier.ErrPartial)
		}
		return err
	})
}
