package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"seine/frontier"
)

// Report says what became of a whole crawl, as its shards summed it up: each
// settled URL is in it once. Shards that do not answer are named. Cost: six calls a
// shard, and one for each SitesMost of its first sites.
func Report(ctx context.Context, f frontier.Operated) (*Summary, error) {
	settings, err := f.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	counts, seeds := map[string]int64{}, map[string]string{}
	r := &Summary{Seeds: Seeds{Whole: true}}
	shards := make([]frontier.ShardStats, 0, f.Shards())
	r.Unread = eachShard(ctx, f.Shards(), func(ctx context.Context, k int) error {
		stats, err := f.ShardStats(ctx, k)
		if err != nil {
			return err
		}
		sums, err := f.Counters(ctx, k)
		if err != nil {
			return err
		}
		exact, err := exactly(ctx, f, k, sums)
		if err != nil {
			return err
		}
		if err := unsettled(ctx, f, k, sums.Seeds); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		shards = append(shards, stats)
		for name, n := range sums.Counts {
			counts[name] += n
		}
		maps.Copy(seeds, sums.Seeds)
		r.Seeds.Whole = r.Seeds.Whole && len(sums.Seeds) < frontier.SeedsKept
		r.Largest = append(r.Largest, tops(sums.Pages, exact, func(t *frontier.SiteTotals) int64 { return t.Pages })...)
		r.Deadest = append(r.Deadest, tops(sums.Dead, exact, func(t *frontier.SiteTotals) int64 { return t.Dead })...)
		return nil
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.Shards, r.Total = len(shards), frontier.Total(shards)
	r.Seeds.Whole = r.Seeds.Whole && r.Unread == nil
	r.count(counts)
	for _, url := range slices.Sorted(maps.Keys(seeds)) {
		if outcome, _, waits := strings.Cut(seeds[url], ": "); waits || slices.Contains(unsettledOutcomes, outcome) {
			r.Seeds.Left++
		}
		r.Seeds.List = append(r.Seeds.List, Seed{url, seeds[url]})
	}
	slices.SortStableFunc(r.Seeds.List, func(a, b Seed) int { return cmp.Compare(a.worked(), b.worked()) })
	r.Largest, r.Deadest = firstOf(r.Largest), firstOf(r.Deadest)
	if r.Began, err = f.Began(ctx); err != nil {
		return nil, err
	}
	if err := r.ending(ctx, f, settings); err != nil && r.Unread == nil {
		return nil, err
	}
	if n := len(r.Unread); n > 0 {
		r.Ended = fmt.Sprintf("not known: %d of %d shards cannot be read", n, f.Shards())
	}
	return r, nil
}

// worked is 1 for a seed that led to a page: people look for the others.
func (s *Seed) worked() int {
	if len(s.Outcome) == 3 && s.Outcome[0] == '2' {
		return 1
	}
	return 0
}

// count sorts the counts of all shards into the lists of a report.
func (r *Summary) count(counts map[string]int64) {
	codes, media := map[string]*Count{}, map[string]*Count{}
	of := func(list map[string]*Count, name string) *Count {
		if list[name] == nil {
			list[name] = &Count{Name: name}
		}
		return list[name]
	}
	for name, n := range counts {
		kind, rest, ok := strings.Cut(name, ":")
		code, kindOf, hasKind := strings.Cut(rest, ":")
		switch kind += map[bool]string{true: ":"}[ok]; kind {
		case frontier.CounterPage:
			of(codes, code).URLs += n
			if hasKind {
				of(media, kindOf).URLs += n
			}
		case frontier.CounterBytes:
			of(codes, code).Bytes += n
			r.Bytes += n
			if hasKind {
				of(media, kindOf).Bytes += n
			}
		case frontier.CounterDead:
			r.Causes = append(r.Causes, Count{Name: rest, URLs: n})
		case frontier.CounterRetry:
			r.Retries = append(r.Retries, Count{Name: strings.Replace(rest, ":", " ", 1), URLs: n})
		case frontier.CounterWall:
			r.Walls = append(r.Walls, Count{Name: rest, URLs: n})
		case frontier.CounterSite:
			r.Sites = append(r.Sites, Count{Name: rest, URLs: n})
		case frontier.CounterRefused:
			r.Links.Refused = append(r.Links.Refused, Count{Name: rest, URLs: n})
		case frontier.CounterWithheld:
			r.Withheld = append(r.Withheld, Count{Name: rest, URLs: n})
		case frontier.CounterSeed:
			r.Seeds.Outcomes = append(r.Seeds.Outcomes, Count{Name: rest, URLs: n})
			r.Seeds.Total += n
		case frontier.CounterLinks:
			r.Links.Found = n
		case frontier.CounterKnown:
			r.Links.Duplicates = n
		}
	}
	for _, c := range codes {
		if c.Name == fmt.Sprint(frontier.StatusOther) {
			c.Name = "other"
		}
		r.Codes = append(r.Codes, *c)
	}
	for _, c := range media {
		r.Media = append(r.Media, *c)
	}
	gone := int64(0)
	for _, c := range r.Causes {
		gone += c.URLs
	}
	if lost := r.Total.Dead - gone; lost > 0 {
		r.Causes = append(r.Causes, Count{Name: frontier.CauseLost, URLs: lost})
	}
	for _, list := range []*[]Count{&r.Codes, &r.Media, &r.Causes, &r.Retries, &r.Walls, &r.Withheld, &r.Sites, &r.Links.Refused, &r.Seeds.Outcomes} {
		*list = slices.DeleteFunc(*list, func(c Count) bool { return c.URLs == 0 })
		sortCounts(*list)
	}
}

// exactly reads what a shard keeps now of the sites of its lists.
func exactly(ctx context.Context, f frontier.Operated, k int, sums *frontier.Counters) (map[string]frontier.SiteTotals, error) {
	var names []string
	for _, list := range [][]frontier.TopSite{sums.Pages, sums.Dead} {
		for _, t := range list {
			names = append(names, t.Site)
		}
	}
	totals := make(map[string]frontier.SiteTotals)
	states, err := statesOf(ctx, f, k, names)
	for _, s := range states {
		totals[s.Site] = s.Totals
	}
	return totals, err
}

// The outcomes of seeds that were not tried yet, by what their sites are.
const (
	outcomeQueued  = "queued"
	outcomeLeased  = "queued or in flight" // its site is leased
	outcomePaused  = "queued, its site is paused"
	outcomeBlocked = "dropped, its site is blocked"
	outcomeGone    = "not known" // its site has nothing left
)

var unsettledOutcomes = []string{outcomeQueued, outcomeLeased, outcomePaused}

// unsettled says of the seeds of shard k that were not tried yet what their sites
// are.
func unsettled(ctx context.Context, f frontier.Operated, k int, seeds map[string]string) error {
	maker := frontier.NewMaker(f.Layout())
	bySite := map[string][]string{}
	for url, outcome := range seeds {
		if outcome != "" {
			continue
		}
		c, err := maker.Make(url)
		if err != nil {
			return err // it was made of such
		}
		bySite[c.Site] = append(bySite[c.Site], url)
	}
	states, err := statesOf(ctx, f, k, slices.Collect(maps.Keys(bySite)))
	for i := range states {
		for _, url := range bySite[states[i].Site] {
			seeds[url] = siteOutcome(&states[i])
		}
	}
	return err
}

// siteOutcome is the outcome of a seed that was not tried yet.
func siteOutcome(s *frontier.SiteState) string {
	switch {
	case s.Blocked != nil:
		return outcomeBlocked
	case s.Paused != nil:
		return outcomePaused
	case s.Place == frontier.PlaceLeased:
		return outcomeLeased
	case s.Place == frontier.PlaceIdle:
		return outcomeGone
	}
	return outcomeQueued
}

// tops are the sites of a list, with the counts that are known exactly.
func tops(list []frontier.TopSite, exact map[string]frontier.SiteTotals, count func(*frontier.SiteTotals) int64) (out []Top) {
	for _, t := range list {
		top := Top{Site: t.Site, Count: t.Count}
		totals := exact[t.Site]
		if n := count(&totals); n >= t.Count {
			top.Count = n
		} else if t.Count > frontier.TopStep { // the shard has forgotten it
			top.Short = frontier.TopStep
		}
		out = append(out, top)
	}
	return out
}

// firstOf orders tops and bounds them.
func firstOf(list []Top) []Top {
	slices.SortFunc(list, func(a, b Top) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Site, b.Site)) })
	return list[:min(len(list), frontier.TopKept)]
}

