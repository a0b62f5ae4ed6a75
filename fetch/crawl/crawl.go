// Package crawl is a fetcher's part of a crawl: it leases sites from every shard,
// fetches their URLs, finds links while bytes arrive, and gives everything back in an
// order that loses nothing.
//
// A Crawler runs one loop for each shard (shardLoop), which ticks, leases sites and
// extends leases. A leased site is a visit: a record in memory that waits in the agenda
// for its next request. A worker serves one visit at a time. It owns the visit until it
// puts it back, ends it, or hands it over to the next request. When robots.txt allows the
// URL and the clock has come, the worker makes one request, and one result comes out. What
// is kept of that is small (page): its content may be compared with others (deduper), its
// record goes to the sink, its candidates to their shards (admitter), and when all have
// answered, its outcome is settled with its visit.
//
// So a URL passes through the files in this order: shardloop, visit, robots, worker,
// internal/work, page, duplicates, admit, settle; the others hold what these ask.
// internal/site knows clocks, agenda, rules and leases. internal/work makes a result of
// one URL. internal/flow gathers batches and bounds what waits.
//
// A site is asked by one fetcher at a time. A page is settled after its record is in the
// sink and its candidates are admitted.
//
// A crash loses nothing: what was not settled comes back when its lease ends.
// Pages whose record reached the sink and that were not settled are fetched
// once more.
package crawl

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"seine/fetch"
	"seine/fetch/crawl/internal/flow"
	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/watch"
	"seine/fetch/crawl/internal/work"
	"seine/fetch/robots"
	"seine/frontier"
	"seine/frontier/canon"
)

// Frontier is what a Crawler needs of a crawl's queue.
type Frontier interface {
	frontier.Crawl
	frontier.Queue
	frontier.Contents
	frontier.Rules
	frontier.Counts
	frontier.Pages
}

// preparer is a Fetcher that resolves names, and spaces requests to one address
// out, before a worker is needed.
type preparer interface {
	Prepare(ctx context.Context, url string) (fetch.Reservation, error)
	SetFetchers(all, crowded int, self bool)
	Crowded() (hosts int, lately bool)
}

// Crawler runs one fetcher's part of a crawl.
type Crawler struct {
	cfg       Config
	loops     []*shardLoop
	agenda    *site.Agenda[worker, visit]
	hungry    atomic.Int32 // shard loops that know of due sites and found no room
	preparer  preparer     // nil: names are asked for by the fetch itself
	gate      *flow.Gate
	budget    *flow.Budget
	limit     watch.Limit
	cpu       watch.CPUMeter
	late      watch.LateMeter
	rate      watch.Rate
	recent    watch.Recent
	robots    *site.RulesCache
	readers   sync.Pool // of *work.Reader, for shard loops
	policy    atomic.Pointer[work.Policy]
	work      *work.Config
	count     *watch.Counters
	handlers  *watch.Handlers // nil without a Handler
	deadSites *site.DeadSites
	known     *flow.KnownURLs
	written   *flow.KnownURLs        // whose lines are in the overflow; nil without one
	ended     atomic.Pointer[string] // why it ended by itself
	backOffs  *watch.BackOffs
	stats     atomic.Pointer[[]frontier.ShardStats] // of each shard, as last read
	totals    atomic.Pointer[frontier.ShardStats]   // their sum

	ctx        context.Context // ends when requests are to be cut
	cancel     context.CancelCauseFunc
	aborted    context.Context
	abort      context.CancelCauseFunc
	running    atomic.Bool
	returned   chan struct{} // closed when Run returns
	stopping   chan struct{} // closed when nothing new is to be started
	stopOnce   sync.Once
	fault      atomic.Pointer[error] // first error that made the crawler stop in order
	renew      sync.Mutex
	live       atomic.Int64   // programs at work on the crawl
	leased     atomic.Int64   // sites that all fetchers held lately
	othersRoom atomic.Bool    // another fetcher could fetch more sites
	seeding    atomic.Bool    // this process admits seeds
	visiting   sync.WaitGroup // visits whose site is not free
	reserved   atomic.Int64   // visits that shard loops mean to borrow
	lossPermit lossPermit
	visits     atomic.Int64 // visits not settled
	writing    atomic.Int64 // records that the sink has not taken over yet
	admitting  atomic.Int64 // pages whose candidates wait for verdicts
}

