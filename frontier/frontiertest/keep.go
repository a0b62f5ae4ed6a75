package frontiertest

import (
	"slices"
	"time"

	"seine/frontier"
)

const shortly = 2 * time.Millisecond // what rounding may add

// settleKept: a site that is kept may be visited by who released it as soon as its clock
// is over, and by others KeptFor later.
func settleKept(k *kit) {
	const site = "a.example"
	urlsOf := func(t frontier.Ticket) int {
		k.Helper()
		urls := 0
		for _, v := range k.visit(frontier.VisitLimits{URLs: 1}, t) {
			urls += len(v.Items)
			k.finish(v)
		}
		return urls
	}
	k.fill(site, "p", 1, 5)
	v := k.visitURLs(site, 1)
	kept := k.releaseKept(v, 5*time.Second, all(v, frontier.Done)...)
	same(k, "kept", kept.Kept.Site, site)
	k.near("may be used", kept.Due, 5*time.Second)
	k.near("due for others", k.tick(site, frontier.TickRequest{}).Next, kept.Due+frontier.KeptFor)
	same(k, "repeated", k.releaseKept(v, 5*time.Second, all(v, frontier.Done)...).Kept.Site, "")
	k.advance(5*time.Second - time.Millisecond)
	same(k, "URLs before its time", urlsOf(kept.Kept), 0)
	k.advance(shortly)
	k.notDue(site)
	v = k.visit(frontier.VisitLimits{URLs: 2}, kept.Kept)[0]
	sameList(k, "URLs at its time", paths(v), "p1", "p2")
	same(k, "visits of a ticket that was used", len(k.visit(frontier.VisitLimits{URLs: 1}, kept.Kept)), 0)
	kept = k.releaseKept(v, 0, all(v, frontier.Done)...)
	same(k, "visits of an older ticket", len(k.visit(frontier.VisitLimits{URLs: 1}, frontier.Ticket{Site: site, Class: 1, Score: "1.5"})), 0)
	k.advance(frontier.KeptFor - time.Millisecond)
	k.notDue(site)
	k.advance(2 * shortly)
	other := k.ticket(site)
	same(k, "URLs when others were named it", urlsOf(kept.Kept), 0)
	same(k, "URLs of the others", urlsOf(other), 1)
	k.advance(claimed)
	v = k.visitURLs(site, 9)
	retry := all(v, frontier.Retry)
	retry[0].NotBefore = time.Minute
	same(k, "kept without URLs until later", k.releaseKept(v, 0, retry...).Kept, frontier.Ticket{})
	k.advance(lease + shortly)
	v = k.visitURLs(site, 9)
	retry = all(v, frontier.Retry)
	kept = k.releaseKept(v, time.Second, retry[0])
	same(k, "kept for a retry, class", kept.Kept.Class, 3)
	k.advance(time.Second + shortly)
	v = k.visit(frontier.VisitLimits{URLs: 1}, kept.Kept)[0]
	same(k, "kept without URLs", k.releaseKept(v, 0, all(v, frontier.Done)...).Kept, frontier.Ticket{})
}

// settleKeptPlaced: whatever places the site anew ends that it is kept. What goes on
// without that does not.
func settleKeptPlaced(k *kit) {
	yes := true
	for _, c := range []struct {
		name   string
		before func(site string, v frontier.Visit)
		kept   bool // its ticket is good
		due    bool // for others when the clock is over
	}{
		{"nothing", func(string, frontier.Visit) {}, true, false},
		{"done", func(_ string, v frontier.Visit) { k.settle(v, nil, frontier.Outcome{Index: 1}) }, true, false},
		{"retry", func(_ string, v frontier.Visit) {
			k.settle(v, nil, frontier.Outcome{Index: 1, Kind: frontier.Retry, NotBefore: time.Hour})
		}, true, false},
		{"recrawl", func(_ string, v frontier.Visit) { k.settle(v, nil, recrawlOutcome(v, 0, time.Hour)) }, true, false},
		{"requeue", func(_ string, v frontier.Visit) {
			k.settle(v, nil, frontier.Outcome{Index: 1, Kind: frontier.Requeue})
		}, false, true},
		{"better work", func(site string, _ frontier.Visit) { k.fill(site, "better", 0, 1) }, false, true},
		{"more work", func(site string, _ frontier.Visit) { k.fill(site, "more", 2, 1) }, true, false},
		{"worse work", func(site string, _ frontier.Visit) { k.fill(site, "worse", 3, 1) }, true, false},
		{"reservation", func(site string, _ frontier.Visit) { k.granted(site, 3*time.Second, time.Second) }, false, false},
		{"pause", func(site string, _ frontier.Visit) { k.alter(site, frontier.SiteChange{Paused: &yes}) }, false, false},
		{"block", func(site string, _ frontier.Visit) { k.alter(site, frontier.SiteChange{Blocked: &yes}) }, false, false},
	} {
		site := k.sitesOf(c.name[:3], 1)[0]
		k.fill(site, "p", 2, 9)
		v := k.visitURLs(site, 2)
		kept := k.releaseKept(v, time.Second, frontier.Outcome{Index: 2})
		c.before(site, v)
		k.advance(time.Second + shortly)
		var due []string
		for _, t := range k.tick(site, frontier.TickRequest{Want: 100}).Due {
			due = append(due, t.Site)
		}
		same(k, c.name+": due for others", slices.Contains(due, site), c.due)
		same(k, c.name+": visits", len(k.visit(frontier.VisitLimits{URLs: 1}, kept.Kept)) == 1, c.kept)
	}
}
