package frontiertest

import (
	"fmt"
	"time"

	"seine/frontier"
)

// reapLostReply: a visit whose reply never came returns by its lease.
func reapLostReply(k *kit) {
	k.fill("a.example", "p", 1, 3)
	lost := k.visitURLs("a.example", 2) // the fetcher did not see it
	k.notDue("a.example")
	e := k.expire("a.example", lost.Token)
	same(k, "site", e.Site, "a.example")
	same(k, "named again until reaped", k.expire("a.example", lost.Token), e)
	same(k, "reaped", k.reap(e), 1)
	for range 2 {
		same(k, "reaped again", k.reap(e), 0)
	}
	s := k.stats()
	same(k, "lost", s.Lost, 2)
	same(k, "leases", s.Leases, 0)
	same(k, "open", s.Open, 0)
	same(k, "queued", s.Queued, 3)
	same(k, "next is the delay", k.tick("a.example", frontier.TickRequest{}).Next > 0, true)
	k.advance(claimed)
	v := k.visitURLs("a.example", 9)
	sameList(k, "again", paths(v), "p0")
	same(k, "losses", v.Items[0].Lost, 1)
}

// reapRefused: a lease that was extended since it was named is not reaped, nor
// one that has not expired.
func reapRefused(k *kit) {
	k.fill("a.example", "p", 1, 2)
	v := k.visitURLs("a.example", 1)
	e := k.expire("a.example", v.Token)
	reply := k.tick("a.example", frontier.TickRequest{Extend: []frontier.Lease{v.Lease}, MaxExpired: 9})
	same(k, "gone", len(reply.Gone), 0)
	same(k, "expired", len(reply.Expired), 0)
	same(k, "reaped", k.reap(e), 0)
	later := k.expire("a.example", v.Token)
	same(k, "the old deadline", k.reap(e), 0)
	wrong := later
	wrong.Token = "none"
	same(k, "another token", k.reap(wrong), 0)
	k.finish(v)
	same(k, "a settled lease", k.reap(later), 0)

	k.advance(claimed)
	v = k.visitURLs("a.example", 1)
	k.advance(lease / 2)
	later = frontier.Expired{Lease: v.Lease, Deadline: later.Deadline + lease.Milliseconds()}
	same(k, "a lease that lives", k.reap(later), 0)
	k.finish(v)
}

// reapThenSettle: what a dead fetcher still says is gone, also when the site
// is leased to another.
func reapThenSettle(k *kit) {
	k.fill("a.example", "p", 1, 2)
	v := k.visitURLs("a.example", 2)
	k.reap(k.expire("a.example", v.Token))
	before := k.stats()
	late := func() {
		k.Helper()
		for _, kind := range []frontier.Kind{frontier.Done, frontier.Retry, frontier.Dead, frontier.Requeue} {
			sameList(k, "late", k.settle(v, &frontier.Release{Remain: time.Hour}, all(v, kind)...), false, false)
		}
	}
	late()
	same(k, "stats", k.stats(), before)
	sameList(k, "gone", k.tick("a.example", frontier.TickRequest{Extend: []frontier.Lease{v.Lease}}).Gone, v.Lease)
	k.advance(claimed)
	next := k.visitURLs("a.example", 1)
	before = k.stats()
	late()
	same(k, "stats while leased again", k.stats(), before)
	k.finish(next)
	k.advance(claimed)
	sameList(k, "the other", paths(k.visitURLs("a.example", 9)), "p1")
}

// reapLostAlone: URLs whose fetcher was lost are leased alone, and are dead with
// cause lost after the third time; their neighbours live.
func reapLostAlone(k *kit) {
	k.fill("a.example", "p", 1, 4)
	v := k.visitURLs("a.example", 3)
	k.reap(k.expire("a.example", v.Token))
	poison := func(want uint8) {
		k.Helper()
		k.advance(claimed)
		v := k.visitURLs("a.example", 9)
		sameList(k, "alone", paths(v), "p0")
		same(k, "losses", v.Items[0].Lost, want)
		k.reap(k.expire("a.example", v.Token))
	}
	poison(1)
	same(k, "dead before the third", k.stats().Dead, 0)
	poison(2)
	dead, err := k.f.DeadLetters(k.ctx, k.shard("a.example"), "lost", 0, 9)
	k.must(err)
	same(k, "dead", len(dead), 1)
	same(k, "letter", dead[0].URL, "https://a.example/p0")
	same(k, "its losses", dead[0].Lost, 3)
	for _, want := range []string{"p1", "p2"} {
		k.advance(claimed)
		v := k.visitURLs("a.example", 9)
		sameList(k, "neighbour alone", paths(v), want)
		k.finish(v)
	}
	k.advance(claimed)
	sameList(k, "never lost", paths(k.visitURLs("a.example", 9)), "p3")
	s := k.stats()
	same(k, "done", s.Done, 2)
	same(k, "lost", s.Lost, 5)
}

