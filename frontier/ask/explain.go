package ask

import (
	"fmt"
	"strings"
	"time"

	"seine/frontier"
)

// explain draws the conclusion from what was found.
func (w *inquiry) explain(s *frontier.Settings) {
	a, c := w.a, w.a.Clock
	switch {
	case c != nil && c.Blocked != "":
		w.conclude(StateBlocked, fmt.Sprintf("not fetched: site %s is blocked %s", a.Site, c.Blocked))
	case a.Leased != nil:
		who := a.Leased.Fetcher
		if who == "" {
			who = "a fetcher that is not on the list of programs"
		}
		w.conclude(StateLeased, fmt.Sprintf("being fetched: leased to %s for another %v", who, a.Leased.Left))
		if a.Leased.Left < 0 {
			w.conclude(StateLeased, fmt.Sprintf("not fetched yet: it was leased to %s, whose lease ended %v ago; it comes back", who, -a.Leased.Left))
		}
	case a.Queued != nil:
		w.explainQueued(s)
	case a.Wait != nil:
		a.Wait.Why = trouble(&w.state)
		w.conclude(StateWaiting, fmt.Sprintf("not fetched yet: attempt %d failed, it is tried again in %v%s%s", a.Wait.Attempts, max(a.Wait.Left, c.Due), comma(a.Wait.Why), w.halted()))
		if a.Wait.Attempts == 0 {
			w.conclude(StateWaiting, fmt.Sprintf("not fetched yet: it waits for %v, for no fault of its own%s%s", max(a.Wait.Left, c.Due), comma(a.Wait.Why), w.halted()))
		}
	case a.Dead != nil:
		w.conclude(StateDead, "given up: "+a.Dead.reason())
	case a.Known.Yes:
		w.explainKnown(s)
	default:
		w.explainUnknown(s)
	}
}

func (w *inquiry) explainQueued(s *frontier.Settings) {
	a, c := w.a, w.a.Clock
	a.Queued.Takes = Span(time.Duration(a.Queued.Before) * time.Duration(c.Delay))
	when := "its site is due now"
	switch {
	case w.state.Place == frontier.PlaceLeased:
		when = "other URLs of its site are being fetched"
	case c.Due > 0:
		when = fmt.Sprintf("its site is due in %v", c.Due)
	}
	before := "it is the next of its site"
	switch n := a.Queued.Before; {
	case n == 1:
		before = fmt.Sprintf("1 URL of its site is before it, %v (%s)", c.Delay, c.Reason)
	case n > 1:
		before = fmt.Sprintf("%d URLs of its site are before it, %v at a delay of %v (%s)", n, a.Queued.Takes, c.Delay, c.Reason)
	}
	why := fmt.Sprintf("not fetched yet: %s; %s", before, when)
	if c.Paused != "" {
		why = fmt.Sprintf("not fetched: site %s is paused %s", a.Site, c.Paused)
	}
	w.conclude(StateQueued, why+w.forbidden()+w.halted()+comma(trouble(&w.state)))
}

// explainKnown: the shard knows the URL, and it was found nowhere.
func (w *inquiry) explainKnown(s *frontier.Settings) {
	if !w.looked || !w.allDead {
		w.conclude(StateKnown, "known, and not among what was looked at: queued farther behind, given up longer ago, or fetched")
		return
	}
	if d := w.state.Dropped; d != nil {
		w.conclude(StateDropped, fmt.Sprintf("fetched, or dropped: it is known and nowhere, and `frontier %s` dropped URLs of %s, last at %s; frontier seed --refetch queues it", d.By, w.a.Site, d.Since.Format(time.RFC3339)))
		w.note("records say whether it was fetched")
		return
	}
	why := "fetched: it is known, and neither queued nor given up; records say what it was"
	if recrawl, err := frontier.Recrawler(s.Recrawl); err == nil && recrawl != nil {
		switch r, ok := recrawl(w.url.Fetch()); {
		case ok && w.state.Recrawls == 0 && w.state.Place != frontier.PlaceLeased:
			why += "; --recrawl matches it, but nothing of its site waits for a recrawl: it was fetched before that rule. frontier seed --refetch queues it"
		case ok && w.state.Place == frontier.PlaceReady:
			why += fmt.Sprintf("; by --recrawl it is recrawled when its interval of %v is over, and its site is due in %v at the earliest", r, Span(max(0, w.state.Due)))
		case ok:
			why += fmt.Sprintf("; by --recrawl it is recrawled when its interval of %v is over", r)
		}
	}
	if !w.a.Known.Exact {
		w.note("a URL that the filter errs about would be held for fetched, too")
	}
	w.conclude(StateDone, why)
}

