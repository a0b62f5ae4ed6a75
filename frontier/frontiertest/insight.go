package frontiertest

import (
	"fmt"
	"time"

	"seine/frontier"
)

// state is what the shard of a site keeps of it.
func (k *kit) state(site string) frontier.SiteState {
	k.Helper()
	list, err := k.f.SiteStates(k.ctx, k.shard(site), []string{"other.example", site})
	k.must(err)
	same(k, "states", len(list), 2)
	same(k, "of", list[1].Site, site)
	return list[1]
}

// insightStates: what is kept of a site is returned whatever its state.
func insightStates(k *kit) {
	const site = "a.example"
	yes, limit := true, int64(9)
	same(k, "unknown", k.state(site), frontier.SiteState{Site: site, Place: frontier.PlaceIdle})
	k.alter(site, frontier.SiteChange{Cap: &limit})
	k.fill(site, "p", 1, 4)
	k.fill(site, "q", 2, 1)
	s := k.state(site)
	same(k, "ready", s.Place, frontier.PlaceReady)
	same(k, "class", s.Class, 1)
	same(k, "queued", s.Queued, [4]int64{0, 4, 1, 0})
	same(k, "due", s.Due <= 0, true)
	same(k, "cap", s.Cap, 9)
	same(k, "admitted", s.Admitted, 5)
	v := k.visitURLs(site, 3)
	s = k.state(site)
	same(k, "leased", s.Place, frontier.PlaceLeased)
	same(k, "lease", s.Lease, v.Lease)
	same(k, "open", s.Open, 3)
	same(k, "left", s.Left > lease/2 && s.Left <= lease, true)
	free := &frontier.Release{Remain: 30 * time.Second, Delay: 20 * time.Second, Why: "adaptive", Failures: 2}
	outcomes := all(v, frontier.Done)
	outcomes[0].Kind, outcomes[0].NotBefore = frontier.Retry, time.Minute
	k.settle(v, free, outcomes...)
	s = k.state(site)
	same(k, "delay", s.Delay, 20*time.Second)
	same(k, "why", s.Why, "adaptive")
	same(k, "failures", s.Failures, 2)
	same(k, "waiting", s.Waiting, 1)
	same(k, "clock", s.Clock > 20*time.Second && s.Clock <= 31*time.Second, true)
	same(k, "due then", s.Due > 20*time.Second && s.Due <= 31*time.Second, true)
	k.alter(site, frontier.SiteChange{Paused: &yes, Reason: "slow"})
	s = k.state(site)
	same(k, "paused", s.Place, frontier.PlacePaused)
	same(k, "reason", s.Paused != nil && s.Paused.Reason == "slow" && s.Blocked == nil, true)
	k.alter(site, frontier.SiteChange{Blocked: &yes, Reason: "rude"})
	s = k.state(site)
	same(k, "blocked", s.Blocked != nil && s.Blocked.Reason == "rude" && s.Blocked.Blocked, true)
	same(k, "nothing queued", s.Queued, [4]int64{})
	same(k, "the block dropped them", s.Dropped != nil && s.Dropped.By == frontier.DropBlock && !s.Dropped.Since.IsZero(), true)
	same(k, "idle", s.Place, frontier.PlaceIdle)
}

