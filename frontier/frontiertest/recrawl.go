package frontiertest

import (
	"fmt"
	"time"

	"seine/frontier"
)

// recrawlOutcome is an outcome that has a URL of a visit recrawled.
func recrawlOutcome(v frontier.Visit, i int, in time.Duration) frontier.Outcome {
	it := v.Items[i]
	e := it.Entry
	e.Priority, e.Attempts, e.Lost = 3, 0, 0
	e.Last = frontier.Fetched{Interval: in, At: 1_800_000_000, Modified: 1_700_000_000, ETag: `W/"x"`, Digest: 1 << 63}
	return frontier.Outcome{Index: it.Index, Kind: frontier.Recrawl, NotBefore: in, Next: &frontier.Next{Entry: e, Key: urlKey(v.Site, e.URL)}}
}

// urlKey is what a site knows a URL by.
func urlKey(site, url string) uint64 {
	return urlOf(site, url[len("https://")+len(site)+1:]).Fingerprint.Key
}

// recrawlAll settles all of a visit as done and to be recrawled.
func (k *kit) recrawlAll(v frontier.Visit, in time.Duration) {
	k.Helper()
	var outcomes []frontier.Outcome
	for i := range v.Items {
		outcomes = append(outcomes, recrawlOutcome(v, i, in))
	}
	for i, ok := range k.settle(v, &frontier.Release{}, outcomes...) {
		same(k, "outcome of "+v.Items[i].URL, ok, true)
	}
}

// recrawlWaits: what is to be recrawled counts as done, waits for its time, and
// comes back as it was settled, in the last class; an outcome counts once.
func recrawlWaits(k *kit) {
	k.fill("a.example", "p", 1, 2)
	v := k.visitURLs("a.example", 2)
	k.advance(time.Second) // retries and what is recrawled wait from when they are settled
	o := recrawlOutcome(v, 0, time.Minute)
	sameList(k, "one to be recrawled, one done", k.settle(v, &frontier.Release{}, o, frontier.Outcome{Index: v.Items[1].Index}), true, true)
	for range 2 {
		sameList(k, "repeated", k.settle(v, nil, o), false)
	}
	s := k.stats()
	same(k, "recrawls", s.Recrawls, 1)
	same(k, "done", s.Done, 2)
	same(k, "waiting for a retry", s.Waiting, 0)
	finished, err := k.f.Finished(k.ctx)
	k.must(err)
	same(k, "finished", finished, false)
	k.advance(59 * time.Second)
	k.notDue("a.example")
	k.advance(time.Second + 2*time.Millisecond)
	t := k.ticket("a.example")
	same(k, "class", t.Class, 3)
	v = k.visit(frontier.VisitLimits{URLs: 9}, t)[0]
	same(k, "URLs", len(v.Items), 1)
	same(k, "entry", v.Items[0].Entry, o.Next.Entry)
	s = k.stats()
	same(k, "recrawls while leased", s.Recrawls, 0)
	same(k, "recrawled", s.Recrawled, 1)
	same(k, "open", s.Open, 1)
	k.finish(v)
	s = k.stats()
	same(k, "ready when it was fetched for good", s.Ready+s.Recrawls, 0)
}

// recrawlOnce: a site has a URL once among those to be recrawled, the last way
// that it was settled.
func recrawlOnce(k *kit) {
	c := k.url("a.example", "p")
	k.admit(c)
	k.recrawlAll(k.visitURLs("a.example", 1), time.Hour)
	c.Refetch = "request"
	k.admit(c)
	k.advance(claimed)
	k.recrawlAll(k.visitURLs("a.example", 1), time.Minute)
	same(k, "recrawls", k.stats().Recrawls, 1)
	k.advance(2 * time.Minute)
	sameList(k, "by the last", paths(k.visitURLs("a.example", 9)), "p")
	same(k, "then", k.stats().Recrawls, 0)
}

