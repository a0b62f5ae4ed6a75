package crawl

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/frontier"
)

const (
	heartbeat  = time.Second
	maxExpired = 16
	// visitSpan is how long a visit should last at its site's delay, and the
	// longest that one waits for its site's clock.
	visitSpan = 10 * time.Second
)

// lane is this fetcher's work on one shard. Its loop ticks and borrows; beside
// it one goroutine admits and one settles, each with its own batches, so that a
// slow shard delays nobody else.
type lane struct {
	w       *Worker
	shard   int
	known   *known
	spill   *spill // nil without an overflow
	admits  *admitter
	settles *settler

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
	began    time.Time // of the last tick
	extended time.Time

	mu    sync.Mutex
	loans map[string]*loan // by token

	trust sync.Mutex // held while known is filled or emptied
	epoch uint64     // as last read
}

func newLane(w *Worker, k int) *lane {
	l := &lane{w: w, shard: k, known: newKnown(w.cfg.KnownURLs / w.cfg.Frontier.Shards()),
		verdicts: w.count.verdictsOf(k), wake: make(chan struct{}, 1), loans: make(map[string]*loan), rev: -1}
	l.spill = newSpill(w, w.cfg.KnownURLs/w.cfg.Frontier.Shards())
	l.admits = newAdmitter(l)
	l.settles = newSettler(l)
	return l
}

// stir makes the loop look again soon.
func (l *lane) stir() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run ticks until the worker ends, or stops and nothing of this shard is out.
func (l *lane) run(ctx context.Context) {
	l.extended = time.Now()
	for ctx.Err() == nil && !(l.w.isStopping() && l.idle()) {
		next, err := l.step(ctx)
		l.asking.Store(0)
		if err != nil {
			l.w.fail(ctx, err)
			return
		}
		l.rest(ctx, next)
	}
}

// step is one tick and what follows from it. It returns how long nothing is to
// be done unless something stirs the lane.
func (l *lane) step(ctx context.Context) (time.Duration, error) {
	want := 0
	if l.w.mayLend() && l.w.nearLimit() {
		l.w.reread(ctx)
	}
	if l.w.mayLend() {
		want = l.w.slots.reserve()
	}
	granted := 0
	defer func() { l.w.slots.unreserve(want - granted) }()
	req := frontier.TickRequest{Want: want, MaxExpired: maxExpired}
	l.began = time.Now()
	l.asking.Store(l.began.UnixMilli())
	var held []*loan
	if l.began.Sub(l.extended) >= l.w.cfg.Lease/3 {
		held = l.heldLoans()
		for _, h := range held {
			req.Extend = append(req.Extend, h.visit.Lease)
		}
	}
	reply, err := l.w.cfg.Frontier.Tick(ctx, l.shard, req)
	if err != nil {
		return 0, err
	}
	l.ticked.Store(time.Now().UnixMilli())
	l.doubt()
	if held != nil {
		l.extend(held, reply.Gone, l.began)
	}
	l.paused.Store(reply.Paused)
	if err := l.keepTime(ctx, reply.Behind); err != nil {
		return 0, err
	}
	if reply.Rev != l.rev {
		if err := l.w.refresh(ctx); err != nil {
			return 0, err
		}
		l.rev = reply.Rev
	}
	if len(reply.Expired) > 0 {
		if _, err := l.w.cfg.Frontier.Reap(ctx, l.shard, reply.Expired); err != nil {
			return 0, err
		}
	}
	if granted, err = l.lend(ctx, reply.Due); err != nil {
		return 0, err
	}
	if took := time.Since(l.began); granted > 0 && took > lateCall {
		l.late.Add(int64(took))
	}
	return l.nextStep(want, len(reply.Due), &reply), nil
}

// standing is how long the time of a shard may stand still.
const standing = time.Second

