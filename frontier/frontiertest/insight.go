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

// insightStates: what is kept of a site is told wherever it stands.
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
	v := k.lend(site, 3)
	s = k.state(site)
	same(k, "lent", s.Place, frontier.PlaceLent)
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
	same(k, "held", s.Place, frontier.PlaceHeld)
	same(k, "reason", s.Paused != nil && s.Paused.Reason == "slow" && s.Blocked == nil, true)
	k.alter(site, frontier.SiteChange{Blocked: &yes, Reason: "rude"})
	s = k.state(site)
	same(k, "blocked", s.Blocked != nil && s.Blocked.Reason == "rude" && s.Blocked.Blocked, true)
	same(k, "nothing queued", s.Queued, [4]int64{})
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

	v := k.lend(site, 3)
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
