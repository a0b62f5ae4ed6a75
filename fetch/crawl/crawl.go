// Package crawl is the worker: it borrows visits from every shard, fetches
// their URLs, finds links while bytes arrive, and gives everything back in an
// order that loses nothing.
//
// A lane per shard ticks, borrows and settles. A visit (loan) belongs to one
// goroutine that keeps its site's clock. A request runs in a slot by one hand,
// which owns all scratch memory of a request. What is left of a page when its
// body ended is small (page): it waits for the sink, then for the verdicts on
// its links, and is then settled in its visit.
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

	"seine/fetch/robots"
	"seine/frontier"
	"seine/frontier/canon"
)

// Frontier is what the worker needs of a crawl's queue.
type Frontier interface {
	Shards() int
	Of(canon.Fingerprint) int
	Layout() frontier.Layout
	Settings() *frontier.Settings
	Refresh(context.Context) (*frontier.Settings, error)
	Admit(ctx context.Context, shard int, batch []frontier.Candidate, verdicts []frontier.Verdict) error
	Tick(ctx context.Context, shard int, req frontier.TickRequest) (frontier.TickReply, error)
	KeepTime(ctx context.Context, shard int, long time.Duration) (time.Duration, error)
	Visit(ctx context.Context, shard int, due []frontier.Ticket, limits frontier.VisitLimits) ([]frontier.Visit, error)
	Settle(ctx context.Context, shard int, batch []frontier.Settlement) ([]frontier.Settled, error)
	Reap(ctx context.Context, shard int, expired []frontier.Expired) (int, error)
	Robots(ctx context.Context, shard int, origin string) (rules []byte, ttl time.Duration, ok bool, err error)
	SetRobots(ctx context.Context, shard int, origin string, rules []byte, ttl time.Duration) error
	Stats(context.Context) ([]frontier.ShardStats, error)
	Finished(context.Context) (bool, error)
}

// Worker runs one fetcher's part of a crawl.
type Worker struct {
	cfg    Config
	lanes  []*lane
	slots  *slots
	flow   *flow
	budget budget
	limit  limit
	rate   rate
	robots *robotsCache
	policy atomic.Pointer[policy]
	count  *counters
	given  *given
	stats  atomic.Pointer[[]frontier.ShardStats] // of each shard, as last read
	totals atomic.Pointer[frontier.ShardStats]   // their sum

	ctx      context.Context // ends when requests are to be cut
	cancel   context.CancelCauseFunc
	stopping chan struct{} // closed when nothing new is to be started
	stopOnce sync.Once
	fault    atomic.Pointer[error] // first error that made the worker stop in order
	renew    sync.Mutex
	reading  sync.Mutex     // of the counters of all shards
	readAt   time.Time      // when the last reading began; guarded by reading
	running  sync.WaitGroup // visits
	chance   chance
	ended    atomic.Int64 // when a request last ended, Unix ms
	loaned   atomic.Int64 // visits not settled
	resting  atomic.Int64 // visits that wait for their site's clock
	writing  atomic.Int64 // hands that wait for the sink to take a record
	sinking  atomic.Int64 // pages whose record is on its way to the sink
	linking  atomic.Int64 // pages whose links wait for verdicts
}

// New returns a worker that Run starts.
func New(cfg Config) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.fillDefaults()
	w := &Worker{cfg: cfg, robots: newRobotsCache(), given: newGiven(cfg.GiveUp), count: newCounters(), stopping: make(chan struct{})}
	w.chance.began = time.Now()
	w.flow = newFlow(cfg.OpenBytes, w.stirHungry)
	w.budget.exact = cfg.Exact
	p, err := newPolicy(cfg.Frontier.Settings())
	if err != nil {
		return nil, err
	}
	w.policy.Store(p)
	w.slots = newSlots(cfg.Concurrency, w.newHand, w.stirHungry)
	for k := range cfg.Frontier.Shards() {
		w.lanes = append(w.lanes, newLane(w, k))
	}
	return w, nil
}

