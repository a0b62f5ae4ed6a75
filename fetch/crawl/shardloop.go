package crawl

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"seine/fetch/crawl/internal/flow"
	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

const (
	maxExpired = 100 // leases reaped per tick; where there may be more, the next one comes at once
	// mostClockJump is how far the clock of a shard's server may be set back or forward
	// before that is logged.
	mostClockJump = time.Second
	// lateCall is what an answer takes at least to be called late.
	lateCall = 20 * time.Millisecond
	// shortOfRoom is how long a shard loop waits for more room where there is a little.
	shortOfRoom = 10 * time.Millisecond
	// maxUndelayed bounds the URLs that a fetcher which is lost takes along.
	maxUndelayed = 256
)

// shardLoop is this fetcher's loop on one shard. It ticks, acquires sites and extends
// their leases. Beside it one goroutine admits, one compares, one settles, each with its
// own batches, so that a slow shard delays nobody else.
type shardLoop struct {
	*shard
	crawler *Crawler

	rev      int64         // of the settings
	began    time.Time     // of the last tick
	extended time.Duration // when leases were named last, by Config.Elapsed
	then     int64         // the shard's time at the last tick, 0 = there was none
	thenAt   time.Duration // when that began, by Config.Elapsed
}

func newShardLoop(c *Crawler, s *shard) *shardLoop { return &shardLoop{shard: s, crawler: c, rev: -1} }

// run ticks until the crawler ends, or stops and nothing of this shard is open.
func (l *shardLoop) run(ctx context.Context) {
	first := l.leases.Mark(l.crawler.cfg.Elapsed(), l.CheckEpoch())
	l.extended = first.At
	l.leases.Begin(first)
	for ctx.Err() == nil && !(l.crawler.isStopping() && l.isIdle()) {
		next, err := l.tick(ctx)
		l.Ended()
		if err != nil {
			l.crawler.fail(ctx, err)
			return
		}
		l.awaitWork(ctx, next)
	}
}

// tick is one tick and what follows from it. It returns how long nothing is to
// be done unless the loop is notified.
func (l *shardLoop) tick(ctx context.Context) (time.Duration, error) {
	c, want := l.crawler, 0
	if c.mayAcquire() {
		want = l.reserveRoom()
	}
	defer l.unreserveRoom(want)
	l.began = time.Now()
	kept := l.kept.Take(l.began, want)
	take, patience := l.share(want, len(kept))
	mark := l.leases.Mark(c.cfg.Elapsed(), l.CheckEpoch())
	req := frontier.TickRequest{Want: take, Patience: patience, MaxExpired: maxExpired, MaxLag: mostClockJump, LastNow: l.then, Elapsed: mark.At - l.thenAt}
	l.Asked(l.began)
	var leased []*site.Visit
	named := mark.At-l.extended >= c.cfg.Lease/3 || !l.leases.IsReliable(mark.At, mark.Epoch, c.cfg.Lease)
	if named {
		leased = l.leasedVisits()
		for _, v := range leased {
			req.Extend = append(req.Extend, v.Lease)
		}
	}
	reply, err := c.cfg.Frontier.Tick(ctx, l.Index, req)
	if err != nil {
		return 0, err
	}
	l.Answered(time.Now())
	l.CheckEpoch()
	if named {
		l.extendLeases(leased, reply.Gone, mark.At)
	}
	l.leases.Answered(mark, named)
	c.unparkVisits(l.shard)
	l.then, l.thenAt = reply.Now, mark.At
	l.logClockJump(&reply)
	l.paused.Store(reply.Paused)
	if reply.Rev != l.rev {
		if err := l.refreshPolicy(ctx); err != nil {
			return 0, err
		}
		l.rev = reply.Rev
	}
	reaped := 0
	if len(reply.Expired) > 0 {
		if reaped, err = c.cfg.Frontier.Reap(ctx, l.Index, reply.Expired); err != nil {
			return 0, err
		}
	}
	due := reply.Due
	if !reply.Paused {
		due = append(kept, due...)
	}
	acquired, err := l.acquireSites(ctx, due)
	if err != nil {
		return 0, err
	}
	if took := time.Since(l.began); acquired > 0 && took > lateCall {
		l.late.Add(int64(took))
	}
	if reaped > 0 && len(reply.Expired) == maxExpired {
		return 0, nil
	}
	return l.untilKept(want, l.untilNextTick(take, len(reply.Due), &reply)), nil
}

