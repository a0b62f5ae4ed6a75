package frontiertest

import (
	"time"

	"seine/frontier"
)

// settleRepeated: an outcome counts once; what is not open is gone.
func settleRepeated(k *kit) {
	k.fill("a.example", "p", 1, 5)
	v := k.visitURLs("a.example", 3)
	at := func(i int, kind frontier.Kind) frontier.Outcome {
		return frontier.Outcome{Index: v.Items[i].Index, Kind: kind, Cause: "timeout"}
	}
	sameList(k, "first", k.settle(v, nil, at(0, frontier.Done), at(1, frontier.Retry)), true, true)
	for range 2 {
		sameList(k, "repeated", k.settle(v, nil, at(0, frontier.Done), at(1, frontier.Retry)), false, false)
	}
	sameList(k, "as something else", k.settle(v, nil, at(0, frontier.Dead), at(1, frontier.Requeue)), false, false)
	sameList(k, "unknown index", k.settle(v, nil, frontier.Outcome{Index: 99}, frontier.Outcome{Index: -1}), false, false)
	sameList(k, "twice in one call", k.settle(v, nil, at(2, frontier.Done), at(2, frontier.Dead)), true, false)
	s := k.stats()
	same(k, "done", s.Done, 2)
	same(k, "retried", s.Retried, 1)
	same(k, "dead", s.Dead, 0)
	same(k, "waiting", s.Waiting, 1)
	same(k, "leases while the site is leased", s.Leases, 1)
	k.notDue("a.example")
	sameList(k, "free", k.settle(v, &frontier.Release{}))
	sameList(k, "free repeated", k.settle(v, &frontier.Release{}))
	same(k, "leases", k.stats().Leases, 0)
	unknown := frontier.Visit{Lease: frontier.Lease{Token: "none", Site: "a.example"}}
	sameList(k, "unknown token", k.settle(unknown, &frontier.Release{Remain: time.Hour}, at(0, frontier.Done)), false)
	k.advance(claimed)
	same(k, "left", len(k.visitURLs("a.example", 9).Items), 3)
}

// settleLateCopy: a copy that comes after the visit was settled and the site
// leased again changes nothing.
func settleLateCopy(k *kit) {
	k.fill("a.example", "p", 1, 6)
	first := k.visitURLs("a.example", 2)
	k.settle(first, &frontier.Release{Delay: time.Second}, all(first, frontier.Requeue)...)
	k.advance(claimed)
	second := k.visitURLs("a.example", 3)
	before := k.stats()
	for _, kind := range []frontier.Kind{frontier.Done, frontier.Retry, frontier.Dead, frontier.Requeue} {
		sameList(k, "late", k.settle(first, &frontier.Release{Remain: time.Hour, Failures: 9}, all(first, kind)...), false, false)
	}
	same(k, "stats", k.stats(), before)
	k.notDue("a.example")
	for _, ok := range k.settle(second, &frontier.Release{Delay: time.Second}, all(second, frontier.Done)...) {
		same(k, "second took effect", ok, true)
	}
	k.advance(claimed)
	third := k.visitURLs("a.example", 9)
	sameList(k, "third", paths(third), "p3", "p4", "p5")
	same(k, "failures", third.Failures, 0)
}

// settleFreedEarly: a site is freed while URLs of its visit are still open; they
// can be settled, and extended, while the site is leased to another.
func settleFreedEarly(k *kit) {
	k.fill("a.example", "p", 1, 4)
	first := k.visitURLs("a.example", 2)
	k.settle(first, &frontier.Release{}, frontier.Outcome{Index: first.Items[0].Index})
	k.advance(claimed)
	second := k.visitURLs("a.example", 1)
	s := k.stats()
	same(k, "leases", s.Leases, 2)
	same(k, "open", s.Open, 2)
	reply := k.tick("a.example", frontier.TickRequest{Extend: []frontier.Lease{first.Lease, second.Lease}})
	same(k, "gone", len(reply.Gone), 0)
	sameList(k, "the rest of the first", k.settle(first, &frontier.Release{Remain: time.Hour}, frontier.Outcome{Index: first.Items[1].Index}), true)
	s = k.stats()
	same(k, "leases then", s.Leases, 1)
	same(k, "open then", s.Open, 1)
	same(k, "done", s.Done, 2)
	k.notDue("a.example")
	k.finish(second)
	k.advance(claimed)
	sameList(k, "left", paths(k.visitURLs("a.example", 9)), "p3")
}

// settleClock: a freed site is due when its delay has passed, never earlier
// than before, and its values are those of the last visit.
func settleClock(k *kit) {
	k.fill("a.example", "p", 1, 9)
	v := k.visitURLs("a.example", 1)
	same(k, "first visit", v.Failures == 0 && v.Delay == 0 && v.Why == "", true)
	k.settle(v, &frontier.Release{Remain: 5 * time.Second, Delay: 7 * time.Second, Why: "robots", Failures: 3}, all(v, frontier.Done)...)
	k.advance(4999 * time.Millisecond)
	k.notDue("a.example")
	k.advance(3 * time.Millisecond)
	v = k.visitURLs("a.example", 1)
	same(k, "delay", v.Delay, 7*time.Second)
	same(k, "why", v.Why, "robots")
	same(k, "failures", v.Failures, 3)
	k.settle(v, &frontier.Release{}, all(v, frontier.Done)...)
	k.advance(2 * time.Millisecond)
	v = k.visitURLs("a.example", 1)
	same(k, "values released", v.Delay == 0 && v.Why == "" && v.Failures == 0, true)
	k.settle(v, &frontier.Release{Remain: 20 * time.Second})
	k.fill("a.example", "new", 0, 1)
	k.advance(claimed)
	k.notDue("a.example")
	k.settle(v, nil, all(v, frontier.Requeue)...)
	k.notDue("a.example")
	k.advance(claimed)
	sameList(k, "when its clock is over", paths(k.visitURLs("a.example", 3)), "new0", "p2", "p3")
}

