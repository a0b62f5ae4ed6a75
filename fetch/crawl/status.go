package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"seine/fetch"
	"seine/frontier"
)

// What bounds a crawler's rate, as seine_crawl_limited_by names it.
const (
	limitEmpty       = "empty"
	limitPoliteness  = "politeness"
	limitUnreachable = "unreachable" // no site answers
	limitRefused     = "refused"     // all answers are refusals: 429, 503 and the like
	limitWorkers     = "workers"     // all of --concurrency are busy
	limitNetwork     = "network"     // answers are waited for
	limitDNS         = "dns"
	limitFiles       = fetch.ClassFiles
	limitPorts       = fetch.ClassPorts
	limitAddress     = "address" // hosts wait for their share of an address
	limitCPU         = "cpu"
	limitRedis       = "redis"
	limitReplica     = frontier.LimitReplica
	limitMemory      = "memory" // more sites may not be lent at once
	limitSink        = "sink"
	limitHandler     = "handler" // workers wait for the Handler
)

var limitNames = []string{limitEmpty, limitPoliteness, limitAddress, limitUnreachable, limitRefused, limitWorkers, limitNetwork, limitDNS, limitFiles, limitPorts, limitCPU, limitRedis, limitReplica, limitMemory, limitSink, limitHandler}

// bottleneck is what bounds the rate, as found once a second.
type bottleneck struct {
	now     atomic.Pointer[string]
	lastCPU time.Duration
	lastAt  time.Time
	late    []int64 // of each shard loop, as last read
	lateAt  time.Time
}

func (bn *bottleneck) get() string {
	if s := bn.now.Load(); s != nil {
		return *s
	}
	return limitEmpty
}

// Busy reports whether processors or Redis bound the crawl as it was found last,
// so that work that can wait should.
func (c *Crawler) Busy() bool {
	bound := c.bottleneck.get()
	return bound == limitCPU || bound == limitRedis
}

// unreachable reports whether what was asked lately failed, all of it.
func (c *Crawler) unreachable() bool { return onlyLately(&c.lastFailed, &c.lastAnswered) }

// refused reports whether sites answered lately, and nothing but refusals.
func (c *Crawler) refused() bool { return onlyLately(&c.lastRefused, &c.lastServed) }

// onlyLately reports whether bad came last, and good, which are both Unix ms, not for
// noneFor.
func onlyLately(bad, good *atomic.Int64) bool {
	last := good.Load()
	return bad.Load() > last && time.Since(time.UnixMilli(last)) > noneFor
}

// noneFor is for how long no site may have answered, or served a page, while others
// failed or refused.
const noneFor = 5 * time.Second

// findBottleneck looks from the back of a page's path to its front, and names
// what holds up the rest.
func (c *Crawler) findBottleneck() {
	busyCPU, late := c.bottleneck.cpuBusy(), c.anyLate()
	short := c.short()
	if short == fetch.ClassResolver {
		short = limitDNS
	}
	var name string
	handlers, hanging, _, _ := c.handling.now(time.Now())
	switch {
	case c.sinkStalls():
		name = limitSink
	case 2*handlers > c.agenda.Size():
		name = limitHandler
	case short != "":
		name = short
	case c.anyUnacked():
		name = limitReplica
	case c.gate.HoldsUp(), c.anyFull(), c.anySlow():
		name = limitRedis
	case busyCPU:
		name = limitCPU
	case c.agenda.Busy() >= c.agenda.Size():
		name = limitWorkers
	case c.hungry.Load() > 0 && c.visits.Load() >= int64(c.cfg.MaxVisits):
		name = limitMemory
	case late:
		name = limitRedis
	case hanging > 0, handlers > 0 && handlers == c.agenda.Busy():
		name = limitHandler
	default:
		name = c.limitOfSites()
	}
	c.bottleneck.now.Store(&name)
}

// limitOfSites is what bounds the rate where nothing on this side does.
func (c *Crawler) limitOfSites() string {
	waits, asks := c.delayed() > 0 || c.anyLater(), c.agenda.Busy() > 0
	switch {
	case !waits && !asks:
		return limitEmpty
	case c.unreachable():
		return limitUnreachable
	case c.refused():
		return limitRefused
	case c.addressesBind():
		return limitAddress
	case waits:
		return limitPoliteness
	}
	return limitNetwork
}

// addressesBind reports whether half of the visits that wait, or more, wait for their
// share of an address.
func (c *Crawler) addressesBind() bool {
	if c.preparer == nil {
		return false
	}
	hosts, _ := c.preparer.Crowded()
	return hosts > 0 && 2*hosts >= c.delayed()
}

