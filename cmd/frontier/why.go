package main

import (
	"context"
	"fmt"
	"io"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/ask"
)

type whyCmd struct {
	URL  string `arg:"" name:"url" help:"The URL."`
	From string `placeholder:"PAGE" help:"Judge it as a link of this page."`
}

// Run says why a URL was fetched or was not: the conclusion first.
func (c *whyCmd) Run(env *boot.Env, g *cli) error {
	return g.open(env, func(ctx context.Context, f frontier.Operated) error {
		a, err := ask.Why(ctx, f, ask.WhyQuery{URL: c.URL, From: c.From})
		if err != nil {
			return err
		}
		return g.answer(env, a, func(w io.Writer) { showAnswer(w, a) })
	})
}

func showAnswer(w io.Writer, a *ask.Answer) {
	fmt.Fprintln(w, a.Why)
	row(w, "URL", a.URL)
	if a.State == ask.StateInvalid {
		return
	}
	if a.Key != a.URL {
		row(w, "key", a.Key)
	}
	at := fmt.Sprintf("%s, shard %d, slot %d", a.Site, a.Shard, a.Slot)
	if a.Master != "" {
		at += " on " + a.Master
	}
	row(w, "site", at)
	row(w, "known", knownText(a.Known))
	row(w, "scope", scopeText(a.Scope))
	row(w, "robots.txt", robotsText(a.Robots))
	showClock(w, a.Clock)
	if q := a.Queued; q != nil {
		row(w, "queued", fmt.Sprintf("class %d, %d before it, %v; depth %d, %s, lost %d times", q.Class, q.Before, q.Takes, q.Depth, boot.Number(int64(q.Attempts), "attempt"), q.Lost))
	}
	if l := a.Lent; l != nil {
		row(w, "lent", fmt.Sprintf("visit %s, for another %v", l.Token, l.Left))
	}
	if r := a.Wait; r != nil {
		row(w, "waiting", fmt.Sprintf("for another %v, after %s", r.Left, boot.Number(int64(r.Attempts), "attempt")))
	}
	if d := a.Dead; d != nil {
		row(w, "dead", fmt.Sprintf("%s, %s, depth %d: %q", d.Cause, boot.Number(int64(d.Attempts), "attempt"), d.Depth, d.Text))
	}
	if a.Paused != "" {
		row(w, "paused", a.Paused)
	}
	for _, note := range a.Notes {
		row(w, "note", note)
	}
}

func knownText(k *ask.Known) string {
	switch {
	case !k.Yes:
		return "no"
	case k.Exact:
		return "yes"
	}
	return fmt.Sprintf("yes, by a filter that is wrong about %.2g of all URLs it never saw", k.Rate)
}

func scopeText(s *ask.Scope) string {
	from := ""
	if s.From != "" {
		from = " on " + s.From
	}
	if s.Follows {
		return "a link to it" + from + " is followed"
	}
	return "a link to it" + from + " is refused by " + s.Rule
}

func robotsText(r *ask.Robots) string {
	switch {
	case r.Ignored:
		return "ignored"
	case !r.Read:
		return r.Origin + ": not known, asked for before the next page"
	}
	text := map[bool]string{true: "allows it", false: "disallows it"}[r.Allowed]
	if r.Rule != "" {
		text += fmt.Sprintf(": %q, line %d, group %s", r.Rule, r.Line, r.Group)
	}
	if r.Delay > 0 {
		text += fmt.Sprintf("; delay %v", r.Delay)
	}
	if r.Age > 0 {
		text += fmt.Sprintf("; read %v ago", r.Age)
	}
	return text + fmt.Sprintf(", good for another %v", r.Left)
}

func showClock(w io.Writer, c *ask.Clock) {
	if c == nil {
		row(w, "clock", "nothing of its site is queued, and nothing was fetched within a day")
		return
	}
	text := fmt.Sprintf("delay %v (%s), next request in %v; site is %s", c.Delay, c.Reason, c.Next, c.Place)
	switch {
	case c.Place == string(frontier.PlaceReady) && c.Due > 0:
		text += fmt.Sprintf(", due in %v", c.Due)
	case c.Place == string(frontier.PlaceReady):
		text += ", due"
	}
	row(w, "clock", text)
	work := fmt.Sprintf("%d queued, %d waiting", c.Queued, c.Waiting)
	if c.Failures > 0 {
		work += fmt.Sprintf("; %d failures in a row", c.Failures)
	}
	if c.Cap > 0 {
		work += fmt.Sprintf("; %d of at most %d admitted", c.Admitted, c.Cap)
	}
	row(w, "its site", work)
	if c.Paused != "" {
		row(w, "its site", "paused "+c.Paused)
	}
	if c.Blocked != "" {
		row(w, "its site", "blocked "+c.Blocked)
	}
}
