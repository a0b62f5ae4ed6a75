package frontiertest

import (
	"fmt"
	"time"

	"seine/frontier"
)

// sitesOf finds n sites of one shard.
func (k *kit) sitesOf(prefix string, n int) []string {
	var out []string
	for i := 0; len(out) < n; i++ {
		if site := fmt.Sprintf("%s%d.example", prefix, i); k.shard(site) == 0 {
			out = append(out, site)
		}
	}
	return out
}

// tickClaims: a site that was named is not named again for some seconds, unless
// it is leased first.
func tickClaims(k *kit) {
	k.fill("a.example", "p", 1, 3)
	first := k.ticket("a.example")
	k.notDue("a.example")
	k.advance(claimed)
	second := k.ticket("a.example")
	same(k, "another ticket", second.Score == first.Score, false)
	same(k, "class", second.Class, 1)
	k.notDue("a.example")
	same(k, "visits of the old ticket", len(k.visit(frontier.VisitLimits{URLs: 9}, first)), 0)
	same(k, "visits of the new ticket", len(k.visit(frontier.VisitLimits{URLs: 9}, second)), 1)
}

// tickShares: half of what is wanted comes from the best class, the rest by
// time.
func tickShares(k *kit) {
	old := k.sitesOf("old", 6)
	for _, site := range old {
		k.fill(site, "p", 3, 1)
		k.advance(10 * time.Millisecond)
	}
	for _, site := range k.sitesOf("best", 6) {
		k.fill(site, "p", 0, 1)
	}
	count := func(want int) (byClass [4]int) {
		for _, t := range k.tick(old[0], frontier.TickRequest{Want: want}).Due {
			byClass[t.Class]++
		}
		return byClass
	}
	first := count(5)
	same(k, "half of 5", first[0] == 2 || first[0] == 3, true)
	same(k, "the others of 5", first[3], 5-first[0])
	same(k, "of the rest", count(100), [4]int{6 - first[0], 0, 0, 6 - first[3]})
	same(k, "of nothing", count(100), [4]int{})
}

// tickNoClassStarves: sites of the last class get their turn while better ones
// never run dry, even when sites are asked for one by one.
func tickNoClassStarves(k *kit) {
	for _, want := range []int{1, 2, 3} {
		k.noClassStarves(want)
	}
}

func (k *kit) noClassStarves(want int) {
	k.Helper()
	const n = 8
	low := k.sitesOf("low", n)
	for _, site := range low {
		k.fill(site, fmt.Sprint(want, "-"), 3, 1)
	}
	high := k.sitesOf("high", n)
	for _, site := range high {
		k.fill(site, fmt.Sprint(want, "-"), 0, 30)
	}
	done := [4]int{}
	for range 60 {
		for _, t := range k.tick(low[0], frontier.TickRequest{Want: want}).Due {
			for _, v := range k.visit(frontier.VisitLimits{URLs: 1}, t) {
				k.finish(v)
				done[v.Items[0].Priority]++
			}
		}
		k.advance(100 * time.Millisecond)
	}
	same(k, "sites of the last class visited", done[3], n)
	same(k, "the best class never ran dry", done[0] < 30*n, true)
	k.drain()
}

// tickNext: the reply names the time until the first site is due.
func tickNext(k *kit) {
	next := func() time.Duration { return k.tick("a.example", frontier.TickRequest{}).Next }
	same(k, "nothing waits", next() < 0, true)
	k.fill("a.example", "p", 1, 2)
	same(k, "due", next(), 0)
	v := k.visitURLs("a.example", 1)
	same(k, "leased", next() < 0, true)
	k.settle(v, &frontier.Release{Remain: 3 * time.Second}, all(v, frontier.Done)...)
	k.near("freed", next(), 3*time.Second)
	k.advance(time.Second)
	k.near("a second later", next(), 2*time.Second)
	k.advance(5 * time.Second)
	same(k, "long after", next(), 0)
}

// tickPatience: who is patient is named no site that has just become due.
func tickPatience(k *kit) {
	const site = "a.example"
	k.fill(site, "p", 1, 2)
	v := k.visitURLs(site, 1)
	k.settle(v, &frontier.Release{Remain: 3 * time.Second}, all(v, frontier.Done)...)
	k.advance(4 * time.Second)
	reply := k.tick(site, frontier.TickRequest{Want: 1, Patience: 3 * time.Second})
	same(k, "due for a second", len(reply.Due), 0)
	same(k, "and then", reply.Next > time.Second && reply.Next <= 2*time.Second+2*time.Millisecond, true)
	k.advance(2*time.Second + 2*time.Millisecond)
	same(k, "due for three", len(k.tick(site, frontier.TickRequest{Want: 1, Patience: 3 * time.Second}).Due), 1)
}

// near allows what rounding up to milliseconds may add.
func (k *kit) near(what string, got, want time.Duration) {
	k.Helper()
	if got < want || got > want+2*time.Millisecond {
		k.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// tickExtends: leases live on while they are extended; what is no longer mine
// is named.
func tickExtends(k *kit) {
	k.fill("a.example", "p", 1, 2)
	v := k.visitURLs("a.example", 1)
	other := frontier.Lease{Token: "none", Site: "a.example"}
	for range 10 {
		k.advance(lease / 6)
		reply := k.tick("a.example", frontier.TickRequest{Extend: []frontier.Lease{v.Lease, other}, MaxExpired: 9})
		sameList(k, "gone", reply.Gone, other)
		same(k, "expired", len(reply.Expired), 0)
	}
	k.finish(v)
	reply := k.tick("a.example", frontier.TickRequest{Extend: []frontier.Lease{v.Lease}})
	sameList(k, "gone when settled", reply.Gone, v.Lease)
}

// tickQuiet: when nobody ticked for a third of a lease, no lease is named
// expired before another lease has passed.
func tickQuiet(k *kit) {
	if k.b.Silent == nil {
		k.Skip("the time of this backend does not show gaps")
	}
	k.fill("a.example", "p", 1, 2)
	v := k.visitURLs("a.example", 1)
	k.b.Silent(2 * lease)
	expired := func() int { return len(k.tick("a.example", frontier.TickRequest{MaxExpired: 9}).Expired) }
	same(k, "after the gap", expired(), 0)
	for range 5 {
		k.advance(lease / 6)
		same(k, "in the quiet time", expired(), 0)
	}
	k.advance(lease/6 + 2*time.Millisecond)
	same(k, "after it", expired(), 1)
	e := k.tick("a.example", frontier.TickRequest{MaxExpired: 9}).Expired[0]
	e.Deadline += k.b.Silent(lease).Milliseconds()
	same(k, "reaped after another gap", k.reap(e), 0)
	k.tick("a.example", frontier.TickRequest{})
	same(k, "reaped in its quiet time", k.reap(e), 0)
	k.tick("a.example", frontier.TickRequest{Extend: []frontier.Lease{v.Lease}})
	same(k, "extended", expired(), 0)
	k.finish(v)
}