// cpuBusy reports whether this process used 85% of the processors it may use
// since the last call.
func (bn *bottleneck) cpuBusy() bool {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return false
	}
	used := time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	now := time.Now()
	spent, wall := used-bn.lastCPU, now.Sub(bn.lastAt)
	bn.lastCPU, bn.lastAt = used, now
	return float64(spent) > 0.85*float64(wall)*float64(runtime.GOMAXPROCS(0))
}

// sinkStalls reports whether pages wait for the sink, the overflow or the disk that
// keeps the crawl: most of those that fill the flow, or most workers.
func (c *Crawler) sinkStalls() bool {
	return c.cfg.Sink.Err() != nil || c.unkept() != nil || c.overflowStalled() != nil || c.gate.HoldsUp() && int64(c.gate.WaitingPages()) > c.admitting.Load() || 2*c.writing.Load() > int64(c.agenda.Size())
}

// unkept is why what keeps the crawl takes no writes.
func (c *Crawler) unkept() error {
	if c.cfg.Fault == nil {
		return nil
	}
	return c.cfg.Fault()
}

// slowCall is how long a shard may take to answer a tick without being called
// slow.
const slowCall = 500 * time.Millisecond

// anySlow reports whether a shard owes an answer for long.
func (c *Crawler) anySlow() bool {
	now := time.Now().UnixMilli()
	for _, l := range c.loops {
		if at := l.asking.Load(); at > 0 && now-at > slowCall.Milliseconds() {
			return true
		}
	}
	return false
}

// lateCall is what an answer takes at least to be called late.
const lateCall = 20 * time.Millisecond

// anyLate reports whether borrowing from a shard filled most of the time since
// the last call, with answers that came late: there is work and there are
// workers, and both wait for Redis.
func (c *Crawler) anyLate() bool {
	bn := &c.bottleneck
	now := time.Now()
	wall := now.Sub(bn.lateAt)
	if bn.lateAt = now; bn.late == nil {
		bn.late = make([]int64, len(c.loops))
	}
	late := false
	for i, l := range c.loops {
		spent := l.late.Load()
		late = late || float64(spent-bn.late[i]) > 0.8*float64(wall)
		bn.late[i] = spent
	}
	return late
}

// anyFull reports whether candidates wait for room in a shard. Those that the
// overflow takes do not.
func (c *Crawler) anyFull() bool {
	for _, l := range c.loops {
		if l.admitter.hasParked() {
			return true
		}
	}
	return false
}

// unackedAfter is for how long no replica may have acknowledged admissions.
const unackedAfter = 2 * time.Second

// anyUnacked reports whether pages wait for replicas to acknowledge their candidates.
func (c *Crawler) anyUnacked() bool {
	now := time.Now()
	return slices.ContainsFunc(c.loops, func(l *shardLoop) bool { return l.admitter.unackedFor(now) > unackedAfter })
}

// anyLater reports whether a shard has sites that are due later.
func (c *Crawler) anyLater() bool {
	for _, l := range c.loops {
		if l.later.Load() {
			return true
		}
	}
	return false
}

// rateMeter is how many pages ended a second, over the last few, and by how much
// what is left grew a second, over the last minutes.
type rateMeter struct {
	bits   atomic.Uint64
	growth atomic.Uint64
	last   uint64
	found  uint64
	since  time.Time
	// Sums over time, the older the less.
	grown, spans float64
}

func (rm *rateMeter) get() float64 { return math.Float64frombits(rm.bits.Load()) }

// grows is found URLs less ended pages, a second.
func (rm *rateMeter) grows() float64 { return math.Float64frombits(rm.growth.Load()) }

// update takes the numbers of pages ended and of URLs found so far; once every few
// seconds it counts.
func (rm *rateMeter) update(pages, found uint64, now time.Time) {
	span := now.Sub(rm.since)
	if span < rateSpan {
		return
	}
	if !rm.since.IsZero() {
		ended := float64(pages - rm.last)
		rm.bits.Store(math.Float64bits(ended / span.Seconds()))
		fade := math.Exp(-span.Seconds() / growthSpan.Seconds())
		rm.grown = rm.grown*fade + float64(found-rm.found) - ended
		rm.spans = rm.spans*fade + span.Seconds()
		rm.growth.Store(math.Float64bits(rm.grown / rm.spans))
	}
	rm.last, rm.found, rm.since = pages, found, now
}