// insightEntries: entries are read where they stand, from either end of a queue.
func insightEntries(k *kit) {
	const site = "a.example"
	n := int64(450)
	if k.b.MaxList > 0 {
		n = min(n, int64(k.b.MaxList))
	}
	p := func(i int64) string { return fmt.Sprint("p", i) }
	k.fill(site, "p", 1, int(n))
	read := func(at frontier.EntryPlace, offset, count int64) (names []string) {
		k.Helper()
		at.Site = site
		list, err := k.f.Entries(k.ctx, k.shard(site), at, offset, count)
		k.must(err)
		for _, e := range list {
			names = append(names, e.URL[len("https://a.example/"):])
		}
		return names
	}
	queue := frontier.EntryPlace{Class: 1}
	sameList(k, "first", read(queue, 0, 2), "p0", "p1")
	sameList(k, "in the middle", read(queue, n/2, 2), p(n/2), p(n/2+1))
	sameList(k, "last", read(queue, -2, 2), p(n-2), p(n-1))
	sameList(k, "past the end", read(queue, n-1, 9), p(n-1))
	same(k, "before the first", len(read(queue, -n-3, 3)), 0)
	sameList(k, "over the first", read(queue, -n-3, 5), "p0", "p1")
	same(k, "bounded", int64(len(read(queue, 0, 1000))), min(n, frontier.EntriesMost))
	same(k, "another class", len(read(frontier.EntryPlace{Class: 2}, 0, 9)), 0)
	all := map[string]bool{}
	for at := int64(-frontier.EntriesMost); ; at -= frontier.EntriesMost {
		page := read(queue, at, frontier.EntriesMost)
		for _, name := range page {
			all[name] = true
		}
		if len(page) == 0 {
			break
		}
	}
	same(k, "all from the end", int64(len(all)), n)

	v := k.visitURLs(site, 3)
	same(k, "in the visit", fmt.Sprint(len(read(frontier.EntryPlace{Kind: frontier.InVisit, Token: v.Token}, 0, 9))), "3")
	k.settle(v, &frontier.Release{}, frontier.Outcome{Index: 1, Kind: frontier.Retry, NotBefore: time.Hour},
		frontier.Outcome{Index: 2, Kind: frontier.Retry, NotBefore: time.Minute}, frontier.Outcome{Index: 3, Kind: frontier.Done})
	sameList(k, "first due first", read(frontier.EntryPlace{Kind: frontier.InRetries}, 0, 9), "p1", "p0")
	list, err := k.f.Entries(k.ctx, k.shard(site), frontier.EntryPlace{Site: site, Kind: frontier.InRetries}, 1, 1)
	k.must(err)
	same(k, "left", list[0].Left > 59*time.Minute && list[0].Left <= time.Hour && list[0].Attempts == 1, true)
	same(k, "nothing in a visit that is over", len(read(frontier.EntryPlace{Kind: frontier.InVisit, Token: v.Token}, 0, 9)), 0)
}

// insightKnows: what was admitted is known, whatever became of it.
func insightKnows(k *kit) {
	c := k.url("a.example", "p0")
	knows := func() bool {
		yes, err := k.f.Knows(k.ctx, k.shard("a.example"), c.Fingerprint)
		k.must(err)
		return yes
	}
	same(k, "new", knows(), false)
	k.fill("a.example", "p", 1, 1)
	same(k, "queued", knows(), true)
	k.drain()
	same(k, "fetched", knows(), true)
}

