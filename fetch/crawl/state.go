package crawl

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/fetch"
	"seine/fetch/crawl/internal/flow"
	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/watch"
	"seine/fetch/crawl/internal/work"
	"seine/fetch/robots"
	"seine/frontier"
	"seine/frontier/canon"
)

// preparer is a Fetcher that resolves names, and spaces requests to one address
// out, before a worker is needed.
type preparer interface {
	Prepare(ctx context.Context, url, bind string) (fetch.Reservation, error)
	MayLeaveFrom(bind string) error
	SetFetchers(all, crowded int, self bool)
	Crowded() (hosts int, lately bool)
}

// Crawler runs one fetcher's part of a crawl.
type Crawler struct {
	cfg        Config
	visitCfg   site.Config
	work       *work.Config
	preparer   preparer // nil: names are resolved by the fetch itself
	shards     []*shard
	agenda     *site.Agenda[site.Visit]
	gate       *flow.Gate
	budget     *flow.Budget
	known      *flow.KnownURLs
	robots     *site.RulesCache
	deadSites  *site.DeadSites
	lossPermit site.LossPermit
	readers    sync.Pool // of *work.Reader, for shard loops
	policy     atomic.Pointer[work.Policy]
	renew      sync.Mutex // of policy

	// What it knows of its own work.
	count    *watch.Counters
	handlers *watch.Handlers // nil without a Handler
	recent   watch.Recent
	backOffs *watch.BackOffs
	left     watch.Left
	limit    watch.Limit
	rate     watch.Rate
	cpu      watch.CPUMeter
	late     watch.LateMeter
	stats    atomic.Pointer[[]frontier.ShardStats] // of each shard, as last read
	totals   atomic.Pointer[frontier.ShardStats]   // their sum

	// How it ends.
	ctx      context.Context // of Run; ends when requests are to be cut
	cancel   context.CancelCauseFunc
	aborted  context.Context
	abort    context.CancelCauseFunc
	running  atomic.Bool
	returned chan struct{} // closed when Run returns
	stopping chan struct{} // closed when nothing new is to be started
	stopOnce sync.Once
	fault    atomic.Pointer[error]  // first error that made the crawler stop in order
	ended    atomic.Pointer[string] // why it ended by itself

	// What it shares with other fetchers of the crawl.
	live       atomic.Int64 // programs at work on the crawl
	leased     atomic.Int64 // sites that all fetchers leased lately
	othersRoom atomic.Bool  // another fetcher could fetch more sites
	seeding    atomic.Bool  // this process admits seeds

	// What is open.
	visiting  sync.WaitGroup // visits whose site is not released
	visits    atomic.Int64   // visits not settled
	reserved  atomic.Int64   // visits that shard loops mean to acquire
	hungry    atomic.Int32   // shard loops that know of due sites and found no room
	writing   atomic.Int64   // records that the sink has not taken over yet
	admitting atomic.Int64   // pages whose candidates wait for verdicts
}

// shard is this fetcher's part of one shard: what its loop, its visits and its batches
// share.
type shard struct {
	*flow.Shard
	admitter    *flow.Admitter
	deduper     *flow.Deduper
	settlements *flow.Batcher[*site.Visit] // that have outcomes or a site to release
	rules       *flow.Batcher[frontier.OriginRules]
	admitted    *metrics.Counter
	leases      site.LeaseWatch
	kept        site.Kept

	wake   chan struct{} // something may be due, there is room for work, or the end is near
	hungry atomic.Bool   // due sites are there and no room was
	later  atomic.Bool   // the shard has sites that are due later
	paused atomic.Bool
	late   atomic.Int64 // time spent on leases that came late, ns

	mu     sync.Mutex
	visits map[string]*site.Visit // by token
	parked []*site.Visit          // they wait until the shard's leases can be relied on
}

