package ask

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
)

// inquiry is one question after a URL.
type inquiry struct {
	f       frontier.Operated
	q       WhyQuery
	parser  *canon.Parser
	sites   *canon.Sites
	url     canon.URL
	key     string
	print   canon.Fingerprint
	a       *Answer
	state   frontier.SiteState
	shard   frontier.ShardStats
	looked  bool // at all of its site's queue
	allDead bool // all dead letters were looked at
	others  bool // another request for the URL was met
}

// Why says why a URL was fetched or was not. What cannot be crawled at all is an
// answer, and no error. Cost: some ten calls to the URL's shard; where the URL is
// in no visit and no retry also one for each EntriesMost of the first LookMost
// entries of the site's queue, and of the last dead letters of each cause of death.
func Why(ctx context.Context, f frontier.Operated, q WhyQuery) (*Answer, error) {
	layout := f.Layout()
	w := &inquiry{f: f, q: q, parser: canon.NewParser(layout.CanonConfig()), sites: canon.NewSites(layout.LimitBy)}
	w.a = &Answer{URL: frontier.HideCredentials(q.URL)}
	if err := w.parser.Parse(&w.url, []byte(q.URL)); err != nil {
		w.conclude(StateInvalid, "not crawled: "+strings.TrimPrefix(err.Error(), "canon: "))
		return w.a, nil
	}
	settings, err := f.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	site, print := w.sites.Fingerprint(&w.url)
	w.key, w.print = string(w.url.Key()), print
	w.a.URL, w.a.Key, w.a.Site, w.a.Shard = w.url.String(), w.key, site.Name, f.Of(print)
	for _, step := range []func(context.Context, *frontier.Settings) error{
		w.lookAtShard, w.checkScope, w.lookAtRobots, w.find, w.lookAtKnown,
	} {
		if err := step(ctx, settings); err != nil {
			return nil, err
		}
	}
	if q.From != "" && w.a.Scope.From == "" {
		if err := w.checkScopeFrom(settings, q.From); err != nil {
			return nil, err
		}
	}
	w.explain(settings)
	w.remark(settings)
	return w.a, nil
}

func (w *inquiry) conclude(state, why string) { w.a.State, w.a.Why = state, why }

func (w *inquiry) note(format string, args ...any) {
	w.a.Notes = append(w.a.Notes, fmt.Sprintf(format, args...))
}

// remark notes what else decides, and does not show in what was found.
func (w *inquiry) remark(s *frontier.Settings) {
	if c := w.a.Clock; c != nil && c.Place == string(frontier.PlaceLeased) && (c.Reason == "setting" || c.Reason == "override") {
		if d := Span(s.DelayOf(w.a.Site)); d != c.Delay {
			w.note("the settings have a delay of %v for its site by now; its next visit has it", d)
		}
	}
	if r := s.Rule(w.a.Site); r != nil && len(r.Bind) > 0 {
		w.note("the rule of its site has requests leave from %s: fetchers whose machine lacks these addresses leave it to others (bind)", strings.Join(r.Bind, ", "))
	}
	host := strings.Trim(string(w.url.Host()), "[]")
	if a, err := netip.ParseAddr(host); err == nil && (a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast()) {
		w.note("its address is not public: only fetchers whose --allow-net names it fetch it, others give it up (guard)")
	}
}

// lookAtShard reads the shard's counts.
func (w *inquiry) lookAtShard(ctx context.Context, s *frontier.Settings) (err error) {
	if w.shard, err = w.f.ShardStats(ctx, w.a.Shard); err != nil {
		return err
	}
	w.a.Slot, w.a.Master = w.shard.Slot, w.shard.Master
	paused, err := w.f.PausedShards(ctx)
	switch {
	case err != nil:
		return err
	case len(paused) == w.f.Shards():
		w.a.Paused = "the crawl is paused"
	case slices.Contains(paused, w.a.Shard):
		w.a.Paused = fmt.Sprintf("shard %d is paused", w.a.Shard)
	case s.MaxPages > 0 && w.atLimit(ctx, s.MaxPages):
		w.a.Paused = fmt.Sprintf("the crawl is at its end: --max-pages %d is reached", s.MaxPages)
	}
	return nil
}

