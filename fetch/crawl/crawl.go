// Package crawl is a fetcher's part of a crawl: it leases sites from every shard,
// fetches their URLs, finds links while bytes arrive, and settles each URL in an
// order that loses nothing.
//
// A Crawler runs one loop for each shard, which ticks, acquires sites and extends their
// leases. A leased site is a visit: a record in memory that waits in the agenda for its
// next request. A worker serves one visit at a time. It owns the visit until it puts it
// back, finishes it, or hands it over to the next request. When robots.txt allows the URL
// and the clock has come, the worker makes one request, and one result comes out. What is
// kept of that is small (page): its content may be compared with others, its record goes to
// the sink, its candidates to their shards. When all have answered, its outcome is settled
// with its visit.
//
// A URL passes the files of this package in this order: shardloop, visit, robots, fetch,
// page, settle. They call downwards: internal/site (a visit's clock, agenda and rules),
// internal/work (one URL in, one result out), internal/flow (batches, and bounds of what
// waits). The file state has what they share. Beside them watch, status and feed look after
// the crawler as a whole, with internal/watch.
//
// One fetcher at a time makes requests to a site. A page is settled after its record is in
// the sink and its candidates are admitted.
//
// A crash loses nothing: what was not settled comes back when its lease ends. Pages whose
// record reached the sink and that were not settled are fetched once more.
package crawl

import (
	"context"
	"errors"
	"sync"
	"time"

	"seine/fetch/crawl/internal/flow"
	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/watch"
	"seine/fetch/crawl/internal/work"
)

// New returns a Crawler that Run starts.
func New(cfg Config) (*Crawler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.fillDefaults()
	pol, err := work.NewPolicy(cfg.Frontier.Settings())
	if err != nil {
		return nil, err
	}
	c := &Crawler{
		cfg: cfg, robots: site.NewRulesCache(), deadSites: site.NewDeadSites(cfg.GiveUp, cfg.Memory), known: flow.NewKnownURLs(cfg.KnownURLs),
		visitCfg: site.Config{Lease: cfg.Lease, Backoff: cfg.Backoff, GiveUp: cfg.GiveUp, GivesUp: cfg.ExitWhenDone},
		budget:   flow.NewBudget(), count: watch.NewCounters(time.Now()), backOffs: watch.NewBackOffs(),
		stopping: make(chan struct{}), returned: make(chan struct{}), lossPermit: site.LossPermit{Began: time.Now()},
	}
	if cfg.Handler != nil {
		c.handlers = watch.NewHandlers(c.count)
	}
	c.gate = flow.NewGate(cfg.OpenBytes, cfg.SinkPages, cfg.SinkWait, c.notifyHungry)
	c.aborted, c.abort = context.WithCancelCause(context.Background())
	c.policy.Store(pol)
	c.preparer, _ = cfg.Fetcher.(preparer)
	c.readers.New = func() any { return c.newReader() }
	c.work = c.newWork()
	c.agenda = site.NewAgenda(cfg.Concurrency, c.startWorker, c.notifyHungry)
	admit := &flow.AdmitConfig{
		Frontier: cfg.Frontier, Known: c.known, Linger: cfg.Linger, Stopping: c.stopping, IsCrowded: c.isCrowded,
		NotAcked: c.count.NotAcked, Overflown: c.count.Overflow,
	}
	if cfg.Overflow != nil {
		admit.Overflow, admit.Written = cfg.Overflow, flow.NewKnownURLs(cfg.KnownURLs)
	}
	for k := range cfg.Frontier.Shards() {
		c.shards = append(c.shards, c.newShard(k, admit))
	}
	return c, nil
}

// ID is this fetcher's name among the members of the crawl.
func (c *Crawler) ID() string { return c.cfg.ID }

// Stop asks for an orderly end: nothing new is started, what is open is
// finished, the rest goes back. Run returns when that is done. It may be called
// more than once, from anywhere.
func (c *Crawler) Stop() { c.stop() }

// Abort cuts requests short, ends the contexts of handlers, and waits until Run has
// returned err. What was open comes back when its lease ends. It may be called from
// anywhere but a handler; a Run that begins later returns err at once.
func (c *Crawler) Abort(err error) {
	c.abort(err)
	if c.running.Load() {
		<-c.returned
	}
}

// Run crawls until Stop, until there is nothing left (ExitWhenDone, IdleTimeout,
// the crawl's page limit), or until ctx ends or Abort is called, which cuts requests
// short; their URLs come back when the lease ends. It returns the error that made
// going on impossible, if one did. It runs once.
func (c *Crawler) Run(ctx context.Context) error {
	if !c.running.CompareAndSwap(false, true) {
		return errors.New("crawl: a Crawler runs once")
	}
	defer close(c.returned)
	if err := context.Cause(c.aborted); err != nil {
		return err
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	defer c.cancel(nil)
	defer context.AfterFunc(c.aborted, func() { c.cancel(context.Cause(c.aborted)) })()
	defer context.AfterFunc(c.ctx, c.drain)()
	c.recent.Begin(time.Now())
	c.pollCounters(c.ctx)
	c.claimPages(c.ctx)                         // the page limit holds from the first page on
	rear, stopRear := context.WithCancel(c.ctx) // batches outlive the shard loops
	var loops, others sync.WaitGroup
	for _, s := range c.shards {
		loops.Go(func() { newShardLoop(c, s).run(c.ctx) })
		others.Go(func() { c.fail(rear, s.admitter.Run(rear)) })
		others.Go(func() { c.fail(rear, s.deduper.Run(rear)) })
		others.Go(func() { c.settleVisits(rear, s) })
		others.Go(func() { c.keepRules(rear, s) })
	}
	others.Go(func() { c.watch(rear) })
	others.Go(func() { c.keepPages(rear) })
	others.Go(func() { c.drainFeed(rear) })
	loops.Wait()
	if c.awaitVisits() {
		c.agenda.Close()
	}
	stopRear()
	others.Wait()
	c.readLast()
	if err := context.Cause(c.ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if err := c.fault.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// awaitVisits waits until every site is released, and reports whether it is.
func (c *Crawler) awaitVisits() bool {
	ended := make(chan struct{})
	go func() { c.visiting.Wait(); close(ended) }()
	select {
	case <-ended:
		return true
	case <-c.ctx.Done():
	}
	select {
	case <-ended:
		return true
	case <-time.After(cutTime):
		return false
	}
}

// readLast reads the counters as they are at the end. Where no answer comes, what
// was read before counts.
func (c *Crawler) readLast() {
	short, cancel := context.WithTimeout(c.ctx, pollTime)
	defer cancel()
	_ = c.readCounters(short)
}