const (
	rateSpan = 3 * time.Second
	// growthSpan is how long what grew counts for, falling to a third of it: pages
	// with many links come now and then.
	growthSpan = 3 * time.Minute
)

// situation is what holds the crawler up at one moment.
type situation struct {
	at           time.Time
	shards       int
	silent, full int    // shards that do not answer, or have no room
	unacked      int    // shards whose replicas acknowledge nothing
	pressed      int    // shards whose memory is above the marks
	feedRefused  int    // elements of the feed, so far
	paused       int    // shards that lend nothing, as their operator said
	sink         error  // records cannot be written, or nil
	overflow     error  // nor candidates that find no room
	hasOverflow  bool   // there is an overflow
	hanging      int    // handlers that do not come back
	hangs        string // URL of the page of the one that runs for longest
}

// situation looks at what holds the crawler up now.
func (c *Crawler) situation(at time.Time) situation {
	s := situation{at: at, shards: len(c.loops), paused: c.pausedShards(), overflow: c.overflowStalled(), hasOverflow: c.cfg.Overflow != nil}
	for _, l := range c.loops {
		if asking := l.asking.Load(); asking > 0 && at.Sub(time.UnixMilli(asking)) > silentAfter {
			s.silent++
		}
		if l.admitter.isFull() {
			s.full++
		}
		if l.admitter.unackedFor(at) > unackedAfter {
			s.unacked++
		}
	}
	if stats := c.stats.Load(); stats != nil {
		for i := range *stats {
			if (*stats)[i].Memory.OverWatermark {
				s.pressed++
			}
		}
	}
	s.feedRefused = int(c.count.feedRefused.Get())
	s.sink = c.cfg.Sink.Err()
	_, s.hanging, _, s.hangs = c.handling.now(at)
	return s
}

func (c *Crawler) pausedShards() int {
	n := 0
	for _, l := range c.loops {
		if l.paused.Load() {
			n++
		}
	}
	return n
}

// Paused says that the crawl or shards of it are paused, "" when none is.
func (c *Crawler) Paused() string {
	switch n := c.pausedShards(); n {
	case 0:
		return ""
	case len(c.loops):
		return "the crawl is paused"
	default:
		return fmt.Sprintf("%d of %d shards are paused", n, len(c.loops))
	}
}

const (
	// tellAgain is how often trouble that grows is told of.
	tellAgain = time.Minute
	// calm is how long trouble must be away to be over, for a Redis at its limit has
	// room now and none a moment later.
	calm = 10 * time.Second
	// pauseSpread is how long a pause may take to be met in every shard.
	pauseSpread = 2 * time.Second
)

// trouble is of one kind, from when it is met until it stays away.
type trouble struct {
	told int       // shards, as last told; 0 = there is none
	at   time.Time // when that was
	met  time.Time // when it was met last
}

// update takes in how many shards are met by the trouble now, and says whether to
// tell that it began or grew, or that it is over.
func (tr *trouble) update(n int, at time.Time) (grew, over bool) {
	if n > 0 {
		tr.met = at
	}
	switch {
	case n > tr.told && (tr.told == 0 || at.Sub(tr.at) >= tellAgain):
		tr.told, tr.at = n, at
		return true, false
	case tr.told > 0 && n == 0 && at.Sub(tr.met) >= calm:
		tr.told = 0
		return false, true
	}
	return false, false
}

// updateErr is update for trouble that has a reason and no number.
func (tr *trouble) updateErr(err error, at time.Time) (began, over bool) {
	n := 0
	if err != nil {
		n = 1
	}
	return tr.update(n, at)
}

// pausedShards is the number of paused shards as last told.
type pausedShards struct {
	told, now int
	since     time.Time // now was met first
}

// update takes in how many shards are paused, and says whether to tell that.
func (ps *pausedShards) update(n int, at time.Time) bool {
	if n != ps.now {
		ps.now, ps.since = n, at
	}
	if n == ps.told || at.Sub(ps.since) < pauseSpread {
		return false
	}
	ps.told = n
	return true
}

// troubleLog is what the operator was told of.
type troubleLog struct {
	feedRefused                                             trouble
	silent, full, unacked, pressed, sink, overflow, hanging trouble
	paused                                                  pausedShards
}