// atLimit reports whether so many pages were settled, as some program of the crawl
// counted them within the last second or two. Cost: that of RecentStats.
func (w *inquiry) atLimit(ctx context.Context, most int64) bool {
	stats, err := w.f.RecentStats(ctx)
	if err != nil {
		w.note("not known whether --max-pages is reached: %v", err)
	}
	t := frontier.Total(stats)
	return t.Pages() >= most
}

// checkScope asks the settings about a link to the URL on a page of its own host.
func (w *inquiry) checkScope(_ context.Context, s *frontier.Settings) error {
	scope, err := frontier.NewScope(s)
	if err != nil {
		return err
	}
	w.a.Scope = scopeOf(scope.RuleFor(&w.url, 0), s)
	return nil
}

// scopeOf says a ruling in the words of flags.
func scopeOf(r frontier.Ruling, s *frontier.Settings) *Scope {
	sc := &Scope{Follows: r.Reason == "", Reason: r.Reason}
	switch {
	case r.Reason == frontier.ReasonTooLong:
		sc.Rule = fmt.Sprintf("--max-url %d", s.LongestURL())
	case r.Reason == frontier.ReasonDepth:
		sc.Rule = fmt.Sprintf("--max-depth %d", s.MaxDepth)
	case r.Reason == frontier.ReasonExtension:
		sc.Rule = "--skip-ext " + r.Rule
	case r.Reason == frontier.ReasonRule && r.Rule != "":
		sc.Rule = "--deny " + r.Rule
	case r.Reason == frontier.ReasonRule:
		sc.Rule = "--allow " + strings.Join(s.Allow, " --allow ") + ", none of which matches"
	case r.Reason == frontier.ReasonScope:
		sc.Rule = "--scope " + s.Scope
	}
	return sc
}

// checkScopeFrom asks the settings about a link to the URL on another page.
func (w *inquiry) checkScopeFrom(s *frontier.Settings, from string) error {
	var page canon.URL
	if err := w.parser.Parse(&page, []byte(from)); err != nil {
		return fmt.Errorf("ask: the page %s: %w", frontier.LogText(from), err)
	}
	scope, err := frontier.NewScope(s)
	if err != nil {
		return err
	}
	r := frontier.Ruling{Reason: frontier.ReasonScope}
	if scope.Within(w.sites.Of(page.Host()).Name, page.Host(), &w.url, w.a.Site) {
		r = scope.RuleFor(&w.url, 0)
	}
	w.a.Scope = scopeOf(r, s)
	w.a.Scope.From = page.String()
	if s.MaxDepth > 0 {
		w.note("the page's own depth is not known: a link on it is followed if that is below %d", s.MaxDepth)
	}
	return nil
}

// lookAtRobots reads the rules that the fleet stored.
func (w *inquiry) lookAtRobots(ctx context.Context, s *frontier.Settings) error {
	r := &Robots{Origin: string(w.url.Origin()), Allowed: true, Ignored: s.Robots == "ignore", Purpose: s.Purpose}
	w.a.Robots = r
	ask := []frontier.OriginRules{{Site: w.a.Site, Origin: r.Origin}}
	if err := w.f.Rules(ctx, w.a.Shard, ask); err != nil {
		return err
	}
	if ask[0].TTL <= 0 {
		return nil
	}
	if err := w.q.Robots(ask[0].Rules, w.url.Target(), r); err != nil {
		w.note("another version stored the rules of %s/robots.txt: fetchers read the file anew", r.Origin)
		return nil
	}
	r.Read, r.Delay, r.Left = true, min(r.Delay, Span(s.CrawlDelayCap())), Span(ask[0].TTL)
	return nil
}

