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
		sums, err := f.Sums(ctx, k)
		if err != nil {
			return err
		}
		exact, err := exactly(ctx, f, k, sums)
		if err != nil {
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
		r.Largest = append(r.Largest, tops(sums.Pages, exact, func(t *frontier.Tally) int64 { return t.Pages })...)
		r.Deadest = append(r.Deadest, tops(sums.Dead, exact, func(t *frontier.Tally) int64 { return t.Dead })...)
		return nil
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.Total = frontier.Total(shards)
	r.Seeds.Whole = r.Seeds.Whole && r.Unread == nil
	r.count(counts)
	for _, url := range slices.Sorted(maps.Keys(seeds)) {
		r.Seeds.List = append(r.Seeds.List, Seed{url, seeds[url]})
	}
	r.Largest, r.Deadest = firstOf(r.Largest), firstOf(r.Deadest)
	if r.Began, err = f.Began(ctx); err != nil {
		return nil, err
	}
	r.Ended, err = ending(ctx, f, &r.Total, settings)
	if err != nil && r.Unread == nil {
		return nil, err
	}
	return r, nil
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
		case frontier.SumPage:
			of(codes, code).URLs += n
			if hasKind {
				of(media, kindOf).URLs += n
			}
		case frontier.SumBytes:
			of(codes, code).Bytes += n
			r.Bytes += n
			if hasKind {
				of(media, kindOf).Bytes += n
			}
		case frontier.SumDead:
			r.Causes = append(r.Causes, Count{Name: rest, URLs: n})
		case frontier.SumRetry:
			r.Retries = append(r.Retries, Count{Name: rest, URLs: n})
		case frontier.SumSite:
			r.Sites = append(r.Sites, Count{Name: rest, URLs: n})
		case frontier.SumRefused:
			r.Links.Refused = append(r.Links.Refused, Count{Name: rest, URLs: n})
		case frontier.SumSeed:
			r.Seeds.Fates = append(r.Seeds.Fates, Count{Name: rest, URLs: n})
			r.Seeds.Total += n
		case frontier.SumLinks:
			r.Links.Found = n
		case frontier.SumKnown:
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
	for _, list := range []*[]Count{&r.Codes, &r.Media, &r.Causes, &r.Retries, &r.Sites, &r.Links.Refused, &r.Seeds.Fates} {
		*list = slices.DeleteFunc(*list, func(c Count) bool { return c.URLs == 0 })
		slices.SortFunc(*list, func(a, b Count) int { return cmp.Or(cmp.Compare(b.URLs, a.URLs), cmp.Compare(a.Name, b.Name)) })
	}
}

// exactly reads what a shard keeps now of the sites of its lists.
func exactly(ctx context.Context, f frontier.Operated, k int, sums *frontier.Sums) (map[string]frontier.Tally, error) {
	var names []string
	for _, list := range [][]frontier.TopSite{sums.Pages, sums.Dead} {
		for _, t := range list {
			names = append(names, t.Site)
		}
	}
	slices.Sort(names)
	tallies := make(map[string]frontier.Tally)
	for part := range slices.Chunk(slices.Compact(names), frontier.SitesMost) {
		states, err := f.SiteStates(ctx, k, part)
		if err != nil {
			return nil, err
		}
		for _, s := range states {
			tallies[s.Site] = s.Tally
		}
	}
	return tallies, nil
}

// tops are the sites of a list, with the counts that are known exactly.
func tops(list []frontier.TopSite, exact map[string]frontier.Tally, count func(*frontier.Tally) int64) (out []Top) {
	for _, t := range list {
		top := Top{Site: t.Site, Count: t.Count}
		tally := exact[t.Site]
		if n := count(&tally); n >= t.Count {
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

// ending says how a crawl ended, or that it has not.
func ending(ctx context.Context, f frontier.Operated, t *frontier.ShardStats, set *frontier.Settings) (string, error) {
	left := t.Queued + t.Waiting + t.Open
	short, cancel := context.WithTimeout(ctx, shardWait)
	defer cancel()
	members, errMembers := f.Members(short)
	done, errDone := f.Finished(short)
	if err := errors.Join(errMembers, errDone); err != nil {
		return "not known: " + err.Error(), err
	}
	switch {
	case set.MaxPages > 0 && t.Done+t.Dead >= set.MaxPages && left > 0:
		return fmt.Sprintf("--max-pages %d is reached, %d URLs are left", set.MaxPages, left), nil
	case done && left == 0:
		return "finished: nothing is left", nil
	case done:
		return fmt.Sprintf("finished but for %d URLs of paused sites", left), nil
	case len(members) == 0:
		return fmt.Sprintf("nobody works on it, %d URLs are left", left), nil
	}
	return fmt.Sprintf("it goes on: %d URLs are left", left), nil
}
