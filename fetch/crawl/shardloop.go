package crawl

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/fetch/crawl/internal/flow"
	"seine/fetch/crawl/internal/site"
	"seine/frontier"
	"seine/frontier/canon"
)

const (
	heartbeat  = time.Second
	maxExpired = 100 // leases taken back a tick; where there may be more, the next one comes at once
	// visitSpan is how long a visit should last at its site's delay, and the
	// longest that one waits for its site's clock.
	visitSpan = 10 * time.Second
)

// shardLoop is this fetcher's work on one shard. It ticks and borrows; beside it
// one goroutine admits and one settles, each with its own batches, so that a slow
// shard delays nobody else.
type shardLoop struct {
	crawler  *Crawler
	shard    int
	overflow *overflowQueue // nil without an overflow
	admitter *admitter
	deduper  *deduper

	settlements *flow.Batcher[*visit] // that have something to say
	rules       *flow.Batcher[frontier.OriginRules]

	verdicts [4]*metrics.Counter // by frontier.Verdict

	wake   chan struct{} // something may be due, there is room for work, or the end is near
	hungry atomic.Bool   // due sites are there and no room was
	later  atomic.Bool   // the shard has sites that are due later
	paused atomic.Bool
	ticked atomic.Int64 // when the shard last answered, Unix ms
	asking atomic.Int64 // since when a call has been out, Unix ms, 0 = none
	late   atomic.Int64 // time spent on borrowing over late answers, ns

	// Of the loop:
	rev      int64
	began    time.Time     // of the last tick
	extended time.Duration // when leases were named last, by Config.Elapsed
	then     int64         // the shard's time at the last tick, 0 = there was none
	thenAt   time.Duration // when that began, by Config.Elapsed

	leases site.LeaseWatch

	mu     sync.Mutex
	visits map[string]*visit // by token
	parked []*visit          // they wait until the shard's leases can be relied on

	epoch atomic.Uint64 // of the connection, as last read: what is known of before is not any more
}

func newShardLoop(c *Crawler, k int) *shardLoop {
	l := &shardLoop{crawler: c, shard: k,
		verdicts: c.count.Verdicts(k), wake: make(chan struct{}, 1), visits: make(map[string]*visit), rev: -1}
	l.overflow = newOverflowQueue(l)
	l.admitter = newAdmitter(l)
	l.settlements = flow.NewBatcher[*visit](maxSettle, c.cfg.Linger)
	l.deduper = newDeduper(l)
	l.rules = flow.NewBatcher[frontier.OriginRules](maxRulesKept, c.cfg.Linger)
	return l
}