// lookAtKnown asks whether the shard knows the URL.
func (w *inquiry) lookAtKnown(ctx context.Context, _ *frontier.Settings) error {
	yes, err := w.f.Knows(ctx, w.a.Shard, w.print)
	w.a.Known = &Known{Yes: yes, Exact: w.f.Exact()}
	if !w.a.Known.Exact {
		w.a.Known.Rate = w.f.Layout().ErrorRate
	}
	return err
}

// findTries is how often a site that moves is looked at.
const findTries = 3

// find looks where the URL stands. A URL that moves while it is looked for is
// looked for again.
func (w *inquiry) find(ctx context.Context, s *frontier.Settings) error {
	for range findTries {
		before, err := w.siteState(ctx)
		if err != nil {
			return err
		}
		found, err := w.findAt(ctx, before)
		if err != nil {
			return err
		}
		if w.state, err = w.siteState(ctx); err != nil {
			return err
		}
		if found || w.state.Lease == before.Lease && w.state.Queued == before.Queued && w.state.Waiting == before.Waiting {
			break
		}
	}
	w.a.Clock = clockOf(&w.state, s)
	if w.a.Queued != nil || w.a.Leased != nil || w.a.Wait != nil {
		return nil
	}
	return w.findDead(ctx)
}

func (w *inquiry) siteState(ctx context.Context) (frontier.SiteState, error) {
	list, err := w.f.SiteStates(ctx, w.a.Shard, []string{w.a.Site})
	if err != nil {
		return frontier.SiteState{}, err
	}
	return list[0], nil
}

// is reports whether an entry is the URL. One that asks for it by another request, such
// as a POST, is not, and noted once.
func (w *inquiry) is(e *frontier.Entry) bool {
	if e.URL != string(w.url.Fetch()) {
		var u canon.URL
		if w.parser.Parse(&u, []byte(e.URL)) != nil || string(u.Key()) != w.key {
			return false
		}
	}
	if e.Request.IsGet() {
		return true
	}
	if !w.others {
		w.others = true
		w.note("a %s of the URL is queued, waiting or dead, too; that counts as another page", e.Request)
	}
	return false
}

// findAt looks at the visit, the retries and the queue of the site.
func (w *inquiry) findAt(ctx context.Context, s frontier.SiteState) (found bool, err error) {
	w.looked = true
	if s.Place == frontier.PlaceLeased {
		open, err := w.f.Entries(ctx, w.a.Shard, frontier.EntryPlace{Site: s.Site, Kind: frontier.InVisit, Token: s.Lease.Token}, 0, frontier.EntriesMost)
		if err != nil {
			return false, err
		}
		for i := range open {
			if w.is(&open[i].Entry) {
				w.a.Leased = &Leased{Token: s.Lease.Token, Left: Span(s.Left)}
				w.a.Leased.Fetcher, err = w.holder(ctx, s.Lease.Token)
				return true, err
			}
		}
	}
	before := int64(0) // entries that are asked for first
	_, found, err = w.walk(ctx, frontier.EntryPlace{Site: s.Site, Kind: frontier.InRetries}, s.Waiting, func(e *frontier.QueuedEntry, _ int64) {
		w.a.Wait = &Waiting{Left: Span(e.Left), Attempts: e.Attempts}
	})
	for class := 0; class < len(s.Queued) && !found && err == nil; class++ {
		var passed int64
		passed, found, err = w.walk(ctx, frontier.EntryPlace{Site: s.Site, Class: class}, min(s.Queued[class], LookMost-before), func(e *frontier.QueuedEntry, at int64) {
			w.a.Queued = &Queued{Class: class, Before: before + at, Depth: e.Depth, Attempts: e.Attempts, Lost: e.Lost}
		})
		before += passed
		if passed < s.Queued[class] && !found {
			w.looked = false
			w.note("not among the next %d of %d queued URLs of its site", before, queued(&s))
			break
		}
	}
	return found, err
}