// insightSums: what is settled is counted once, with its site and its seed; a
// repeat, and what is gone, counts nothing.
func insightSums(k *kit) {
	const site = "a.example"
	k.fill(site, "p", 1, 8)
	v := k.visitURLs(site, 6)
	page := func(status int, media string, bytes int64) *frontier.Facts {
		return &frontier.Facts{Status: status, Media: media, Bytes: bytes, Links: 10, Known: 4, Refused: [frontier.Reasons]uint32{1: 3, 4: 1}}
	}
	seed := page(200, "html", 100)
	seed.Seed, seed.Withheld = "https://a.example/p0", "ai_train"
	lost := &frontier.Facts{Seed: "https://a.example/p4"}
	waits := &frontier.Facts{Seed: "https://a.example/p3"}
	for range 2 {
		k.must(k.f.NoteSeeds(k.ctx, k.shard(site), []string{"https://a.example/p0", "https://a.example/p3", "https://a.example/p7"}))
	}
	outcomes := []frontier.Outcome{
		{Index: 1, Facts: seed},
		{Index: 2, Facts: page(200, "html", 50)},
		{Index: 3, Facts: page(404, "", 7)},
		{Index: 4, Kind: frontier.Retry, NotBefore: time.Hour, Cause: "timeout", Facts: waits},
		{Index: 5, Kind: frontier.Dead, Cause: "dns", Facts: lost},
	}
	for range 2 {
		k.settle(v, &frontier.Release{}, outcomes...)
	}
	k.settle(v, nil, frontier.Outcome{Index: 6, Kind: frontier.Requeue})
	counters := func() *frontier.Counters {
		k.Helper()
		s, err := k.f.Counters(k.ctx, k.shard(site))
		k.must(err)
		for name, n := range s.Counts {
			if n == 0 {
				delete(s.Counts, name)
			}
		}
		return s
	}
	want := map[string]int64{
		"page:200:html": 2, "bytes:200:html": 150, "page:404": 1, "bytes:404": 7, "retry:timeout": 1, "gone:dns": 1,
		"links": 30, "known": 12, "refused:scope": 9, "refused:extension": 3, "seed:200": 1, "seed:dns": 1, "site:dns": 1, "withheld:ai_train": 1,
	}
	got := counters()
	same(k, "counts", fmt.Sprint(got.Counts), fmt.Sprint(want))
	same(k, "seeds", fmt.Sprint(got.Seeds), fmt.Sprint(map[string]string{"https://a.example/p0": "200", "https://a.example/p3": "waiting: timeout",
		"https://a.example/p4": "dns", "https://a.example/p7": ""}))
	k.must(k.f.NoteSeeds(k.ctx, k.shard(site), []string{"https://a.example/p0", "https://a.example/p3"}))
	same(k, "an outcome that is counted", counters().Seeds["https://a.example/p0"]+counters().Seeds["https://a.example/p3"], "200waiting: timeout")
	sameList(k, "most pages", got.Pages, frontier.TopSite{Site: site, Count: 3})
	sameList(k, "most dead", got.Dead, frontier.TopSite{Site: site, Count: 1})
	t := k.state(site).Totals
	same(k, "its totals", fmt.Sprintln(t.Pages, t.Dead, t.Last, t.Since.IsZero()), "3 1 dns false\n")

	k.advance(claimed)
	v = k.visitURLs(site, 1)
	expired := k.expire(site, v.Token)
	same(k, "reaped", k.reap(expired), 1)
	k.settle(v, nil, frontier.Outcome{Index: 1, Facts: page(200, "html", 1)})
	same(k, "what is gone", counters().Counts["page:200:html"], 2)
	k.advance(claimed)
	v = k.visitURLs(site, 1)
	k.settle(v, &frontier.Release{}, frontier.Outcome{Index: 1, Facts: page(503, "", 0), Kind: frontier.Recrawl, NotBefore: time.Hour, Next: &frontier.Next{Entry: v.Items[0].Entry}})
	s := counters()
	same(k, "a site has one last answer", fmt.Sprint(s.Counts["site:dns"], s.Counts["site:5xx"], s.Counts["page:503"]), "0 1 1")
	k.advance(claimed)
	v = k.visitURLs(site, 1)
	k.settle(v, &frontier.Release{}, frontier.Outcome{Index: 1, Kind: frontier.Retry, NotBefore: time.Hour, Cause: "status", Facts: &frontier.Facts{Status: 429}})
	s = counters()
	same(k, "a refusal is counted by its status", fmt.Sprint(s.Counts["retry:status:429"], s.Counts["site:4xx"], s.Counts["site:5xx"], s.Counts["page:429"]), "1 1 0 0")
	same(k, "and is the last answer", k.state(site).Totals.Last, "429")
	for i := range frontier.SeedsKept {
		k.must(k.f.NoteSeeds(k.ctx, k.shard(site), []string{fmt.Sprintf("https://a.example/seed/%d", i)}))
	}
	same(k, "seeds are bounded", len(counters().Seeds), frontier.SeedsKept)
}

// insightSample: sites with work are named.
func insightSample(k *kit) {
	k.fill("a.example", "p", 1, 2)
	k.fill("b.example", "p", 1, 1)
	k.fill("c.example", "p", 1, 1)
	k.finish(k.visitURLs("c.example", 1))
	k.advance(claimed)
	k.visitURLs("b.example", 1)
	found := map[string]bool{}
	for shard := range k.f.Shards() {
		sites, all, err := k.f.SampleSites(k.ctx, shard, 10)
		k.must(err)
		same(k, "all", all, true)
		every, err := k.f.WorkSites(k.ctx, shard)
		k.must(err)
		same(k, "every", fmt.Sprint(every), fmt.Sprint(sites))
		for _, s := range sites {
			found[s] = true
		}
	}
	same(k, "sites", fmt.Sprint(found), fmt.Sprint(map[string]bool{"a.example": true, "b.example": true}))
	sites, all, err := k.f.SampleSites(k.ctx, k.shard("a.example"), 0)
	k.must(err)
	same(k, "none", fmt.Sprint(len(sites), all), "0 false")
}