// New returns a Crawler that Run starts.
func New(cfg Config) (*Crawler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.fillDefaults()
	c := &Crawler{cfg: cfg, robots: site.NewRulesCache(), backOffs: watch.NewBackOffs(), deadSites: site.NewDeadSites(cfg.GiveUp, cfg.Memory), count: watch.NewCounters(time.Now()), stopping: make(chan struct{}),
		known: flow.NewKnownURLs(cfg.KnownURLs)}
	if cfg.Overflow != nil {
		c.written = flow.NewKnownURLs(cfg.KnownURLs)
	}
	c.lossPermit.began = time.Now()
	if cfg.Handler != nil {
		c.handlers = watch.NewHandlers(c.count)
	}
	c.gate = flow.NewGate(cfg.OpenBytes, cfg.SinkPages, cfg.SinkWait, c.notifyHungry)
	c.budget = flow.NewBudget()
	c.aborted, c.abort = context.WithCancelCause(context.Background())
	c.returned = make(chan struct{})
	pol, err := work.NewPolicy(cfg.Frontier.Settings())
	if err != nil {
		return nil, err
	}
	c.policy.Store(pol)
	c.readers.New = func() any { return c.newReader() }
	c.work = c.newWork()
	c.agenda = site.NewAgenda(cfg.Concurrency, (*worker).serve, c.newWorker, c.notifyHungry)
	c.preparer, _ = cfg.Fetcher.(preparer)
	for k := range cfg.Frontier.Shards() {
		c.loops = append(c.loops, newShardLoop(c, k))
	}
	return c, nil
}

// ID is this fetcher's name among the members of the crawl.
func (c *Crawler) ID() string { return c.cfg.ID }

// Stop asks for an orderly end: nothing new is started, what is open is
// finished, the rest goes back. Run returns when that is done. It may be called
// more than once, from anywhere.
func (c *Crawler) Stop() {
	c.stopOnce.Do(func() {
		close(c.stopping)
		c.drain()
		for _, l := range c.loops {
			l.notify()
		}
	})
}

// Abort cuts requests short, ends the contexts of handlers, and waits until Run has
// returned err. What was open comes back when its lease ends. It may be called from
// anywhere but a handler; a Run that begins later returns err at once.
func (c *Crawler) Abort(err error) {
	c.abort(err)
	if c.running.Load() {
		<-c.returned
	}
}

// drain lets no visit wait any more: each ends when it is served.
func (c *Crawler) drain() {
	c.agenda.Drain()
	for _, l := range c.loops {
		l.unpark()
	}
}

// endWith is Stop with the error that Run will return.
func (c *Crawler) endWith(err error) {
	c.fault.CompareAndSwap(nil, &err)
	c.Stop()
}

func (c *Crawler) isStopping() bool {
	select {
	case <-c.stopping:
		return true
	default:
		return false
	}
}

// fail ends the crawler at once with an error, unless ctx ended anyway or the
// answer was late: silence is waited out.
func (c *Crawler) fail(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
		c.cancel(err)
	}
}

