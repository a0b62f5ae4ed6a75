package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/ask"
	"seine/frontier/memory"
)

type statsCmd struct {
	Watch bool          `help:"Repeat until interrupted. It clears a terminal first. In a file or pipe an empty line separates two answers."`
	Every time.Duration `least:"100ms" default:"2s" placeholder:"D" help:"Interval of --watch (${default})."`
}

// Run prints totals, dead letters by cause and live programs.
func (c *statsCmd) Run(env *boot.Env, g *cli) error {
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		if !c.Watch {
			return c.print(ctx, env, g, f)
		}
		if _, rests := f.(*memory.Frontier); rests { // and no fetcher could open it meanwhile
			return boot.Usage("--watch: no fetcher has %s open, so nothing changes there; leave it out", g.State)
		}
		return c.watch(ctx, env, g, f)
	})
}

// watch prints them time after time, until ctx ends or something fails.
func (c *statsCmd) watch(ctx context.Context, env *boot.Env, g *cli, f frontier.Operated) error {
	before := "\n"
	if out, ok := env.Out.(*os.File); ok && term.IsTerminal(int(out.Fd())) {
		before = "\x1b[H\x1b[2J" // home, and clear
	}
	for {
		if err := c.print(ctx, env, g, f); ctx.Err() != nil {
			return nil // interrupted, as is meant
		} else if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.Every):
		}
		if _, err := io.WriteString(env.Out, before); err != nil {
			return err
		}
	}
}

func (c *statsCmd) print(ctx context.Context, env *boot.Env, g *cli, f frontier.Operated) error {
	p, err := ask.Stats(ctx, f)
	if err != nil {
		return err
	}
	return g.answer(env, p, func(w io.Writer) {
		printReport(w, &p.Report)
		printProgress(w, p)
		if p.Members != nil {
			printMembers(w, p.Members, p.Vanished)
		}
	})
}

func printReport(w io.Writer, r *frontier.Report) {
	t := r.Total
	row(w, "crawl", fmt.Sprintf("%s, %s, %s", r.Crawl, r.State, boot.Number(int64(r.Layout.Shards), "shard")))
	for i := range r.Shards {
		if s := &r.Shards[i]; s.Silent && s.Fault == "" {
			row(w, "SILENT", fmt.Sprintf("shard %d does not answer and is not counted", s.Shard))
		}
		if s := &r.Shards[i]; s.Fault != "" {
			by := ""
			if s.Master != "" {
				by = " by " + s.Master
			}
			if s.Silent {
				row(w, "NOT COUNTED", fmt.Sprintf("shard %d%s: %s", s.Shard, by, s.Fault))
			} else {
				row(w, "REFUSED", fmt.Sprintf("shard %d%s: %s", s.Shard, by, s.Fault))
			}
		}
	}
	for _, key := range r.Lost {
		row(w, "MISSING", key+", restore it with frontier bloom load")
	}
	for _, k := range r.Over {
		row(w, "FILTER OVER", fmt.Sprintf("shard %d holds more new URLs for known than it may, see frontier bloom info", k))
	}
	for _, text := range r.Unread {
		row(w, "UNREADABLE", text)
	}
	for _, text := range r.Pressure {
		row(w, "MEMORY", text)
	}
	if r.Settings.Robots == "ignore" {
		row(w, "robots.txt", "IGNORED")
	}
	row(w, "done", t.Done)
	row(w, "queued", t.Queued)
	row(w, "waiting", fmt.Sprintf("%d for a retry", t.Waiting))
	if len(r.Settings.Recrawl) > 0 || t.Recrawls > 0 {
		row(w, "recrawls", fmt.Sprintf("%s to recrawl; %d were recrawled so far", boot.Number(t.Recrawls, "URL"), t.Recrawled))
	}
	if t.Forgone > 0 {
		row(w, "forgone", boot.Number(t.Forgone, "URL")+" not recrawled, for their sites have too many that are")
	}
	row(w, "in flight", fmt.Sprintf("%d URLs in %d visits", t.Open, t.Leases))
	row(w, "known URLs", t.Known)
	if t.TurnedAway > 0 {
		row(w, "turned away", fmt.Sprintf("%d links, for want of memory", t.TurnedAway))
	}
	for _, gone := range []struct {
		name string
		n    int64
		why  string
	}{
		{"blocked", t.Blocked, "dropped with their sites"},
		{"merged", t.Merged, "that waited already when a retry came"},
		{"missing", t.Missing, "that check --repair found nowhere any more"},
	} {
		if gone.n > 0 {
			row(w, gone.name, boot.Number(gone.n, "URL")+" "+gone.why)
		}
	}
	row(w, "sites", fmt.Sprintf("%d ready, %d leased; %d paused, %d of them with URLs queued; %d blocked; %d behind walls", t.Ready, t.Leases, r.Paused, t.PausedReady, r.Blocked, t.Walled))
	if r.Feed >= 0 {
		row(w, "feed", fmt.Sprintf("%d elements wait", r.Feed))
	}
	row(w, "retried", fmt.Sprintf("%d fetches, %d URLs came back from lost fetchers", t.Retried, t.Lost))
	row(w, "dead", fmt.Sprintf("%d, %d retried, %d dropped", t.Dead, t.RetriedDead, t.Dropped+t.Forgotten))
	for _, cause := range slices.Sorted(maps.Keys(r.Dead)) {
		row(w, "  "+cause, r.Dead[cause])
	}
}

// printProgress prints what follows from the report.
func printProgress(w io.Writer, p *ask.Progress) {
	if p.Total.Dead > 0 {
		row(w, "dead now", p.DeadNow)
	}
	row(w, "rate", fmt.Sprintf("%.1f pages/s", p.Rate))
	if len(p.Limits) > 0 {
		row(w, "limited by", boot.Counted(p.Limits))
	}
	if len(p.Versions) > 0 {
		row(w, "versions", boot.Counted(p.Versions))
	}
	left := "unknown"
	if p.ETA.Known {
		left = p.ETA.Left.String()
	}
	row(w, "done in", fmt.Sprintf("%s, %s", left, strings.TrimPrefix(p.ETA.By, "unknown: ")))
}

// printMembers prints who is live, and who was lost within the hour.
func printMembers(w io.Writer, members, vanished []frontier.Member) {
	fmt.Fprintln(w)
	if len(members) == 0 {
		row(w, "no fetcher is live")
	}
	list := func(head string, members []frontier.Member, vanished bool) {
		if len(members) > 0 {
			row(w, head, "VERSION", "HOST", "PID", "PAGES/S", "PAGES", "VISITS", "LIMIT", "UP", "SEEN")
		}
		for _, m := range members {
			up := time.Since(m.Started)
			if vanished { // it was up until then
				up = max(m.Seen.Sub(m.Started), 0)
			}
			row(w, m.Kind, m.Version, m.Host, m.PID, fmt.Sprintf("%.1f", m.Rate), m.Pages, m.Visits, m.Limit,
				up.Round(time.Second), since(m.Seen)+" ago")
		}
	}
	list("LIVE", members, false)
	list("VANISHED", vanished[:min(len(vanished), vanishedMost)], true)
	if more := len(vanished) - vanishedMost; more > 0 {
		row(w, fmt.Sprintf("and %d more that vanished within the hour", more))
	}
}

// vanishedMost is how many programs that vanished are printed; --json has all.
const vanishedMost = 20

func since(t time.Time) string { return time.Since(t).Round(time.Second).String() }