// keepTime lets the time of a shard go on whose clock was set back.
func (l *lane) keepTime(ctx context.Context, behind time.Duration) error {
	if behind < standing {
		return nil
	}
	behind, err := l.w.cfg.Frontier.KeepTime(ctx, l.shard, standing)
	if err == nil && behind > 0 {
		l.w.cfg.Log.Warn("the clock of a shard's server was set back, its time goes on from where it was", "shard", l.shard, "by", behind)
	}
	return err
}

// nextStep says how long the lane may rest after a tick.
func (l *lane) nextStep(want, due int, reply *frontier.TickReply) time.Duration {
	next := reply.Next
	l.later.Store(next > 0)
	switch {
	case due > 0 && due == want:
		return 0 // there may be more
	case reply.Paused:
		return heartbeat
	case next == 0 && want == 0:
		l.setHungry(true)
		return heartbeat
	case next >= 0 && next < heartbeat:
		return max(next, time.Millisecond)
	}
	return heartbeat
}

func (l *lane) setHungry(h bool) {
	if l.hungry.Swap(h) != h {
		if h {
			l.w.slots.hungry.Add(1)
		} else {
			l.w.slots.hungry.Add(-1)
		}
	}
}

// rest waits for d or until something stirs the lane: a hungry one only when
// there is room for work, any other no sooner than Linger after its last tick,
// so that news that come one by one are looked at together.
func (l *lane) rest(ctx context.Context, d time.Duration) {
	defer l.setHungry(false)
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		if l.hungry.Load() && l.w.mayLend() && l.w.slots.idle() > 0 {
			return // looked at after hungry was set: no room that came before is missed
		}
		select {
		case <-t.C:
			return
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		if !l.hungry.Load() || l.w.isStopping() {
			sleep(ctx, l.w.stopping, min(d, l.w.cfg.Linger-time.Since(l.began)))
			return
		}
	}
}

// lend turns tickets into loans and starts them.
func (l *lane) lend(ctx context.Context, due []frontier.Ticket) (int, error) {
	if len(due) == 0 {
		return 0, nil
	}
	s := l.w.policy.Load().settings
	last := l.w.chance.take()
	visits, err := l.w.cfg.Frontier.Visit(ctx, l.shard, due, frontier.VisitLimits{
		URLs: s.VisitURLs, Span: visitSpan, Delay: s.Delay, Safe: !last,
	})
	if last && (err != nil || !slices.ContainsFunc(visits, func(v frontier.Visit) bool { return v.LastChance() })) {
		l.w.chance.give()
	}
	if err != nil {
		return 0, err
	}
	for _, v := range visits {
		ln := newLoan(l, v)
		l.mu.Lock()
		l.loans[v.Token] = ln
		l.mu.Unlock()
		l.w.loaned.Add(1)
		l.w.running.Go(ln.run)
	}
	return len(visits), nil
}

func (l *lane) heldLoans() []*loan {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := make([]*loan, 0, len(l.loans))
	for _, ln := range l.loans {
		held = append(held, ln)
	}
	return held
}

// extend applies what a tick said of the leases it was asked to extend.
func (l *lane) extend(held []*loan, gone []frontier.Lease, before time.Time) {
	l.extended = before
	lost := make(map[string]bool, len(gone))
	for _, g := range gone {
		lost[g.Token] = true
	}
	for _, h := range held {
		if lost[h.visit.Token] {
			l.drop(h)
		} else {
			h.extend(before.Add(l.w.cfg.Lease))
		}
	}
}

// drop ends a loan here; its requests are cancelled.
func (l *lane) drop(h *loan) {
	h.cancel()
	l.mu.Lock()
	_, there := l.loans[h.visit.Token]
	delete(l.loans, h.visit.Token)
	l.mu.Unlock()
	if there {
		l.w.loaned.Add(-1)
		if h.visit.LastChance() {
			l.w.chance.give()
		}
		l.w.stirHungry()
		if l.w.isStopping() {
			l.stir()
		}
	}
}

// idle reports whether nothing of this shard is in this fetcher's hands.
func (l *lane) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.loans) == 0 && l.admits.empty()
}