// notify makes the loop look again soon.
func (l *shardLoop) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run ticks until the crawler ends, or stops and nothing of this shard is out.
func (l *shardLoop) run(ctx context.Context) {
	first := l.leases.Mark(l.crawler.cfg.Elapsed(), l.checkEpoch())
	l.extended = first.At
	l.leases.Begin(first)
	for ctx.Err() == nil && !(l.crawler.isStopping() && l.idle()) {
		next, err := l.tick(ctx)
		l.asking.Store(0)
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
	want := 0
	if l.crawler.mayBorrow() {
		want = l.crawler.reserve()
	}
	defer l.crawler.unreserve(want)
	takes, patience := l.crawler.takes(want)
	mark := l.leases.Mark(l.crawler.cfg.Elapsed(), l.checkEpoch())
	req := frontier.TickRequest{Want: takes, Patience: patience, MaxExpired: maxExpired, QueuedEntry: standing, LastNow: l.then, Elapsed: mark.At - l.thenAt}
	l.began = time.Now()
	l.asking.Store(l.began.UnixMilli())
	var held []*visit
	named := mark.At-l.extended >= l.crawler.cfg.Lease/3 || !l.leases.IsReliable(mark.At, mark.Epoch, l.crawler.cfg.Lease)
	if named {
		held = l.held()
		for _, v := range held {
			req.Extend = append(req.Extend, v.lent.Lease)
		}
	}
	reply, err := l.crawler.cfg.Frontier.Tick(ctx, l.shard, req)
	if err != nil {
		return 0, err
	}
	l.ticked.Store(time.Now().UnixMilli())
	l.checkEpoch()
	if named {
		l.extend(held, reply.Gone, mark.At)
	}
	l.leases.Answered(mark, named)
	l.unpark()
	l.then, l.thenAt = reply.Now, mark.At
	if took := time.Since(l.began); reply.ClockJump > took {
		l.crawler.cfg.Log.Warn("the clock of a shard's server was set forward, its time goes on from where it was", "shard", l.shard, "by", reply.ClockJump)
	}
	l.paused.Store(reply.Paused)
	if reply.Lag >= standing {
		l.crawler.cfg.Log.Warn("the clock of a shard's server was set back, its time goes on from where it was", "shard", l.shard, "by", reply.Lag)
	}
	if reply.Rev != l.rev {
		if err := l.crawler.refresh(ctx); err != nil {
			return 0, err
		}
		l.rev = reply.Rev
	}
	reaped := 0
	if len(reply.Expired) > 0 {
		if reaped, err = l.crawler.cfg.Frontier.Reap(ctx, l.shard, reply.Expired); err != nil {
			return 0, err
		}
	}
	granted, err := l.borrow(ctx, reply.Due)
	if err != nil {
		return 0, err
	}
	if took := time.Since(l.began); granted > 0 && took > lateCall {
		l.late.Add(int64(took))
	}
	if reaped > 0 && len(reply.Expired) == maxExpired {
		return 0, nil
	}
	return l.nextTick(takes, len(reply.Due), &reply), nil
}

// lateCall is what an answer takes at least to be called late.
const lateCall = 20 * time.Millisecond

// standing is how long the time of a shard may stand still.
const standing = time.Second

// nextTick says how long the loop may wait after a tick.
func (l *shardLoop) nextTick(want, due int, reply *frontier.TickReply) time.Duration {
	next := reply.Next
	l.later.Store(next > 0)
	pause, spread := heartbeat, time.Duration(0)
	if l.idle() { // nobody waits for this fetcher: the more there are, the less each looks
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

// shortOfRoom is how long a shard loop waits for more room where there is a little.
const shortOfRoom = 10 * time.Millisecond

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
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		if l.hungry.Load() && l.crawler.mayBorrow() {
			// Looked at after hungry was set: no room that came before is missed. A little
			// room soon grows; a tick for each visit that ends would be dear.
			if room := l.crawler.room(); room > l.crawler.agenda.Size()/8 {
				return
			} else if room > 0 {
				sleep(ctx, l.crawler.stopping, min(d, shortOfRoom))
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
		if !l.hungry.Load() || l.crawler.isStopping() || !l.reliesOnLeases(l.crawler.cfg.Elapsed()) {
			sleep(ctx, l.crawler.stopping, min(d, l.crawler.cfg.Linger-time.Since(l.began)))
			return
		}
	}
}

// borrow makes visits of tickets and starts them.
func (l *shardLoop) borrow(ctx context.Context, due []frontier.Ticket) (int, error) {
	if len(due) == 0 {
		return 0, nil
	}
	s := l.crawler.policy.Load().Settings
	at, asked := l.crawler.cfg.Elapsed(), time.Now()
	last := l.crawler.lossPermit.acquire()
	visits, err := l.crawler.cfg.Frontier.Visit(ctx, l.shard, due, frontier.VisitLimits{
		URLs: s.VisitURLs, Undelayed: undelayed(s.VisitURLs), Span: visitSpan, Delay: s.Delay, Share: s.RecrawlShare, Safe: !last,
	})
	if last && (err != nil || !slices.ContainsFunc(visits, func(lent frontier.Visit) bool { return lent.LastChance() })) {
		l.crawler.lossPermit.release()
	}
	if err != nil {
		return 0, err
	}
	fresh := make([]*visit, 0, len(visits))
	var met []*visit // whose site somebody asked before: of others the shard has no rules, which hold for a day at most
	for _, lent := range visits {
		v := newVisit(l, lent, at+lent.Deadline.Sub(asked))
		v.usual, v.until = s.VisitURLs, at+visitSpan
		fresh = append(fresh, v)
		if !lent.First {
			met = append(met, v)
		}
		l.mu.Lock()
		l.visits[lent.Token] = v
		l.mu.Unlock()
		l.crawler.visits.Add(1)
		l.crawler.visiting.Add(1)
	}
	err = l.loadRules(ctx, met)
	for _, v := range fresh {
		l.crawler.agenda.Put(v, time.Time{})
	}
	return len(visits), err
}

// undelayed is how many URLs a visit may have where no delay keeps it: between two
// visits the site waits for several calls of its shard. It grows with what the crawl
// asks for, and one that asks for one URL at a time gets that.
func undelayed(urls int) int { return min(urls*urls, max(urls, maxUndelayed)) }

// maxUndelayed bounds what a fetcher that is lost takes along.
const maxUndelayed = 256

// park has a visit wait until the leases of the shard can be relied on.
func (l *shardLoop) park(v *visit) {
	l.mu.Lock()
	l.parked = append(l.parked, v)
	l.mu.Unlock()
	if l.reliesOnLeases(l.crawler.cfg.Elapsed()) || l.crawler.isStopping() || l.crawler.ctx.Err() != nil {
		l.unpark()
		return
	}
	l.notify()
}

// unpark has the visits served that were parked: they look for themselves.
func (l *shardLoop) unpark() {
	l.mu.Lock()
	parked := l.parked
	l.parked = nil
	l.mu.Unlock()
	for _, v := range parked {
		l.crawler.agenda.Put(v, time.Time{})
	}
}

func (l *shardLoop) held() []*visit {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := make([]*visit, 0, len(l.visits))
	for _, v := range l.visits {
		held = append(held, v)
	}
	return held
}

// holds reports whether a visit was not dropped.
func (l *shardLoop) holds(v *visit) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.visits[v.lent.Token] == v
}

// extend applies what a tick said of the leases it was asked to extend.
func (l *shardLoop) extend(held []*visit, gone []frontier.Lease, before time.Duration) {
	l.extended = before
	lost := make(map[string]bool, len(gone))
	for _, g := range gone {
		lost[g.Token] = true
	}
	for _, v := range held {
		if lost[v.lent.Token] {
			l.drop(v)
		} else {
			v.extend(before + l.crawler.cfg.Lease)
		}
	}
}

// drop ends a visit here; its requests are cancelled.
func (l *shardLoop) drop(v *visit) {
	v.cancel()
	l.mu.Lock()
	_, there := l.visits[v.lent.Token]
	delete(l.visits, v.lent.Token)
	l.mu.Unlock()
	if there {
		l.crawler.visits.Add(-1)
		if v.lent.lastChance {
			l.crawler.lossPermit.release()
		}
		l.crawler.notifyHungry()
		if l.crawler.isStopping() {
			l.notify()
		}
	}
}

// silentFor is for how long the shard has owed an answer.
func (l *shardLoop) silentFor(now time.Time) time.Duration {
	asking := l.asking.Load()
	if asking == 0 {
		return 0
	}
	return now.Sub(time.UnixMilli(asking))
}

// idle reports whether nothing of this shard is open in this fetcher.
func (l *shardLoop) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.visits) == 0 && l.admitter.empty()
}