// explainUnknown: nobody ever admitted the URL.
func (w *inquiry) explainUnknown(s *frontier.Settings) {
	a, c := w.a, w.a.Clock
	link := "a link to it"
	if a.Scope.From != "" {
		link = "a link to it on " + a.Scope.From
	}
	switch {
	case !a.Scope.Follows:
		w.conclude(StateRefused, fmt.Sprintf("not fetched: %s is refused by %s", link, a.Scope.Rule))
		if !strings.HasPrefix(a.Scope.Rule, "--deny") {
			w.note("a seed is fetched all the same: frontier seed --seed URL")
		}
	case c != nil && c.Cap > 0 && c.Admitted >= c.Cap:
		w.conclude(StateCapped, fmt.Sprintf("not fetched: site %s has %d URLs of the %d that it may have", a.Site, c.Admitted, c.Cap))
	case w.shard.Memory.Cutoff > 0 && queued(&w.state) >= w.shard.Memory.Cutoff:
		w.conclude(StateUndiscovered, fmt.Sprintf("not known: links to queues of %d URLs or more are turned away for want of memory, and its site has %d", w.shard.Memory.Cutoff, queued(&w.state)))
	case w.shard.Memory.Limit > 0 && w.shard.Memory.Used >= w.shard.Memory.Limit:
		w.conclude(StateUndiscovered, "not known: its shard is full and admits nothing")
	default:
		w.conclude(StateUndiscovered, "not known: nobody seeded it and no page that was fetched so far linked to it in a way that is followed; nothing refuses "+link+w.forbidden())
		if a.Scope.From == "" && s.Scope != "any" {
			w.note("judged as a link of its own %s; --from PAGE judges it as a link of that page", s.Scope)
		}
	}
}

// forbidden says that robots.txt will have the URL given up.
func (w *inquiry) forbidden() string {
	r := w.a.Robots
	switch {
	case r.Ignored || r.Allowed && r.Refuses == "":
		return ""
	case r.Allowed:
		return "; but then it would be given up, for robots.txt refuses it for " + r.Refuses
	}
	return fmt.Sprintf("; but then it would be given up, for robots.txt has %q in line %d", r.Rule, r.Line)
}

// halted says that nothing is leased there.
func (w *inquiry) halted() string {
	if w.a.Paused == "" {
		return ""
	}
	return "; " + w.a.Paused
}

// trouble says that a site fails.
func trouble(s *frontier.SiteState) string {
	switch {
	case s.Walls != nil:
		return "its site is " + wallsOf(s).String()
	case s.Failures == 0:
		return ""
	}
	return "its site failed " + times(s.Failures)
}

// String says since when a site is behind a wall, whose, and until when the fleet backs off.
func (w *Walls) String() string {
	text := fmt.Sprintf("behind a wall of %s, which answered %s since %s", w.Vendor, times(w.Count), w.Since.Format(time.RFC3339))
	if w.Left > 0 {
		text += fmt.Sprintf("; the whole fleet backs off from it for another %v", w.Left)
	}
	return text
}

// times is how often something failed in a row.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times in a row", n)
}

// reason is why a URL was given up: its text has the cause, or begins with it.
func (d *Dead) reason() string {
	switch text := strings.TrimPrefix(d.Text, "fetch: "+d.Cause+": "); {
	case text == "":
		return d.Cause
	case strings.HasPrefix(text, d.Cause):
		return text
	default:
		return d.Cause + ": " + text
	}
}

func comma(text string) string {
	if text == "" {
		return ""
	}
	return ", " + text
}