// recrawlOrder: URLs that are new come first, unless a share is left to those that
// are recrawled; a retry goes before these.
func recrawlOrder(k *kit) {
	k.fill("a.example", "old", 1, 40)
	k.recrawlAll(k.visitURLs("a.example", 40), time.Second)
	k.fill("a.example", "new", 2, 40)
	k.advance(claimed)
	acquire := func(urls, share int) (old, fresh int) {
		k.Helper()
		v := k.visit(frontier.VisitLimits{URLs: urls, Share: share}, k.ticket("a.example"))[0]
		for _, path := range paths(v) {
			if path[0] == 'o' {
				old++
			} else {
				fresh++
			}
		}
		k.finish(v)
		k.advance(claimed)
		return old, fresh
	}
	old, fresh := acquire(4, 0)
	same(k, "old without a share", old, 0)
	same(k, "new without a share", fresh, 4)
	old, fresh = acquire(4, 50)
	same(k, "old with half", old, 2)
	same(k, "new with half", fresh, 2)
	old = 0
	for range 8 { // a share of less than one URL comes about by turns
		n, fresh := acquire(1, 25)
		old += n
		same(k, "one a visit", n+fresh, 1)
	}
	same(k, "a quarter of eight visits", old, 2)
	for k.stats().Queued > 0 {
		acquire(10, 0)
	}
	old, _ = acquire(100, 0)
	same(k, "what is left", old > 20, true)
}

// recrawlLost: what was leased to be recrawled and lost comes back as any URL does.
func recrawlLost(k *kit) {
	k.fill("a.example", "p", 1, 2)
	k.recrawlAll(k.visitURLs("a.example", 2), time.Second)
	k.advance(claimed)
	v := k.visitURLs("a.example", 2)
	same(k, "reaped", k.reap(k.expire("a.example", v.Token)), 1)
	s := k.stats()
	same(k, "queued", s.Queued, 2)
	same(k, "lost", s.Lost, 2)
	k.advance(claimed)
	v = k.visitURLs("a.example", 2)
	sameList(k, "the first is leased alone", paths(v), paths(v)[0])
	same(k, "what is known of its last fetch", v.Items[0].Last.ETag, `W/"x"`)
	k.settle(v, &frontier.Release{}, all(v, frontier.Requeue)...)
	k.advance(claimed)
	k.recrawlAll(k.visitURLs("a.example", 1), time.Hour)
	k.advance(claimed)
	k.finish(k.visitURLs("a.example", 2))
	same(k, "recrawls", k.stats().Recrawls, 1)
}

// recrawlBlocked: a blocked site forgets what was to be recrawled, and a paused
// one keeps it.
func recrawlBlocked(k *kit) {
	yes, no := true, false
	k.fill("a.example", "p", 1, 3)
	v := k.visitURLs("a.example", 2)
	k.recrawlAll(v, time.Second)
	k.advance(claimed)
	k.alter("a.example", frontier.SiteChange{Paused: &yes})
	k.notDue("a.example")
	k.alter("a.example", frontier.SiteChange{Paused: &no})
	v = k.visitURLs("a.example", 1)
	k.alter("a.example", frontier.SiteChange{Blocked: &yes})
	sameList(k, "an outcome of a blocked site", k.settle(v, nil, recrawlOutcome(v, 0, time.Second)), false)
	s := k.stats()
	same(k, "recrawls", s.Recrawls, 0)
	same(k, "ready", s.Ready, 0)
	k.alter("a.example", frontier.SiteChange{Blocked: &no})
	k.advance(claimed)
	k.notDue("a.example")
}

// recrawlRenewed: a URL can be fetched sooner than it would be, never later.
func recrawlRenewed(k *kit) {
	k.fill("a.example", "p", 1, 3)
	k.fill("b.example", "p", 1, 1)
	k.recrawlAll(k.visitURLs("a.example", 3), time.Hour)
	key := func(i int) uint64 { return urlKey("a.example", fmt.Sprintf("https://a.example/p%d", i)) }
	renew := func(renewals ...frontier.Renewal) {
		k.Helper()
		k.must(k.f.Renew(k.ctx, k.shard("a.example"), renewals))
	}
	k.advance(claimed)
	for range 2 {
		renew(frontier.Renewal{Site: "a.example", Key: key(1)}, frontier.Renewal{Site: "a.example", Key: key(2), Within: time.Minute},
			frontier.Renewal{Site: "a.example", Key: key(0), Within: 2 * time.Hour}, frontier.Renewal{Site: "a.example", Key: 7})
	}
	k.advance(2 * time.Millisecond)
	v := k.visitURLs("a.example", 9)
	sameList(k, "at once", paths(v), "p1")
	renew(frontier.Renewal{Site: "a.example", Key: key(2)}) // its site is leased
	k.notDue("a.example")
	k.finish(v)
	k.advance(claimed)
	v = k.visitURLs("a.example", 9)
	sameList(k, "when the site is free", paths(v), "p2")
	k.finish(v)
	k.advance(50 * time.Minute)
	k.notDue("a.example")
	k.advance(11 * time.Minute)
	sameList(k, "when it would be anyway", paths(k.visitURLs("a.example", 9)), "p0")
	same(k, "recrawls", k.stats().Recrawls, 0)
}
