package frontiertest

import (
	"time"

	"seine/frontier"
)

// wallPause is a back-off of tests: longer than a lease and its claims, and well below a day.
const wallPause = time.Hour

// settleWalls settles outcomes of a visit with a row of walls.
func (k *kit) settleWalls(v frontier.Visit, count int, free *frontier.Release, outcomes ...frontier.Outcome) {
	k.Helper()
	w := &frontier.Walls{Count: count}
	if count > 0 {
		w.Vendor = "acme"
	}
	if count >= frontier.WallsInRow {
		w.Pause = wallPause
	}
	_, err := k.f.Settle(k.ctx, k.shard(v.Site), []frontier.Settlement{{Lease: v.Lease, Outcomes: outcomes, Release: free, Walls: w}})
	k.must(err)
}

// walled is a site with more URLs behind a wall, which the fleet has just backed off from.
func (k *kit) walled(site string) {
	k.Helper()
	k.fill(site, "p", 1, 9)
	v := k.visitURLs(site, 1)
	k.settleWalls(v, frontier.WallsInRow, &frontier.Release{Delay: time.Second}, all(v, frontier.Requeue)...)
}

// wallRow is how many walls in a row the shard of a site has.
func (k *kit) wallRow(site string) int {
	k.Helper()
	if row := k.state(site).Walls; row != nil {
		return row.Count
	}
	return 0
}

// wallsInRow: the row of walls goes with the site from visit to visit. From the third on
// the site is due for nobody until the back-off ends, and a page ends the row.
func wallsInRow(k *kit) {
	const site = "a.example"
	k.fill(site, "p", 1, 9)
	for count := 1; count < frontier.WallsInRow; count++ {
		v := k.visitURLs(site, 1)
		same(k, "so far", v.Walls, count-1)
		k.settleWalls(v, count, &frontier.Release{}, all(v, frontier.Requeue)...)
		same(k, "no back-off yet", k.stats().Walled, 0)
		k.advance(claimed)
	}
	v := k.visitURLs(site, 1)
	k.settleWalls(v, frontier.WallsInRow, &frontier.Release{}, all(v, frontier.Requeue)...)
	same(k, "sites that are backed off from", k.stats().Walled, 1)
	row := k.state(site).Walls
	same(k, "row", row != nil && row.Count == frontier.WallsInRow && row.Vendor == "acme" && !row.Since.IsZero(), true)
	same(k, "left", row.Left > wallPause-time.Second && row.Left <= wallPause+time.Second, true)
	k.advance(wallPause - time.Second)
	k.notDue(site)
	k.fill(site, "better", 0, 1)
	k.notDue(site)
	k.advance(time.Second + 5*time.Millisecond)
	v = k.visitURLs(site, 1)
	same(k, "after the back-off", v.Walls, frontier.WallsInRow)
	same(k, "a back-off that is over", k.stats().Walled, 0)
	since := row.Since
	k.settleWalls(v, frontier.WallsInRow+1, &frontier.Release{}, all(v, frontier.Requeue)...)
	same(k, "since the first", k.state(site).Walls.Since, since)
	k.advance(claimed)
	k.notDue(site)
	k.advance(wallPause)
	v = k.visitURLs(site, 1)
	k.settleWalls(v, 0, &frontier.Release{}, all(v, frontier.Done)...)
	same(k, "ended by a page", k.wallRow(site), 0)
	k.advance(claimed)
	same(k, "the next visit", k.visitURLs(site, 1).Walls, 0)
}