const (
	heartbeat = flow.Heartbeat
	// visitSpan is how long a visit should last at its site's delay, and the
	// longest that one waits for its site's clock.
	visitSpan    = 10 * time.Second
	maxSettle    = 64  // visits of one settle call
	maxRulesKept = 100 // origins whose rules go to a shard in one call
)

// cutTime is how long visits may take to end when requests are cut. One whose
// record cannot be handed to a sink that takes none is left behind: closing the
// sink frees it.
const cutTime = 3 * time.Second

// newShard returns the k-th shard, whose admissions are as admit says.
func (c *Crawler) newShard(k int, admit *flow.AdmitConfig) *shard {
	verdicts := c.count.Verdicts(k)
	s := &shard{
		Shard: flow.NewShard(k, c.cfg.Epoch), admitted: verdicts[frontier.Admitted], wake: make(chan struct{}, 1), visits: make(map[string]*site.Visit),
		settlements: flow.NewBatcher[*site.Visit](maxSettle, c.cfg.Linger), rules: flow.NewBatcher[frontier.OriginRules](maxRulesKept, c.cfg.Linger),
	}
	s.admitter = flow.NewAdmitter(admit, s.Shard, verdicts, s.notify)
	s.deduper = flow.NewDeduper(s.Shard, c.cfg.Frontier.Duplicates, c.cfg.Linger, c.count.Uncompared)
	return s
}

// notify makes the shard's loop look again soon.
func (s *shard) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// settleSoon has a visit settled that has outcomes or a site to release.
func (s *shard) settleSoon(v *site.Visit) {
	if v.MarkChanged() {
		s.settlements.Add(v)
	}
}

// isIdle reports whether nothing of this shard is open in this fetcher.
func (s *shard) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.visits) == 0 && s.admitter.IsEmpty()
}

// holds reports whether a visit was not dropped.
func (s *shard) holds(v *site.Visit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.visits[v.Token] == v
}

// dropVisit ends a visit here; its requests are cancelled.
func (c *Crawler) dropVisit(v *site.Visit) {
	s := c.shards[v.Shard]
	v.Cancel()
	s.mu.Lock()
	_, there := s.visits[v.Token]
	delete(s.visits, v.Token)
	s.mu.Unlock()
	if !there {
		return
	}
	c.visits.Add(-1)
	if v.LastChance {
		c.lossPermit.Release()
	}
	c.notifyHungry()
	if c.isStopping() {
		s.notify()
	}
}

// parkVisit has a visit wait until the leases of its shard can be relied on.
func (c *Crawler) parkVisit(v *site.Visit) {
	s := c.shards[v.Shard]
	s.mu.Lock()
	s.parked = append(s.parked, v)
	s.mu.Unlock()
	if c.reliesOnLeases(s, c.cfg.Elapsed()) || c.isStopping() || c.ctx.Err() != nil {
		c.unparkVisits(s)
		return
	}
	s.notify()
}

// unparkVisits has the visits served that were parked: they look for themselves.
func (c *Crawler) unparkVisits(s *shard) {
	s.mu.Lock()
	parked := s.parked
	s.parked = nil
	s.mu.Unlock()
	for _, v := range parked {
		c.agenda.Schedule(v, time.Time{})
	}
}

// reliesOnLeases reports whether a request may start at now, by Config.Elapsed, by what is
// known of the leases of the shard. A tick is due when it may not.
func (c *Crawler) reliesOnLeases(s *shard, now time.Duration) bool {
	return s.leases.IsReliable(now, s.CheckEpoch(), c.cfg.Lease)
}

func (c *Crawler) shardOf(f canon.Fingerprint) *shard { return c.shards[c.cfg.Frontier.Of(f)] }

// knows reports whether its shard is known to have f.
func (c *Crawler) knows(f canon.Fingerprint) bool { return c.known.Has(f, c.shardOf(f).Epoch()) }

func (c *Crawler) anyShard(is func(*shard) bool) bool { return slices.ContainsFunc(c.shards, is) }