// checkEpoch looks at the connection epoch of the shard, which rises when the shard
// may have lost what it acknowledged: its connection broke or its master changed.
// Each tick does, for links that are all known reach nobody who would notice. It
// returns the epoch.
func (l *shardLoop) checkEpoch() uint64 {
	if l.crawler.cfg.Epoch == nil {
		return 0
	}
	e := l.crawler.cfg.Epoch(l.shard)
	for { // epochs only rise, whoever is late
		last := l.epoch.Load()
		if e <= last || l.epoch.CompareAndSwap(last, e) {
			return max(e, last)
		}
	}
}

// knows reports whether the shard is known to have f.
func (l *shardLoop) knows(f canon.Fingerprint) bool { return l.crawler.known.Has(f, l.epoch.Load()) }

// knows is shardLoop.knows of the shard of f.
func (c *Crawler) knows(f canon.Fingerprint) bool { return c.loopOf(f).knows(f) }

// reliesOnLeases reports whether a request may start at now, by Config.Elapsed, by
// what is known of the leases of the shard. A tick is due when it may not.
func (l *shardLoop) reliesOnLeases(now time.Duration) bool {
	return l.leases.IsReliable(now, l.checkEpoch(), l.crawler.cfg.Lease)
}

// warmUp is how long a fetcher lives before it borrows URLs that two fetchers
// died with: where processes are ended again and again, by whatever, a third
// death so soon says nothing about the URL.
const warmUp = 10 * time.Second

// lossPermit is the permit to borrow a URL that two fetchers were lost with,
// and that is dead if this one is. There is one, so that a loss falls on one
// such URL, and a young fetcher has none.
type lossPermit struct {
	began time.Time // when the fetcher was made
	taken atomic.Bool
}

func (lp *lossPermit) acquire() bool { return time.Since(lp.began) >= warmUp && !lp.taken.Swap(true) }

func (lp *lossPermit) release() { lp.taken.Store(false) }