// reserveRoom takes half of the room for visits about to be acquired; a loop that gets its
// whole wish asks again.
func (l *shardLoop) reserveRoom() int {
	n := (l.crawler.room() + 1) / 2
	l.crawler.reserved.Add(int64(n))
	return n
}

func (l *shardLoop) unreserveRoom(n int) {
	if n > 0 {
		l.crawler.reserved.Add(int64(-n))
		l.crawler.notifyHungry()
	}
}

// share is how many of the wanted sites this fetcher takes beside so many that were kept
// for it, and for how long each must have been due. While others have room, it takes no
// more than its share of fresh ones, and leaves the rest for as long as the others may
// take to look.
func (l *shardLoop) share(want, kept int) (int, time.Duration) {
	c := l.crawler
	want -= kept
	if !c.othersRoom.Load() {
		return want, 0
	}
	if left := c.fairShare() - c.visits.Load() - int64(kept); left > 0 {
		return int(min(int64(want), left)), 0
	}
	return want, c.idlePause() + c.idleSpread()
}

func (l *shardLoop) leasedVisits() []*site.Visit {
	l.mu.Lock()
	defer l.mu.Unlock()
	leased := make([]*site.Visit, 0, len(l.visits))
	for _, v := range l.visits {
		leased = append(leased, v)
	}
	return leased
}

// extendLeases takes in what a tick returned of the leases that it was to extend.
func (l *shardLoop) extendLeases(leased []*site.Visit, gone []frontier.Lease, before time.Duration) {
	l.extended = before
	lost := make(map[string]bool, len(gone))
	for _, g := range gone {
		lost[g.Token] = true
	}
	for _, v := range leased {
		if lost[v.Token] {
			l.crawler.dropVisit(v)
		} else {
			v.Extend(before + l.crawler.cfg.Lease)
		}
	}
}

func (l *shardLoop) logClockJump(reply *frontier.TickReply) {
	log := l.crawler.cfg.Log
	if reply.ClockJump > time.Since(l.began) {
		log.Warn("the clock of a shard's server was set forward, its time goes on from where it was", "shard", l.Index, "by", reply.ClockJump)
	}
	if reply.Lag >= mostClockJump {
		log.Warn("the clock of a shard's server was set back, its time goes on from where it was", "shard", l.Index, "by", reply.Lag)
	}
}

// refreshPolicy reads the crawl's settings again, for one shard loop at a time, so that
// older ones never replace newer.
func (l *shardLoop) refreshPolicy(ctx context.Context) error {
	c := l.crawler
	c.renew.Lock()
	defer c.renew.Unlock()
	s, err := c.cfg.Frontier.Refresh(ctx)
	if err != nil {
		return err
	}
	pol, err := work.NewPolicy(s)
	if err != nil {
		c.cfg.Log.Error("settings of the crawl are unusable, going on with the last ones", "err", err)
		return nil
	}
	c.policy.Store(pol)
	return nil
}