// wallsLate: what comes late, twice, or from a fetcher that has the site no longer, brings no
// older row back and begins no back-off.
func wallsLate(k *kit) {
	const site = "a.example"
	k.fill(site, "p", 1, 9)
	v := k.visitURLs(site, 3)
	at := func(i int) frontier.Outcome { return frontier.Outcome{Index: v.Items[i].Index} }
	k.settleWalls(v, 1, nil, at(0))
	k.settleWalls(v, 2, nil, at(1))
	k.settleWalls(v, 1, nil, at(0)) // a copy
	same(k, "after a copy", k.wallRow(site), 2)
	k.settleWalls(v, 0, &frontier.Release{}, at(2))
	for range 2 {
		k.settleWalls(v, frontier.WallsInRow, &frontier.Release{}, at(2)) // it is released
	}
	same(k, "after the release", k.wallRow(site), 0)
	k.advance(claimed)
	v = k.visitURLs(site, 1)
	for range 2 {
		k.settleWalls(v, frontier.WallsInRow, &frontier.Release{}, at(0))
	}
	same(k, "repeated", k.wallRow(site), frontier.WallsInRow)
	k.advance(wallPause - time.Second)
	k.notDue(site)
	k.advance(2 * time.Second)
	next := k.visitURLs(site, 1)
	k.settleWalls(v, 9, &frontier.Release{}, at(0))
	same(k, "from the visit before", k.wallRow(site), frontier.WallsInRow)
	k.finish(next)
}

// wallsLost: a fetcher is lost between the third wall, which is settled, and the release of
// the site. The back-off holds.
func wallsLost(k *kit) {
	const site = "a.example"
	k.fill(site, "p", 1, 9)
	v := k.visitURLs(site, 2)
	k.settleWalls(v, frontier.WallsInRow, nil, frontier.Outcome{Index: v.Items[0].Index, Kind: frontier.Retry, NotBefore: time.Second, Cause: frontier.CauseWall})
	same(k, "reaped", k.reap(k.expire(site, v.Token)), 1)
	same(k, "row", k.wallRow(site), frontier.WallsInRow)
	same(k, "backed off from", k.stats().Walled, 1)
	k.notDue(site)
	k.advance(wallPause - 3*lease)
	k.notDue(site)
	k.advance(3 * lease)
	same(k, "the URL that waited goes on", k.visitURLs(site, 1).Walls, frontier.WallsInRow)
}

// wallsBeside: a page that comes beside the last wall ends the back-off that it began.
func wallsBeside(k *kit) {
	const site = "a.example"
	k.fill(site, "p", 1, 9)
	v := k.visitURLs(site, 2)
	k.settleWalls(v, frontier.WallsInRow, nil, frontier.Outcome{Index: v.Items[0].Index, Kind: frontier.Retry, Cause: frontier.CauseWall})
	k.settleWalls(v, 0, &frontier.Release{Remain: time.Second}, frontier.Outcome{Index: v.Items[1].Index})
	same(k, "row", k.wallRow(site), 0)
	same(k, "backed off from", k.stats().Walled, 0)
	k.advance(time.Second - 5*time.Millisecond)
	k.notDue(site)
	k.advance(10 * time.Millisecond)
	k.visitURLs(site, 1)
}

// wallsStopped: a pause of the site or of the crawl neither ends a back-off nor makes it
// longer; a site that is blocked is not counted.
func wallsStopped(k *kit) {
	const site = "a.example"
	yes, no := true, false
	k.walled(site)
	k.alter(site, frontier.SiteChange{Paused: &yes})
	same(k, "paused", k.state(site).Place, frontier.PlacePaused)
	k.advance(wallPause / 2)
	k.alter(site, frontier.SiteChange{Paused: &no})
	k.notDue(site)
	same(k, "row", k.wallRow(site), frontier.WallsInRow)
	k.must(k.f.Pause(k.ctx, -1, true))
	k.must(k.f.Pause(k.ctx, -1, false))
	k.notDue(site)
	k.advance(wallPause/2 + time.Second)
	k.finish(k.visitURLs(site, 1))

	k.walled("b.example")
	k.alter("b.example", frontier.SiteChange{Blocked: &yes})
	same(k, "blocked", k.stats().Walled, 0)
	k.alter("b.example", frontier.SiteChange{Blocked: &no})
	same(k, "admitted anew", k.admit(k.url("b.example", "new"))[0], frontier.Admitted)
	k.notDue("b.example")
}