// reapSafe: a URL that dies with its next fetcher is not leased to who must not
// risk that; its site is due again in a second.
func reapSafe(k *kit) {
	k.fill("a.example", "p", 1, 2)
	safe := frontier.VisitLimits{URLs: 9, Safe: true}
	for losses := range uint8(2) {
		visits := k.visit(safe, k.ticket("a.example"))
		same(k, "safe visits", len(visits), 1)
		same(k, "losses", visits[0].Items[0].Lost, losses)
		same(k, "last chance", visits[0].LastChance(), false)
		k.reap(k.expire("a.example", visits[0].Token))
		k.advance(claimed)
	}
	for range 2 {
		before := k.stats()
		t := k.ticket("a.example")
		same(k, "safe visits at the last chance", len(k.visit(safe, t)), 0)
		same(k, "visits of its ticket, now void", len(k.visit(frontier.VisitLimits{URLs: 9}, t)), 0)
		same(k, "stats", k.stats(), before)
		k.notDue("a.example")
		k.advance(time.Second)
	}
	v := k.visitURLs("a.example", 9)
	sameList(k, "leased", paths(v), "p0")
	same(k, "last chance", v.LastChance(), true)
	k.finish(v)
	k.advance(claimed)
	same(k, "safe visits afterwards", len(k.visit(safe, k.ticket("a.example"))), 1)
}

// reapOneChance: of URLs that die with their next fetcher one call leases one.
func reapOneChance(k *kit) {
	var sites []string
	for i := 0; len(sites) < 3; i++ { // of one shard
		if site := fmt.Sprintf("s%d.example", i); k.shard(site) == k.shard("s0.example") {
			sites = append(sites, site)
			k.fill(site, "p", 1, 1)
		}
	}
	for range 2 {
		for _, site := range sites {
			k.reap(k.expire(site, k.visitURLs(site, 1).Token))
		}
		k.advance(claimed)
	}
	for n := range sites {
		due := k.tick(sites[0], frontier.TickRequest{Want: 9}).Due
		same(k, "due", len(due), len(sites)-n)
		visits := k.visit(frontier.VisitLimits{URLs: 9}, due...)
		same(k, "visits", len(visits), 1)
		same(k, "last chance", visits[0].LastChance(), true)
		k.finish(visits[0])
		k.advance(claimed)
	}
}

// reapLossCleared: any outcome forgets that a fetcher was lost.
func reapLossCleared(k *kit) {
	k.fill("a.example", "p", 1, 1)
	for _, kind := range []frontier.Kind{frontier.Requeue, frontier.Retry, frontier.Dead} {
		for losses := range uint8(2) {
			v := k.visitURLs("a.example", 9)
			same(k, "losses", v.Items[0].Lost, losses)
			k.reap(k.expire("a.example", v.Token))
			k.advance(claimed)
		}
		v := k.visitURLs("a.example", 9)
		same(k, "losses before the outcome", v.Items[0].Lost, 2)
		k.settle(v, &frontier.Release{}, frontier.Outcome{Index: v.Items[0].Index, Kind: kind, Cause: "timeout"})
		k.advance(claimed)
	}
	dead, err := k.f.DeadLetters(k.ctx, k.shard("a.example"), "timeout", 0, 9)
	k.must(err)
	same(k, "dead", len(dead), 1)
	same(k, "losses of the dead letter", dead[0].Lost, 0)
}

// reapFreed: the reap of a visit whose site was freed leaves the site to whom
// it is leased now.
func reapFreed(k *kit) {
	k.fill("a.example", "p", 1, 3)
	first := k.visitURLs("a.example", 2)
	k.settle(first, &frontier.Release{}, frontier.Outcome{Index: first.Items[0].Index})
	k.advance(claimed)
	second := k.visitURLs("a.example", 1)
	for range 7 {
		k.advance(lease / 6)
		k.tick("a.example", frontier.TickRequest{Extend: []frontier.Lease{second.Lease}})
	}
	same(k, "reaped", k.reap(k.expire("a.example", first.Token)), 1)
	k.notDue("a.example")
	same(k, "second", len(k.tick("a.example", frontier.TickRequest{Extend: []frontier.Lease{second.Lease}}).Gone), 0)
	k.finish(second)
	k.advance(claimed)
	sameList(k, "left", paths(k.visitURLs("a.example", 9)), "p1")
}

// reapDelayOfRule: a site whose first fetcher was lost keeps the delay that a
// rule gives it, though no visit has left it one yet.
func reapDelayOfRule(k *kit) {
	k.changeSettings(func(s *frontier.Settings) {
		s.Sites = []frontier.SiteRule{{Match: "a.example", Delay: new(time.Minute)}, {Match: "*.example", Delay: new(time.Hour)}}
	})
	k.fill("a.example", "p", 1, 1)
	v := k.visitURLs("a.example", 1)
	same(k, "reaped", k.reap(k.expire("a.example", v.Token)), 1)
	k.advance(time.Minute - time.Second)
	k.notDue("a.example")
	k.advance(2 * time.Second)
	k.ticket("a.example")
}