// walk looks at the first entries of a place, LookMost at most, and calls found
// with the URL's. It returns how many it passed.
func (w *inquiry) walk(ctx context.Context, at frontier.EntryPlace, n int64, found func(e *frontier.QueuedEntry, at int64)) (passed int64, ok bool, err error) {
	for n = min(n, LookMost); passed < n; {
		page, err := w.f.Entries(ctx, w.a.Shard, at, passed, min(frontier.EntriesMost, n-passed))
		if err != nil || len(page) == 0 {
			return passed, false, err
		}
		for i := range page {
			if w.is(&page[i].Entry) {
				found(&page[i], passed+int64(i))
				return passed, true, nil
			}
		}
		passed += int64(len(page))
	}
	return passed, false, nil
}

// holder names the program that made a token.
func (w *inquiry) holder(ctx context.Context, token string) (string, error) {
	members, err := w.f.Members(ctx)
	for _, m := range members {
		if m.Tokens != "" && strings.HasPrefix(token, m.Tokens) {
			return fmt.Sprintf("%s %s, process %d on %s", m.Kind, m.ID, m.PID, m.Host), err
		}
	}
	return "", err
}

// findDead looks at the last dead letters of each cause.
func (w *inquiry) findDead(ctx context.Context) error {
	counts, err := w.f.DeadCounts(ctx, w.a.Shard)
	if err != nil {
		return err
	}
	w.allDead = true
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		n := counts[cause]
		if n > LookMost {
			w.allDead = false
			w.note("not looked at: %d older dead letters of cause %s", n-LookMost, cause)
		}
		for at := max(0, n-LookMost); at < n; at += frontier.EntriesMost {
			page, err := w.f.DeadLetters(ctx, w.a.Shard, cause, at, frontier.EntriesMost)
			if err != nil {
				return err
			}
			for i := range page {
				if d := &page[i]; d.Site == w.a.Site && w.is(&d.Entry) {
					w.a.Dead = &Dead{Cause: cause, Text: frontier.HideCredentials(d.Text), Attempts: d.Attempts, Depth: d.Depth}
					return nil
				}
			}
		}
	}
	return nil
}

func queued(s *frontier.SiteState) int64 {
	return s.Queued[0] + s.Queued[1] + s.Queued[2] + s.Queued[3]
}

// clockOf is a site's politeness, nil when nothing is kept of it.
func clockOf(s *frontier.SiteState, set *frontier.Settings) *Clock {
	if !s.Known && s.Paused == nil && s.Blocked == nil {
		return nil
	}
	c := &Clock{
		Failures: s.Failures, Walls: wallsOf(s), Next: Span(max(0, s.Clock)), Due: Span(s.Due), Place: string(s.Place),
		Queued: queued(s), Waiting: s.Waiting, Cap: s.Cap, Admitted: s.Admitted,
		Paused: stopText(s.Paused), Blocked: stopText(s.Blocked), WantsSign: s.WantsSign,
	}
	c.Delay, c.Reason = delayOf(s, set)
	if c.Cap == 0 {
		c.Cap = set.CapOf(s.Site)
	}
	return c
}

// wallsOf is a site's row of walls, nil for none.
func wallsOf(s *frontier.SiteState) *Walls {
	if s.Walls == nil {
		return nil
	}
	return &Walls{Count: s.Walls.Count, Vendor: s.Walls.Vendor, Since: s.Walls.Since, Left: Span(max(0, s.Walls.Left))}
}

// delayOf is the delay of a site and its reason: what its last visit left, or
// what the settings say.
func delayOf(s *frontier.SiteState, set *frontier.Settings) (Span, string) {
	switch {
	case s.Why != "":
		return Span(s.Delay), s.Why
	case s.Override != "" || set.Rule(s.Site) != nil:
		return Span(set.DelayOf(s.Site)), "override"
	}
	return Span(set.Delay), "setting"
}

func stopText(s *frontier.Stop) string {
	if s == nil {
		return ""
	}
	text := "since " + s.Since.Format(time.RFC3339)
	if s.Reason != "" {
		text += ": " + frontier.HideCredentials(s.Reason)
	}
	return text
}