// wallsEnded: a person ends the back-off of a site, twice for a repeat. It is due after its
// delay, no sooner than a time that was granted to others, and not while it is leased.
func wallsEnded(k *kit) {
	const site = "a.example"
	k.walled(site)
	named := func(want ...string) {
		k.Helper()
		var sites []string
		for shard := range k.f.Shards() {
			list, err := k.f.WalledSites(k.ctx, shard)
			k.must(err)
			sites = append(sites, list...)
		}
		sameList(k, "walled sites", sites, want...)
	}
	named(site)
	for range 2 {
		k.alter(site, frontier.SiteChange{EndWalls: true})
	}
	named()
	same(k, "row", k.wallRow(site), 0)
	k.notDue(site) // its delay
	k.advance(time.Second + 5*time.Millisecond)
	v := k.visitURLs(site, 1)
	same(k, "walls", v.Walls, 0)
	k.settleWalls(v, frontier.WallsInRow, nil, all(v, frontier.Done)...)
	k.alter(site, frontier.SiteChange{EndWalls: true})
	k.notDue(site)
	k.settle(v, &frontier.Release{})
	k.advance(claimed)
	v = k.visitURLs(site, 1)
	k.settleWalls(v, frontier.WallsInRow, &frontier.Release{Delay: time.Second}, all(v, frontier.Done)...)

	k.advance(wallPause - 2*time.Second)
	r, err := k.f.Reserve(k.ctx, k.shard(site), frontier.ReserveRequest{Site: site, Slack: time.Second, Ahead: 3 * time.Second})
	k.must(err)
	same(k, "granted at its end", r.Granted && r.Wait > time.Second, true)
	k.alter(site, frontier.SiteChange{EndWalls: true})
	k.advance(3 * time.Second)
	k.notDue(site)
	k.advance(2 * time.Second)
	k.visitURLs(site, 1)
}

// wallsAdmitted: dead letters that are retried, URLs that are recrawled and refetched and new
// ones wait until the back-off of their site ends.
func wallsAdmitted(k *kit) {
	const site = "a.example"
	k.fill(site, "p", 1, 3)
	v := k.visitURLs(site, 3)
	outcomes := all(v, frontier.Dead)
	outcomes[0].Cause, outcomes[0].Text = frontier.CauseWall, "a wall"
	outcomes[1] = recrawlOutcome(v, 1, time.Second)
	outcomes[2] = frontier.Outcome{Index: v.Items[2].Index}
	k.settleWalls(v, frontier.WallsInRow, &frontier.Release{}, outcomes...)
	letters, err := k.f.DeadLetters(k.ctx, k.shard(site), frontier.CauseWall, 0, 9)
	k.must(err)
	n, err := k.f.RetryDead(k.ctx, k.shard(site), letters)
	k.must(err)
	same(k, "retried", n, 1)
	again := k.url(site, "p2")
	again.Refetch = "x"
	same(k, "refetched", k.admit(again)[0], frontier.Admitted)
	k.fill(site, "new", 0, 1)
	k.advance(wallPause - time.Second)
	k.notDue(site)
	k.advance(2 * time.Second)
	v = k.visitURLs(site, 9)
	same(k, "URLs that went on", len(v.Items), 4)
	same(k, "row", v.Walls, frontier.WallsInRow)
}

// wallsCounted: each wall that was met is counted once, by its vendor, whatever became of
// its URL.
func wallsCounted(k *kit) {
	const site = "a.example"
	k.fill(site, "p", 1, 3)
	v := k.visitURLs(site, 3)
	met := func(vendor string) *frontier.Facts { return &frontier.Facts{Status: 403, Wall: vendor} }
	outcomes := []frontier.Outcome{
		{Index: 1, Kind: frontier.Retry, Cause: frontier.CauseWall, NotBefore: time.Hour, Facts: met("acme")},
		{Index: 2, Kind: frontier.Dead, Cause: frontier.CauseWall, Facts: met("acme")},
		{Index: 3, Facts: &frontier.Facts{Status: 200}},
	}
	for range 2 {
		k.settleWalls(v, 2, &frontier.Release{}, outcomes...)
	}
	s, err := k.f.Counters(k.ctx, k.shard(site))
	k.must(err)
	same(k, "walls", s.Counts[frontier.CounterWall+"acme"], 2)
	same(k, "retries", s.Counts[frontier.CounterRetry+"wall:403"], 1)
	same(k, "dead", s.Counts[frontier.CounterDead+"wall"], 1)
}
