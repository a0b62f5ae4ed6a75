package ask

import (
	"fmt"

	"seine/frontier"
)

// Row is one line of an answer for people.
type Row struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Rows is what the conclusion rests on, for people.
func (a *Answer) Rows() []Row {
	list := []Row{{"URL", a.URL}}
	row := func(name, format string, args ...any) { list = append(list, Row{name, fmt.Sprintf(format, args...)}) }
	if a.State == StateInvalid {
		return list
	}
	if a.Key != a.URL {
		row("key", "%s", a.Key)
	}
	at := ""
	if a.Master != "" {
		at = fmt.Sprintf(", slot %d on %s", a.Slot, a.Master)
	}
	row("site", "%s, shard %d%s", a.Site, a.Shard, at)
	row("known", "%s", knownText(a.Known))
	row("scope", "%s", scopeText(a.Scope))
	row("robots.txt", "%s", robotsText(a.Robots))
	list = append(list, a.Clock.rows()...)
	if q := a.Queued; q != nil {
		row("queued", "class %d, %d before it, %v; depth %d, %s, lost %d times", q.Class, q.Before, q.Takes, q.Depth, attempts(q.Attempts), q.Lost)
	}
	if l := a.Leased; l != nil {
		row("leased", "visit %s, for another %v", l.Token, l.Left)
	}
	if r := a.Wait; r != nil {
		row("waiting", "for another %v, after %s", r.Left, attempts(r.Attempts))
	}
	if d := a.Dead; d != nil {
		row("dead", "%s, %s, depth %d: %q", d.Cause, attempts(d.Attempts), d.Depth, d.Text)
	}
	if a.Paused != "" {
		row("paused", "%s", a.Paused)
	}
	for _, note := range a.Notes {
		row("note", "%s", note)
	}
	return list
}

func attempts(n uint8) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

func knownText(k *Known) string {
	switch {
	case !k.Yes:
		return "no"
	case k.Exact:
		return "yes"
	}
	return fmt.Sprintf("yes, says a filter that errs about one in %.0f URLs it never saw", 1/k.Rate)
}

func scopeText(s *Scope) string {
	from := ""
	if s.From != "" {
		from = " on " + s.From
	}
	if s.Follows {
		return "a link to it" + from + " is followed"
	}
	return "a link to it" + from + " is refused by " + s.Rule
}

func robotsText(r *Robots) string {
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
	if r.Refuses != "" {
		text += "; refuses it for " + r.Refuses
	} else if r.Preferences != nil {
		text += fmt.Sprintf("; says %s", r.Preferences)
	}
	if r.Delay > 0 {
		text += fmt.Sprintf("; delay %v", r.Delay)
	}
	if r.Age > 0 {
		text += fmt.Sprintf("; read %v ago", r.Age)
	}
	return text + fmt.Sprintf(", good for another %v", r.Left)
}

// rows is the clock of a site, and its work.
func (c *Clock) rows() []Row {
	if c == nil {
		return []Row{{"clock", "nothing of its site is queued, and nothing was fetched within a day"}}
	}
	text := fmt.Sprintf("delay %v (%s), next request in %v; site is %s", c.Delay, c.Reason, c.Next, c.Place)
	switch {
	case c.Place == string(frontier.PlaceReady) && c.Due > 0:
		text += fmt.Sprintf(", due in %v", c.Due)
	case c.Place == string(frontier.PlaceReady):
		text += ", due"
	}
	work := fmt.Sprintf("%d queued, %d waiting", c.Queued, c.Waiting)
	if c.Failures > 0 {
		work += "; failed " + times(c.Failures)
	}
	if c.Cap > 0 {
		work += fmt.Sprintf("; %d of at most %d admitted", c.Admitted, c.Cap)
	}
	list := []Row{{"clock", text}, {"its site", work}}
	if c.WantsSign {
		list = append(list, Row{"its site", "asks for signed requests, which fetchers with --sign-key send"})
	}
	if c.Walls != nil {
		list = append(list, Row{"its site", c.Walls.String()})
	}
	if c.Paused != "" {
		list = append(list, Row{"its site", "paused " + c.Paused})
	}
	if c.Blocked != "" {
		list = append(list, Row{"its site", "blocked " + c.Blocked})
	}
	return list
}