// settleRequeue: what was not tried returns to the front, in the order it was
// leased in.
func settleRequeue(k *kit) {
	k.fill("a.example", "a", 0, 3)
	k.fill("a.example", "b", 2, 4)
	v := k.visitURLs("a.example", 6)
	sameList(k, "leased", paths(v), "a0", "a1", "a2", "b0", "b1", "b2")
	k.settle(v, nil, frontier.Outcome{Index: v.Items[1].Index})
	rest := all(v, frontier.Requeue)
	rest[0], rest[5] = rest[5], rest[0] // in any order
	sameList(k, "outcomes", k.settle(v, &frontier.Release{}, rest...), true, false, true, true, true, true)
	same(k, "queued", k.stats().Queued, 6)
	k.advance(claimed)
	v = k.visitURLs("a.example", 9)
	sameList(k, "again", paths(v), "a0", "a2", "b0", "b1", "b2", "b3")
	same(k, "class", v.Items[2].Priority, 2)
}

// settleRetry: a retry waits for its time, one class lower, and comes after
// what its class has already.
func settleRetry(k *kit) {
	k.fill("a.example", "p", 3, 1)
	k.fill("a.example", "q", 1, 2)
	v := k.visitURLs("a.example", 1)
	k.settle(v, &frontier.Release{}, frontier.Outcome{Index: v.Items[0].Index, Kind: frontier.Retry, NotBefore: 30 * time.Second, Cause: "status"})
	same(k, "waiting", k.stats().Waiting, 1)
	k.advance(claimed)
	v = k.visitURLs("a.example", 9)
	sameList(k, "others go on", paths(v), "q1", "p0")
	k.settle(v, &frontier.Release{}, frontier.Outcome{Index: v.Items[0].Index}, frontier.Outcome{Index: v.Items[1].Index, Kind: frontier.Retry, NotBefore: 40 * time.Second})
	k.advance(14 * time.Second)
	k.notDue("a.example")
	k.advance(1002 * time.Millisecond)
	v = k.visitURLs("a.example", 9)
	sameList(k, "the first", paths(v), "q0")
	same(k, "class", v.Items[0].Priority, 2)
	same(k, "attempts", v.Items[0].Attempts, 1)
	k.settle(v, &frontier.Release{}, frontier.Outcome{Index: v.Items[0].Index, Kind: frontier.Retry, NotBefore: time.Millisecond})
	k.advance(2 * lease)
	v = k.visitURLs("a.example", 9)
	sameList(k, "both", paths(v), "q0", "p0")
	same(k, "attempts", v.Items[0].Attempts, 2)
	same(k, "class", v.Items[0].Priority, 3)
	same(k, "waiting at last", k.stats().Waiting, 0)
}

// settleRetryOnly: a site with nothing but a retry is due at once when it gets
// new work.
func settleRetryOnly(k *kit) {
	for class, site := range []string{"a.example", "b.example", "c.example", "d.example"} {
		k.fill(site, "p", uint8(class), 1)
		v := k.visitURLs(site, 1)
		k.settle(v, &frontier.Release{}, frontier.Outcome{Index: v.Items[0].Index, Kind: frontier.Retry, NotBefore: time.Hour})
		k.advance(claimed)
		k.notDue(site)
		k.fill(site, "new", uint8(class), 2)
		v = k.visitURLs(site, 9)
		sameList(k, "new work", paths(v), "new0", "new1")
		k.finish(v)
		k.advance(time.Minute)
		k.notDue(site)
	}
	k.advance(time.Hour)
	for _, site := range []string{"a.example", "b.example", "c.example", "d.example"} {
		sameList(k, "the retry", paths(k.visitURLs(site, 9)), "p0")
		k.advance(claimed)
	}
}

// settleLateOutcomes: outcomes that come after a site was freed bring their
// work back to it.
func settleLateOutcomes(k *kit) {
	k.fill("a.example", "p", 1, 2)
	v := k.visitURLs("a.example", 2)
	k.settle(v, &frontier.Release{})
	k.advance(claimed)
	k.notDue("a.example")
	same(k, "leases", k.stats().Leases, 1)
	k.settle(v, nil, frontier.Outcome{Index: v.Items[0].Index, Kind: frontier.Retry, NotBefore: 10 * time.Second})
	same(k, "leases with one open", k.stats().Leases, 1)
	k.settle(v, nil, frontier.Outcome{Index: v.Items[1].Index, Kind: frontier.Requeue})
	same(k, "leases with none", k.stats().Leases, 0)
	sameList(k, "requeued", paths(k.visitURLs("a.example", 9)), "p1")
}
