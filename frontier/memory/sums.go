package memory

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"seine/frontier"
)

// siteTotals is what became of a site.
type siteTotals struct {
	pages, dead int64
	since       int64 // seconds, 0 = nothing yet
	last        string
}

// sum counts a settlement all of whose outcomes took effect.
func (p *shardState) sum(s *site, st *frontier.Settlement) {
	st.EachCounter(func(kind, name, detail string, n int64) { p.addCounter(frontier.CounterName(kind, name, detail), n) })
	for i := range st.Outcomes {
		if o := &st.Outcomes[i]; o.OfSeed() {
			p.keepSeed(o.Facts.Seed, o.Label())
		}
	}
	pages, dead := st.Counted()
	last := st.Last()
	if last == "" && pages+dead == 0 {
		return
	}
	t := &s.siteTotals
	if t.since == 0 {
		t.since = p.now / 1000
	}
	t.pages += pages
	t.dead += dead
	if last != "" && last != t.last {
		p.addCounter(frontier.CounterSite+frontier.LastClass(last), 1)
		if t.last != "" {
			p.addCounter(frontier.CounterSite+frontier.LastClass(t.last), -1)
		}
		t.last = p.word(last)
	}
	p.changed(s)
}

// word is a text as it was met first, so that sites share it.
func (p *shardState) word(text string) string {
	if w, ok := p.words[text]; ok {
		return w
	}
	w := string([]byte(text))
	p.words[w] = w
	return w
}

// addCounter adds to a count, on disk too.
func (p *shardState) addCounter(name string, n int64) {
	if n == 0 {
		return
	}
	sum := p.namedCounters[name]
	if sum == nil {
		sum = new(int64)
		p.namedCounters[strings.Clone(name)] = sum // so that name itself may be a passing one
	}
	*sum += n
	if p.tx != nil {
		p.value = binary.AppendVarint(p.value[:0], *sum)
		p.tx.Set(append(p.newKey(keyCounter), name...), p.value)
	}
}

// NoteSeeds puts seeds on the list of those whose outcome is reported.
func (f *Frontier) NoteSeeds(ctx context.Context, k int, urls []string) error {
	p, err := f.shard(ctx, k, "note seeds")
	if err != nil {
		return err
	}
	p.lock()
	for _, url := range urls {
		if _, known := p.seeds[url]; !known {
			p.keepSeed(url, "")
		}
	}
	return p.unlock(ctx, "note seeds")
}

// keepSeed notes what became of one of the first seeds.
func (p *shardState) keepSeed(url, outcome string) {
	if _, known := p.seeds[url]; !known && len(p.seeds) >= frontier.SeedsKept {
		return
	}
	p.seeds[url] = outcome
	if p.tx != nil {
		p.tx.Set(append(p.newKey(keySeed), url...), []byte(outcome))
	}
}

// forgetTotals keeps what a site that is forgotten counted, if it is among the
// first.
func (p *shardState) forgetTotals(s *site) {
	t := s.siteTotals
	s.siteTotals = siteTotals{}
	for i, n := range []int64{t.pages, t.dead} {
		if n > 0 {
			p.gone[i] = firstOf(append(p.gone[i], frontier.TopSite{Site: s.name, Count: n}))
		}
	}
}

// firstOf orders a list and bounds it; of a site that comes twice the larger count
// stays.
func firstOf(list []frontier.TopSite) []frontier.TopSite {
	slices.SortFunc(list, func(a, b frontier.TopSite) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Site, b.Site))
	})
	seen := make(map[string]bool, len(list))
	list = slices.DeleteFunc(list, func(t frontier.TopSite) bool {
		was := seen[t.Site]
		seen[t.Site] = true
		return was
	})
	return list[:min(len(list), frontier.TopKept)]
}

// Counters reads the counters of a shard. What a former process forgot of sites is not
// among the first of them. Cost: O(sites).
func (f *Frontier) Counters(ctx context.Context, k int) (*frontier.Counters, error) {
	p, err := f.shard(ctx, k, "counters")
	if err != nil {
		return nil, err
	}
	p.lock()
	defer p.mu.Unlock()
	sums := &frontier.Counters{Counts: make(map[string]int64, len(p.namedCounters)), Seeds: maps.Clone(p.seeds)}
	for name, sum := range p.namedCounters {
		if *sum != 0 {
			sums.Counts[name] = *sum
		}
	}
	sums.Pages = p.firstSites(p.gone[0], func(s *site) int64 { return s.siteTotals.pages })
	sums.Dead = p.firstSites(p.gone[1], func(s *site) int64 { return s.siteTotals.dead })
	return sums, nil
}

// firstSites are the sites with the largest counts, and of some that are forgotten.
func (p *shardState) firstSites(gone []frontier.TopSite, count func(*site) int64) []frontier.TopSite {
	list := slices.Clone(gone)
	for _, s := range p.sites {
		n := count(s)
		if n == 0 || len(list) >= frontier.TopKept && n < list[len(list)-1].Count {
			continue
		}
		if list = append(list, frontier.TopSite{Site: s.name, Count: n}); len(list) >= 2*frontier.TopKept {
			list = firstOf(list)
		}
	}
	return firstOf(list)
}

// hasWork reports whether a site is leased, or stands where visits or a time wait.
func (s *site) hasWork() bool { return s.leased != nil || s.place != nowhere && s.place != inIdle }

// SampleSites names the sites of a shard with the longest queues, n at most, of
// those that have work or are leased. Cost: O(sites).
func (f *Frontier) SampleSites(ctx context.Context, k, n int) (sites []string, all bool, err error) {
	p, err := f.shard(ctx, k, "sample sites")
	if err != nil {
		return nil, false, err
	}
	p.lock()
	defer p.mu.Unlock()
	type queue struct {
		site string
		urls int
	}
	var list []queue
	for _, s := range p.sites {
		if !s.hasWork() {
			continue
		}
		q := queue{s.name, len(s.waits)}
		for _, l := range s.queues {
			if l != nil {
				q.urls += l.n
			}
		}
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b queue) int {
		return cmp.Or(cmp.Compare(b.urls, a.urls), cmp.Compare(a.site, b.site))
	})
	all = len(list) <= n
	for _, q := range list[:min(n, len(list))] {
		sites = append(sites, q.site)
	}
	slices.Sort(sites)
	return sites, all, nil
}

// WorkSites names all sites of a shard that have work or are leased, which holds the
// shard for a look at each site that was met.
func (f *Frontier) WorkSites(ctx context.Context, k int) ([]string, error) {
	p, err := f.shard(ctx, k, "work sites")
	if err != nil {
		return nil, err
	}
	p.lock()
	defer p.mu.Unlock()
	var sites []string
	for _, s := range p.sites {
		if s.hasWork() {
			sites = append(sites, s.name)
		}
	}
	slices.Sort(sites)
	return sites, nil
}

// WalledSites names the sites of a shard that the fleet backs off from, or did, since walls
// answer there.
func (f *Frontier) WalledSites(ctx context.Context, k int) ([]string, error) {
	p, err := f.shard(ctx, k, "walled sites")
	if err != nil {
		return nil, err
	}
	p.lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.walled)), nil
}

// shown is the totals of a site as it is shown.
func (t *siteTotals) shown() (shown frontier.SiteTotals) {
	if t.since == 0 {
		return shown
	}
	return frontier.SiteTotals{Pages: t.pages, Dead: t.dead, Last: t.last, Since: time.Unix(t.since, 0).UTC()}
}
