package frontiertest

import (
	"time"

	"seine/frontier"
)

// Of reservations here: a second of delay and half of one of slack.
const reservedEach = 1500 * time.Millisecond

func (k *kit) reserve(site string, ahead time.Duration) frontier.Reservation {
	k.Helper()
	r, err := k.f.Reserve(k.ctx, k.shard(site), frontier.ReserveRequest{
		Site: site, Delay: time.Second, Slack: 500 * time.Millisecond, Ahead: ahead,
	})
	k.must(err)
	return r
}

// granted reserves, which must be granted for then.
func (k *kit) granted(site string, ahead, want time.Duration) {
	k.Helper()
	r := k.reserve(site, ahead)
	same(k, "granted", r.Granted, true)
	k.near("time", r.Wait, want)
}

// reserveTimes: each reservation has its time for itself, as far ahead as was asked
// for; who is sent away asks again when there may be one. Until the last is over the
// site is not leased.
func reserveTimes(k *kit) {
	const site = "a.example" // without URLs
	k.granted(site, 3*time.Second, 0)
	k.granted(site, 3*time.Second, reservedEach)
	k.granted(site, 3*time.Second, 2*reservedEach)
	first, second := k.reserve(site, 3*time.Second), k.reserve(site, 3*time.Second)
	same(k, "granted", first.Granted || second.Granted, false)
	same(k, "they come one after the other", first.Wait >= 3*reservedEach && second.Wait >= first.Wait+reservedEach, true)

	k.fill(site, "p", 1, 1)
	k.notDue(site)
	k.advance(3*reservedEach - 100*time.Millisecond)
	k.notDue(site)
	k.advance(200 * time.Millisecond)
	t := k.ticket(site)
	k.granted(site, 0, 0)
	same(k, "visits of a ticket from before", len(k.visit(frontier.VisitLimits{URLs: 1}, t)), 0)
	k.advance(claimed)
	k.finish(k.visitURLs(site, 1))
	k.advance(claimed)

	// The site's own delay holds.
	k.fill(site, "q", 1, 2)
	v := k.visitURLs(site, 1)
	k.settle(v, &frontier.Release{Remain: 5 * time.Second, Delay: 5 * time.Second}, all(v, frontier.Done)...)
	k.granted(site, 10*time.Second, 5*time.Second)
	k.granted(site, 20*time.Second, 10500*time.Millisecond)
}

// reserveLeased: a site that is leased gives no time, and rests afterwards while others
// wait for one.
func reserveLeased(k *kit) {
	const site = "a.example"
	k.fill(site, "p", 1, 4)
	v := k.visitURLs(site, 1)
	r := k.reserve(site, time.Minute)
	same(k, "granted", r.Granted, false)
	same(k, "asks again", r.Wait >= frontier.ReserveRetry && r.Wait <= frontier.ReserveMaxWait, true)
	k.finish(v)
	k.notDue(site)
	k.granted(site, time.Minute, frontier.ReserveRetry)
	k.advance(frontier.ReserveRetry)
	k.notDue(site)
	k.advance(claimed)
	k.finish(k.visitURLs(site, 1))
	k.advance(2 * time.Millisecond)
	k.finish(k.visitURLs(site, 1)) // nobody waits any more
}

// reserveOwn: however many reserve, a site's own URLs have their turn.
func reserveOwn(k *kit) {
	const site = "a.example"
	k.fill(site, "p", 1, 2)
	for range 2 {
		n := 0
		for k.reserve(site, time.Hour).Granted {
			n++
		}
		same(k, "reservations in a row", n, frontier.ReservedMost)
		k.advance(frontier.ReservedMost*reservedEach + 2*frontier.ReserveRetry)
		same(k, "granted before the site was leased", k.reserve(site, time.Hour).Granted, false)
		k.finish(k.visitURLs(site, 1))
	}
	for range 3 * frontier.ReservedMost {
		same(k, "granted when no URL waits", k.reserve(site, time.Hour).Granted, true)
	}
}

// reserveStopped: nobody asks a site that is paused or blocked.
func reserveStopped(k *kit) {
	for i, change := range []frontier.SiteChange{{Paused: new(true)}, {Blocked: new(true)}} {
		site := []string{"a.example", "b.example"}[i]
		k.alter(site, change)
		r := k.reserve(site, time.Hour)
		same(k, "stopped", r.Stopped && !r.Granted, true)
	}
	k.alter("a.example", frontier.SiteChange{Paused: new(bool)})
	same(k, "granted afterwards", k.reserve("a.example", 0).Granted, true)
}
