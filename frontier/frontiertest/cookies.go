package frontiertest

import (
	"strings"

	"seine/frontier"
)

// settleCookies settles outcomes of a visit with cookies.
func (k *kit) settleCookies(v frontier.Visit, cookies string, free *frontier.Release, outcomes ...frontier.Outcome) {
	k.Helper()
	_, err := k.f.Settle(k.ctx, k.shard(v.Site), []frontier.Settlement{{Lease: v.Lease, Outcomes: outcomes, Release: free, Cookies: &cookies}})
	k.must(err)
}

// cookiesStay: what one visit leaves the next one has, byte for byte, until another
// leaves something else.
func cookiesStay(k *kit) {
	k.fill("a.example", "p", 1, 6)
	k.fill("b.example", "p", 1, 1)
	next := func(what, want string) frontier.Visit {
		k.Helper()
		k.advance(claimed)
		v := k.visitURLs("a.example", 1)
		same(k, what, v.Cookies, want)
		return v
	}
	v := next("at first", "")
	k.settleCookies(v, "\x00\xff\r\n 1", nil, all(v, frontier.Done)...)
	k.settle(v, &frontier.Release{})
	v = next("kept with an outcome", "\x00\xff\r\n 1")
	k.finish(v)
	v = next("kept by a visit that leaves none", "\x00\xff\r\n 1")
	k.settleCookies(v, "2", &frontier.Release{})
	k.settle(v, nil, all(v, frontier.Requeue)...)
	v = next("kept as the site is released", "2")
	k.alter("a.example", frontier.SiteChange{Cap: new(int64)})
	k.settleCookies(v, "", &frontier.Release{}, all(v, frontier.Done)...)
	k.finish(next("taken away", ""))
	k.advance(claimed)
	k.advance(claimed)
	for _, kept := range []string{frontier.WantsSign + "1", "1", frontier.WantsSign, ""} {
		v := k.visitURLs("a.example", 1)
		k.settleCookies(v, kept, &frontier.Release{}, all(v, frontier.Requeue)...)
		states, err := k.f.SiteStates(k.ctx, k.shard("a.example"), []string{"a.example"})
		k.must(err)
		same(k, "asks for signatures with "+kept, states[0].WantsSign, strings.HasPrefix(kept, frontier.WantsSign))
		k.advance(claimed)
	}
	same(k, "of another site", k.visitURLs("b.example", 1).Cookies, "")
}

// cookiesLate: what comes late, or from a fetcher that has the site no longer,
// brings no older cookies back.
func cookiesLate(k *kit) {
	k.fill("a.example", "p", 1, 9)
	v := k.visitURLs("a.example", 3)
	at := func(i int) frontier.Outcome { return frontier.Outcome{Index: v.Items[i].Index} }
	k.settleCookies(v, "1", nil, at(0))
	k.settleCookies(v, "2", nil, at(1))
	k.settleCookies(v, "1", nil, at(0)) // a copy
	k.settle(v, &frontier.Release{})
	k.settleCookies(v, "3", &frontier.Release{}, at(2)) // it is free
	k.advance(claimed)
	lost := k.visitURLs("a.example", 2)
	same(k, "after copies", lost.Cookies, "2")
	k.settleCookies(lost, "4", nil, frontier.Outcome{Index: lost.Items[0].Index})
	same(k, "reaped", k.reap(k.expire("a.example", lost.Token)), 1)
	k.settleCookies(lost, "5", &frontier.Release{}, all(lost, frontier.Done)...)
	k.advance(claimed)
	same(k, "after the fetcher was lost, those of what it had settled", k.visitURLs("a.example", 1).Cookies, "4")
}