// report logs what is new.
func (tl *troubleLog) report(log *slog.Logger, s situation) {
	count := func(n int) string { return fmt.Sprintf("%d of %d", n, s.shards) }
	if grew, over := tl.silent.update(s.silent, s.at); grew {
		log.Warn("shards that do not answer; the crawl goes on with them when they do", "shards", count(s.silent))
	} else if over {
		log.Info("all shards answer again")
	}
	if grew, over := tl.full.update(s.full, s.at); grew {
		does := "wait"
		if s.hasOverflow && s.overflow == nil {
			does = "go to the overflow"
		}
		log.Warn("shards without room: new URLs "+does+", nothing is lost; give Redis memory", "shards", count(s.full))
	} else if over {
		log.Info("all shards have room again")
	}
	if grew, over := tl.unacked.update(s.unacked, s.at); grew {
		log.Warn("no replica acknowledges new URLs; their pages wait, and nothing is lost; bring a replica of each master in step, or leave --ack out", "shards", count(s.unacked))
	} else if over {
		log.Info("replicas of all shards acknowledge new URLs again")
	}
	if grew, _ := tl.feedRefused.update(s.feedRefused, s.at); grew {
		log.Warn("elements of the feed were refused; `frontier dead list --cause feed` shows them", "refused", s.feedRefused)
	}
	if grew, over := tl.pressed.update(s.pressed, s.at); grew {
		log.Warn("shards above the memory mark: candidates of the sites with the longest queues are turned away there", "shards", count(s.pressed))
	} else if over {
		log.Info("memory of all shards is below the mark again: no candidates are turned away")
	}
	if began, over := tl.sink.updateErr(s.sink, s.at); began {
		log.Error("records cannot be written; nothing is fetched until they can", "err", s.sink)
	} else if over {
		log.Info("records are written again")
	}
	if began, over := tl.overflow.updateErr(s.overflow, s.at); began {
		log.Error("candidates that find no room cannot be written; their pages wait until they can, or Redis has room", "err", s.overflow)
	} else if over {
		log.Info("no candidates wait for the overflow any more")
	}
	if grew, over := tl.hanging.update(s.hanging, s.at); grew {
		log.Error("handlers do not come back; their workers and sites wait", "handlers", s.hanging, "longer_than", handlerHangs, "url", s.hangs)
	} else if over {
		log.Info("handlers come back again")
	}
	if was := tl.paused.told; tl.paused.update(s.paused, s.at) {
		switch {
		case s.paused == 0:
			log.Info("resumed: all shards lend again")
		case s.paused > was:
			log.Info("paused: nothing is borrowed there until `frontier resume`", "shards", count(s.paused))
		default:
			log.Info("resumed in part: the others lend again", "paused", count(s.paused))
		}
	}
}

// stallAfter is how long due sites may stand untouched before the crawler calls
// itself not ready.
const stallAfter = time.Minute

// silentAfter is how long a shard may owe an answer.
const silentAfter = 10 * time.Second

// Ready reports why the crawler is of no use right now: a shard that does not
// answer or is full, or due sites while nothing ended for a minute.
func (c *Crawler) Ready(ctx context.Context) error {
	var errs []error
	now := time.Now()
	ended := now.Sub(time.UnixMilli(c.lastEnded.Load()))
	for _, l := range c.loops {
		at, asking := l.ticked.Load(), l.asking.Load()
		switch {
		case at == 0:
			errs = append(errs, fmt.Errorf("crawl: shard %d has not answered yet", l.shard))
		case asking > 0 && now.Sub(time.UnixMilli(asking)) > silentAfter:
			errs = append(errs, fmt.Errorf("crawl: shard %d has not answered for %s", l.shard, now.Sub(time.UnixMilli(at)).Round(time.Second)))
		}
		if l.admitter.isFull() {
			errs = append(errs, fmt.Errorf("crawl: shard %d has no room: admission answers full%s", l.shard, c.overflowNote()))
		}
		if d := l.admitter.unackedFor(now); d > unackedAfter {
			errs = append(errs, fmt.Errorf("crawl: no replica of shard %d has acknowledged new URLs for %s; its pages wait", l.shard, d.Round(time.Second)))
		}
		if l.hungry.Load() && !l.paused.Load() && ended > stallAfter {
			errs = append(errs, fmt.Errorf("crawl: sites of shard %d are due and no page ended for %s", l.shard, ended.Round(time.Second)))
		}
	}
	errs = append(errs, c.unkept())
	if err := c.overflowStalled(); err != nil {
		errs = append(errs, fmt.Errorf("crawl: candidates that find no room cannot be written: %w", err))
	}
	return errors.Join(errs...)
}

// overflowNote says what becomes of candidates without room.
func (c *Crawler) overflowNote() string {
	if c.cfg.Overflow == nil || c.overflowErr() != nil {
		return ""
	}
	return "; its new links go to the overflow, fetching goes on"
}