// Run crawls until Stop, until there is nothing left (ExitWhenDone, IdleTimeout,
// the crawl's page limit), or until ctx ends or Abort is called, which cuts requests
// short; what they held comes back when its lease ends. It returns the error that made
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
	c.holdPages(c.ctx)                          // the page limit holds from the first page on
	back, stopBack := context.WithCancel(c.ctx) // admitters and settlers outlive the shard loops
	var loops, rear sync.WaitGroup
	for _, l := range c.loops {
		loops.Go(func() { l.run(c.ctx) })
		rear.Go(func() { l.admitter.run(back) })
		rear.Go(func() { l.deduper.run(back) })
		rear.Go(func() { l.settle(back) })
		rear.Go(func() { l.keepRules(back) })
	}
	rear.Go(func() { c.watch(back) })
	rear.Go(func() { c.keepPages(back) })
	rear.Go(func() { c.feed(back) })
	loops.Wait()
	if c.awaitVisits() {
		c.agenda.Close()
	}
	stopBack()
	rear.Wait()
	c.readLast()
	if err := context.Cause(c.ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if err := c.fault.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// readLast reads the counters as they are at the end. Where no answer comes, what
// was read before counts.
func (c *Crawler) readLast() {
	short, cancel := context.WithTimeout(c.ctx, pollTime)
	defer cancel()
	_ = c.readCounters(short)
}

// giveBack returns a page to the budget.
func (c *Crawler) giveBack() {
	c.budget.Return()
	c.notifyHungry()
}

// cutTime is how long visits may take to end when requests are cut. One whose
// record cannot be handed to a sink that takes none is left behind: closing the
// sink frees it.
const cutTime = 3 * time.Second

// awaitVisits waits until every site is free again, and reports whether it is.
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

// mayBorrow reports whether more sites may be borrowed. What a sink that fails
// just now could not take would only wait, and be fetched again after a crash.
func (c *Crawler) mayBorrow() bool {
	return !c.isStopping() && c.budget.MayStart() && !c.gate.IsBlocked() && c.cfg.Sink.Err() == nil && c.lack() == ""
}

// delayed is how many visits wait for their site's clock.
func (c *Crawler) delayed() int {
	later, _ := c.agenda.Waiting()
	return later
}

// lack is what this machine lacks for fetching just now, a class of fetch, or "".
func (c *Crawler) lack() string {
	if s, ok := c.cfg.Fetcher.(interface{ Short() string }); ok {
		return s.Short()
	}
	return ""
}

// room is how many sites may be borrowed now: as memory allows, and no more than
// workers come to soon, for what waits here another fetcher could ask.
func (c *Crawler) room() int {
	reserved := int(c.reserved.Load())
	return max(0, min(c.agenda.Room(), c.cfg.MaxVisits-int(c.visits.Load()))-reserved)
}

// fairShare is how many sites this fetcher may hold while another has room.
func (c *Crawler) fairShare() int64 { return c.leased.Load()/max(c.live.Load(), 1) + 1 }

// noteLeased takes in how many sites all fetchers hold. What they held before fades
// over some seconds, for many visits may end together.
func (c *Crawler) noteLeased(n int64) { c.leased.Store(max(n, c.leased.Load()*9/10)) }

// HasRoom reports whether this fetcher could fetch more sites, and holds less than its
// fair share.
func (c *Crawler) HasRoom() bool {
	return c.mayBorrow() && c.room() > 0 && c.visits.Load() < c.fairShare()
}

// Crowded reports whether hosts waited lately for their share of an address.
func (c *Crawler) Crowded() bool {
	if c.preparer == nil {
		return false
	}
	_, lately := c.preparer.Crowded()
	return lately
}

// takes is how many of the wanted sites this fetcher takes, and for how long each must
// have been due: while others have room, it takes no more than its share of fresh ones,
// and leaves the rest for as long as the others may take to look.
func (c *Crawler) takes(want int) (int, time.Duration) {
	if !c.othersRoom.Load() {
		return want, 0
	}
	if left := c.fairShare() - c.visits.Load(); left > 0 {
		return int(min(int64(want), left)), 0
	}
	return want, c.idlePause() + c.idleSpread()
}

// reserve takes half of the room for visits about to be borrowed; a shard loop
// that gets its whole wish asks again.
func (c *Crawler) reserve() int {
	n := (c.room() + 1) / 2
	c.reserved.Add(int64(n))
	return n
}

func (c *Crawler) unreserve(n int) {
	if n > 0 {
		c.reserved.Add(int64(-n))
		c.notifyHungry()
	}
}

// isCrowded reports whether half of what may be open is.
func (c *Crawler) isCrowded() bool {
	return c.gate.IsHalf() || c.visits.Load() >= int64(c.cfg.MaxVisits)/2
}

func (c *Crawler) loopOf(f canon.Fingerprint) *shardLoop { return c.loops[c.cfg.Frontier.Of(f)] }

// notifyHungry wakes the shard loops that wait for room.
func (c *Crawler) notifyHungry() {
	if c.hungry.Load() == 0 {
		return
	}
	for _, l := range c.loops {
		if l.hungry.Load() {
			l.notify()
		}
	}
}

// refresh reads the crawl's settings again, for one shard loop at a time, so that
// older ones never replace newer.
func (c *Crawler) refresh(ctx context.Context) error {
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

// robotsAgent is our name in robots.txt.
func (c *Crawler) robotsAgent() string {
	s := c.policy.Load().Settings
	return cmp.Or(robots.Token(s.RobotsAgent), robots.Token(s.UserAgent), c.cfg.Agent)
}