// acquireSites makes visits of tickets and starts them.
func (l *shardLoop) acquireSites(ctx context.Context, due []frontier.Ticket) (int, error) {
	if len(due) == 0 {
		return 0, nil
	}
	c := l.crawler
	pol := c.policy.Load()
	s := pol.Settings
	at, asked := c.cfg.Elapsed(), time.Now()
	last := c.lossPermit.Acquire(asked)
	leased, err := c.cfg.Frontier.Visit(ctx, l.Index, due, frontier.VisitLimits{
		URLs: s.VisitURLs, Undelayed: undelayed(s.VisitURLs), Span: visitSpan, Delay: s.Delay, Share: s.RecrawlShare, Safe: !last,
	})
	if last && (err != nil || !slices.ContainsFunc(leased, func(v frontier.Visit) bool { return v.LastChance() })) {
		c.lossPermit.Release()
	}
	if err != nil {
		return 0, err
	}
	visits := make([]*site.Visit, 0, len(leased))
	var visitedBefore []*site.Visit // of other sites the shard has no rules, which hold for a day at most
	for i := range leased {
		f := &leased[i]
		v := site.NewVisit(c.ctx, l.Index, f, at+f.Deadline.Sub(asked), at+visitSpan, s.VisitURLs)
		v.Follow(pol)
		v.SetDead(c.deadSites.Get(v.Site))
		if s.KeepsCookies() {
			start := l.then - l.thenAt.Milliseconds() // the shard's time when Elapsed was 0
			v.KeepCookies(func() int64 { return max(1, (start+c.cfg.Elapsed().Milliseconds())/1000) })
		}
		visits = append(visits, v)
		if !f.First {
			visitedBefore = append(visitedBefore, v)
		}
		l.mu.Lock()
		l.visits[v.Token] = v
		l.mu.Unlock()
		c.visits.Add(1)
		c.visiting.Add(1)
	}
	err = c.loadRules(ctx, l.Index, visitedBefore)
	for _, v := range visits {
		c.agenda.Schedule(v, time.Time{})
	}
	return len(visits), err
}

// undelayed is how many URLs a visit may have where no delay keeps it: between two
// visits the site waits for several calls of its shard. It grows with what the crawl
// asks for, and one that asks for one URL at a time gets that.
func undelayed(urls int) int { return min(urls*urls, max(urls, maxUndelayed)) }

// untilNextTick is how long the loop may wait after a tick.
func (l *shardLoop) untilNextTick(want, due int, reply *frontier.TickReply) time.Duration {
	next := reply.Next
	l.later.Store(next > 0)
	pause, spread := heartbeat, time.Duration(0)
	if l.isIdle() { // nobody waits for this fetcher: the more there are, the less each looks
		pause = l.crawler.idlePause()
		spread = rand.N(l.crawler.idleSpread() + 1)
	}
	switch {
	case due > 0 && due == want:
		return 0 // there may be more
	case reply.Paused:
		return pause
	case next == 0 && want == 0:
		l.setHungry(true)
		return heartbeat
	case next >= 0 && next+spread < pause:
		return max(next+spread, time.Millisecond)
	}
	return pause
}

// untilKept is how long the loop may wait, for a pause at most, before a site that was kept
// for this fetcher is due.
func (l *shardLoop) untilKept(want int, pause time.Duration) time.Duration {
	d, ok := l.kept.Until(time.Now())
	switch {
	case !ok:
		return pause
	case d <= 0 && want == 0:
		l.setHungry(true)
		return min(pause, heartbeat)
	}
	return min(pause, max(d, time.Millisecond))
}

func (l *shardLoop) setHungry(h bool) {
	if l.hungry.Swap(h) != h {
		if h {
			l.crawler.hungry.Add(1)
		} else {
			l.crawler.hungry.Add(-1)
		}
	}
}

// awaitWork waits for d, or until the loop is notified: a hungry one only when
// there is room for work, any other no sooner than Linger after its last tick,
// so that news that come one by one are looked at together.
func (l *shardLoop) awaitWork(ctx context.Context, d time.Duration) {
	defer l.setHungry(false)
	if d <= 0 {
		return
	}
	c := l.crawler
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		if l.hungry.Load() && c.mayAcquire() {
			// Looked at after hungry was set: no room that came before is missed. A little
			// room soon grows; a tick for each visit that ends would be dear.
			if room := c.room(); room > c.agenda.Size()/8 {
				return
			} else if room > 0 {
				flow.Sleep(ctx, c.stopping, min(d, shortOfRoom))
				return
			}
		}
		select {
		case <-t.C:
			return
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		if !l.hungry.Load() || c.isStopping() || !c.reliesOnLeases(l.shard, c.cfg.Elapsed()) {
			flow.Sleep(ctx, c.stopping, min(d, c.cfg.Linger-time.Since(l.began)))
			return
		}
	}
}