// ending says in r how a crawl ended, or that it has not, and what its fetchers did.
func (r *Summary) ending(ctx context.Context, f frontier.Operated, set *frontier.Settings) error {
	short, cancel := context.WithTimeout(ctx, shardWait)
	defer cancel()
	members, errMembers := f.Members(short)
	runs, errRuns := f.Runs(short)
	done, errDone := f.Finished(short)
	if err := errors.Join(errMembers, errRuns, errDone); err != nil {
		r.Ended = "not known: " + err.Error()
		return err
	}
	last := r.fetchers(members, runs)
	t := &r.Total
	left := t.Queued + t.Waiting + t.Open
	urls := fmt.Sprintf("%d URLs are left", left)
	if left == 1 {
		urls = "1 URL is left"
	}
	switch {
	case set.MaxPages > 0 && t.Pages() >= set.MaxPages && left > 0:
		r.Ended = fmt.Sprintf("--max-pages %d is reached, %s", set.MaxPages, urls)
	case done && left == 0:
		r.Ended = "finished: nothing is left"
	case done && t.PausedReady > 0:
		r.Ended = fmt.Sprintf("finished but for paused sites, %s", urls)
	case done:
		r.Ended = fmt.Sprintf("finished, though counters say that %s: see `frontier check`", urls)
	case len(members) > 0:
		r.Ended = "it goes on: " + urls
	case last == nil:
		r.Ended = "nobody works on it, " + urls
	case last.Ended == "":
		r.Ended = fmt.Sprintf("its last fetcher (process %d on %s) vanished without a word, %s", last.PID, last.Host, urls)
	case last.Ended == frontier.EndFinished:
		r.Ended = "nobody works on what came after the last fetcher had finished, " + urls
	default:
		r.Ended = fmt.Sprintf("%s, %s", last.Ended, urls)
	}
	return nil
}

// fetchers counts the runs on record by how they ended, and returns the one that
// was the last to end, nil where none did.
func (r *Summary) fetchers(members, runs []frontier.Member) (last *frontier.Member) {
	live := map[string]bool{}
	r.Fetchers = map[string]int{}
	for i := range members {
		live[members[i].ID] = true
	}
	for i := range runs {
		how := runs[i].Ended
		if how == "" && live[runs[i].ID] {
			how = "at work"
		} else if last == nil {
			last = &runs[i]
		}
		r.Fetchers[cmp.Or(how, "vanished")]++
	}
	return last
}

// sortCounts puts the largest first.
func sortCounts(list []Count) {
	slices.SortFunc(list, func(a, b Count) int { return cmp.Or(cmp.Compare(b.URLs, a.URLs), cmp.Compare(a.Name, b.Name)) })
}