// robotsAgent is our name in robots.txt.
func (c *Crawler) robotsAgent() string {
	s := c.policy.Load().Settings
	return cmp.Or(robots.Token(s.RobotsAgent), robots.Token(s.UserAgent), c.cfg.Agent)
}

func (c *Crawler) newReader() *work.Reader {
	return work.NewReader(c.cfg.Canon, c.cfg.Frontier.Layout().LimitBy)
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
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
		c.cancel(err)
	}
}

// stop has nothing new started, and no visit waits any more: each ends when it is served.
func (c *Crawler) stop() {
	c.stopOnce.Do(func() {
		close(c.stopping)
		c.drain()
		for _, s := range c.shards {
			s.notify()
		}
	})
}

// drain lets no visit wait any more: each ends when it is served.
func (c *Crawler) drain() {
	c.agenda.Drain()
	for _, s := range c.shards {
		c.unparkVisits(s)
	}
}

// stopWith is stop with the error that Run will return.
func (c *Crawler) stopWith(err error) {
	c.fault.CompareAndSwap(nil, &err)
	c.stop()
}

// returnPage returns a page to the budget: it is to be fetched again.
func (c *Crawler) returnPage() {
	c.budget.ReturnPage()
	c.notifyHungry()
}

// notifyHungry wakes the shard loops that wait for room.
func (c *Crawler) notifyHungry() {
	if c.hungry.Load() == 0 {
		return
	}
	for _, s := range c.shards {
		if s.hungry.Load() {
			s.notify()
		}
	}
}

// isCrowded reports whether half of what may be open is.
func (c *Crawler) isCrowded() bool {
	return c.gate.IsHalf() || c.visits.Load() >= int64(c.cfg.MaxVisits)/2
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

// mayAcquire reports whether more sites may be acquired. What a sink that fails
// just now could not take would only wait, and be fetched again after a crash.
func (c *Crawler) mayAcquire() bool {
	return !c.isStopping() && c.budget.MayStart() && !c.gate.IsBlocked() && c.cfg.Sink.Err() == nil && c.lack() == ""
}

// room is how many sites may be acquired now: as memory allows, and no more than
// workers come to soon, for what waits here another fetcher could ask.
func (c *Crawler) room() int {
	reserved := int(c.reserved.Load())
	return max(0, min(c.agenda.Room(), c.cfg.MaxVisits-int(c.visits.Load()))-reserved)
}

// fairShare is how many sites this fetcher may lease while another has room.
func (c *Crawler) fairShare() int64 { return c.leased.Load()/max(c.live.Load(), 1) + 1 }

// keepsSites reports whether a site that this fetcher releases is kept for it: there are
// others, it could visit more sites, and it has no more than its fair share of those with
// work.
func (c *Crawler) keepsSites() bool {
	live, t := c.live.Load(), c.totals.Load()
	if live < 2 || t == nil || !c.mayAcquire() || c.room() == 0 {
		return false
	}
	has := c.visits.Load()
	for _, s := range c.shards {
		has += s.kept.Len()
	}
	return has <= min((t.Leases+t.Ready)/live+1, int64(c.cfg.MaxVisits))
}

// Bounds of what a fetcher does that has nothing to do, by how many programs are
// at work on the crawl: together they ask a shard some hundred times a second.
const (
	idleEach   = 10 * time.Millisecond // longer pauses for each
	spreadEach = 5 * time.Millisecond  // and so much further apart
)

// idlePause is how long an idle fetcher waits before it looks again.
func (c *Crawler) idlePause() time.Duration {
	return max(heartbeat, time.Duration(c.live.Load())*idleEach)
}

// idleSpread is within how long the idle fetchers come back for a site that is due.
func (c *Crawler) idleSpread() time.Duration {
	return time.Duration(max(0, c.live.Load()-1)) * spreadEach
}