// Stop asks for an orderly end: nothing new is started, what is open is
// finished, the rest goes back. Run returns when that is done. It may be called
// more than once, from anywhere.
func (w *Worker) Stop() {
	w.stopOnce.Do(func() {
		close(w.stopping)
		for _, l := range w.lanes {
			l.stir()
		}
	})
}

// endWith is Stop with the error that Run will return.
func (w *Worker) endWith(err error) {
	w.fault.CompareAndSwap(nil, &err)
	w.Stop()
}

func (w *Worker) isStopping() bool {
	select {
	case <-w.stopping:
		return true
	default:
		return false
	}
}

// fail ends the worker at once with an error, unless ctx ended anyway.
func (w *Worker) fail(ctx context.Context, err error) {
	if ctx.Err() == nil {
		w.cancel(err)
	}
}

// Run crawls until Stop, until there is nothing left (ExitWhenDone, IdleTimeout,
// the crawl's page limit), or until ctx ends, which cuts requests short; what
// they held comes back when its lease ends. It returns the error that made going
// on impossible, if one did.
func (w *Worker) Run(ctx context.Context) error {
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	defer w.cancel(nil)
	w.ended.Store(time.Now().UnixMilli())
	w.poll(w.ctx)                               // the page limit holds from the first page on
	back, stopBack := context.WithCancel(w.ctx) // admitters and settlers outlive the lanes
	var lanes, rear sync.WaitGroup
	for _, l := range w.lanes {
		lanes.Go(func() { l.run(w.ctx) })
		rear.Go(func() { l.admits.run(back) })
		rear.Go(func() { l.settles.run(back) })
	}
	rear.Go(func() { w.watch(back) })
	rear.Go(func() { w.feed(back) })
	lanes.Wait()
	w.awaitVisits()
	stopBack()
	rear.Wait()
	if err := context.Cause(w.ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if err := w.fault.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// giveBack returns a page to the budget.
func (w *Worker) giveBack() {
	w.budget.giveBack()
	w.stirHungry()
}

// cutTime is how long visits may take to end when requests are cut. One whose
// record cannot be handed to a sink that takes none is left behind: closing the
// sink frees it.
const cutTime = 3 * time.Second

// awaitVisits waits until every visit ended.
func (w *Worker) awaitVisits() {
	ended := make(chan struct{})
	go func() { w.running.Wait(); close(ended) }()
	select {
	case <-ended:
		return
	case <-w.ctx.Done():
	}
	select {
	case <-ended:
	case <-time.After(cutTime):
	}
}

// mayLend reports whether new visits may be borrowed. What a sink that fails
// just now could not take would only wait, and be fetched again after a crash.
func (w *Worker) mayLend() bool {
	return !w.isStopping() && w.budget.mayLend() && !w.flow.blocked() && !w.sinkFails() && w.loaned.Load() < int64(16*w.cfg.Concurrency)
}

func (w *Worker) laneOf(f canon.Fingerprint) *lane { return w.lanes[w.cfg.Frontier.Of(f)] }

// stirHungry wakes the lanes that wait for room.
func (w *Worker) stirHungry() {
	if w.slots.hungry.Load() == 0 {
		return
	}
	for _, l := range w.lanes {
		if l.hungry.Load() {
			l.stir()
		}
	}
}

// refresh reads the crawl's settings again, one lane at a time, so that older
// ones never replace newer.
func (w *Worker) refresh(ctx context.Context) error {
	w.renew.Lock()
	defer w.renew.Unlock()
	s, err := w.cfg.Frontier.Refresh(ctx)
	if err != nil {
		return err
	}
	p, err := newPolicy(s)
	if err != nil {
		w.cfg.Log.Error("settings of the crawl are unusable, going on with the last ones", "err", err)
		return nil
	}
	w.policy.Store(p)
	return nil
}

// robotsAgent is our name in robots.txt.
func (w *Worker) robotsAgent() string {
	s := w.policy.Load().settings
	return cmp.Or(robots.Token(s.RobotsAgent), robots.Token(s.UserAgent), w.cfg.Agent)
}
