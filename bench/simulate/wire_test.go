package simulate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"seine/fetch/crawl"
	"seine/frontier"
	"seine/frontier/canon"
)

// fetcher is one fetcher of the fleet: its crawler, and what is between that and the
// shards. It is a Frontier as the driver in Redis is one: calls are repeated until they
// are answered or their context ends.
type fetcher struct {
	w           *world
	place       int    // in the fleet; another takes it when this one is gone
	id          string // of this life
	crawler     *crawl.Crawler
	concurrency int
	dead        chan struct{} // closed when it is killed

	// Of the queue's goroutine.
	killed   bool
	stopped  bool
	over     bool            // it has returned
	requests atomic.Int64    // under way, of the web
	unsaved  int             // records that the output has not acknowledged
	lines    []int           // of each shard, that answered last
	learned  []time.Duration // when that was known
	epochs   []*epoch
}

var (
	errKilled                = errors.New("simulate: the fetcher was killed")
	_         crawl.Frontier = (*fetcher)(nil)
)

// epoch is how often the connection of a fetcher to a shard broke or its master changed.
type epoch struct{ n atomic.Uint64 }

const (
	// answerTimeout is how long the client of a shard waits for an answer.
	answerTimeout = 3 * time.Second
	// repeatPause is how long it waits then, at most.
	repeatPause = 500 * time.Millisecond
)

// shardCall is a call to a shard on its way.
type shardCall struct {
	*call
	s       *shard
	do      func(*shard) any // at the shard
	reply   any
	ctx     context.Context
	replied bool
}

// callShard makes a call to shard k: what do returns there is what it returns here.
func (f *fetcher) callShard(ctx context.Context, s *shard, name string, do func(s *shard, id string) any) (any, error) {
	c := &shardCall{call: &call{from: f, name: fmt.Sprintf("%s %d", name, s.k), end: make(chan struct{})}, s: s, ctx: ctx}
	c.start = func(*call) {
		c.do = func(s *shard) any { return do(s, c.id) }
		f.try(c, 0)
	}
	select {
	case <-f.dead:
		return nil, errKilled
	default:
	}
	f.w.q.ask(c.call)
	select {
	case <-c.end:
		if err, bad := c.reply.(error); bad {
			return nil, err
		}
		return c.reply, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("simulate: %s: %w", name, ctx.Err())
	case <-f.dead:
		return nil, errKilled
	}
}

// try sends a call to its shard, for the nth time.
func (f *fetcher) try(c *shardCall, n int) {
	if f.killed || c.ctx.Err() != nil || c.replied {
		return
	}
	q := f.w.q
	id := fmt.Sprintf("%s try %d", c.id, n)
	r := q.random(id)
	there, back := f.w.travel(r), f.w.travel(r)
	bad := f.w.plan.during(faultLoss, 0, q.now())
	again := func() {
		f.epochOf(c.s).n.Add(1) // the client closed its connection
		q.after(time.Duration(r.Float64()*float64(repeatPause)), id+" failed", func() string { f.try(c, n+1); return "" })
	}
	if bad && r.Float64() < 0.05 {
		q.after(answerTimeout, id+" lost", func() string { again(); return "on the way" })
		return
	}
	lost := bad && r.Float64() < 0.05
	if bad && r.Float64() < 0.05 { // a copy comes late
		q.after(there+time.Duration(r.Float64()*float64(time.Minute)), id+" copy", func() string {
			if !f.reaches(c.s) {
				return ""
			}
			c.s.call(c.do)
			return "taken"
		})
	}
	q.after(there, id, func() string {
		if !f.reaches(c.s) {
			q.after(answerTimeout-there, id+" unanswered", func() string { again(); return "" })
			return "no answer"
		}
		reply := c.s.call(c.do)
		f.noteMaster(c.s)
		if lost {
			q.after(max(0, answerTimeout-there), id+" answer lost", func() string { again(); return "" })
			return "answer lost"
		}
		q.after(back, id+" answered", func() string {
			if c.replied || f.killed {
				return ""
			}
			c.replied, c.reply = true, reply
			if k := c.s.k; k >= 0 {
				f.learned[k] = min(f.learned[k], f.w.q.now())
			}
			close(c.end)
			return ""
		})
		return "taken"
	})
}

// travel is how long a message takes.
func (w *world) travel(r *rand.Rand) time.Duration {
	d := time.Duration(100+r.IntN(900)) * time.Microsecond
	if w.plan.during(faultLoss, 0, w.q.now()) && r.IntN(5) == 0 {
		d += time.Duration(r.ExpFloat64() * float64(300*time.Millisecond))
	}
	return min(d, answerTimeout/2)
}

// reaches reports whether a shard answers a fetcher.
func (f *fetcher) reaches(s *shard) bool {
	if s.k < 0 {
		return true
	}
	p, now := f.w.plan, f.w.q.now()
	return !p.during(faultDown, s.k, now) && !p.during(faultMove, s.k, now) && !p.during(faultCut, s.k*p.Fetchers+f.place, now)
}

// noteMaster notes which line of a shard answered.
func (f *fetcher) noteMaster(s *shard) {
	if s.k >= 0 && f.lines[s.k] != s.line {
		f.lines[s.k] = s.line
		f.learned[s.k] = math.MaxInt64 // until the answer is there
		f.epochOf(s).n.Add(1)
	}
}

func (f *fetcher) epochOf(s *shard) *epoch { return f.epochs[s.k+1] }

// Shards implements crawl.Frontier.
func (f *fetcher) Shards() int { return f.w.plan.Shards }

// Of implements crawl.Frontier.
func (f *fetcher) Of(fp canon.Fingerprint) int { return fp.Shard(f.w.plan.Shards) }

// Layout implements crawl.Frontier.
func (f *fetcher) Layout() frontier.Layout { return f.w.layout }

// Settings implements crawl.Frontier.
func (f *fetcher) Settings() *frontier.Settings { s := f.w.settings; return &s }

// Refresh implements crawl.Frontier. It takes no time, for crawlers call it with a lock.
func (f *fetcher) Refresh(ctx context.Context) (*frontier.Settings, error) {
	return f.Settings(), ctx.Err()
}

// Admit implements crawl.Frontier, with an acknowledgement of the replica.
func (f *fetcher) Admit(ctx context.Context, k int, batch []frontier.Candidate, verdicts []frontier.Verdict) error {
	s := f.w.shards[k]
	batch = slices.Clone(batch) // whose strings stay valid
	reply, err := f.callShard(ctx, s, "admit", func(s *shard, _ string) any {
		if s.w.plan.during(faultFull, k, s.at) {
			return admitReply{s.full(batch), s.acknowledge()}
		}
		return admitReply{s.admit(batch), s.acknowledge()}
	})
	if err != nil {
		return err
	}
	r := reply.(admitReply)
	copy(verdicts, r.verdicts)
	if !r.acked {
		return frontier.ErrNotAcked
	}
	return nil
}

// admitReply is what a shard answers to an admission.
type admitReply struct {
	verdicts []frontier.Verdict
	acked    bool // by the replica
}

// NoteSeeds implements crawl.Frontier.
func (f *fetcher) NoteSeeds(context.Context, int, []string) error { return nil }

// Tick implements crawl.Frontier.
func (f *fetcher) Tick(ctx context.Context, k int, req frontier.TickRequest) (frontier.TickReply, error) {
	req.Extend = slices.Clone(req.Extend)
	reply, err := f.callShard(ctx, f.w.shards[k], "tick", func(s *shard, _ string) any { return s.tick(f, req) })
	if err != nil {
		return frontier.TickReply{}, err
	}
	return reply.(frontier.TickReply), nil
}

// Visit implements crawl.Frontier. Deadlines count from before the call.
func (f *fetcher) Visit(ctx context.Context, k int, tickets []frontier.Ticket, limits frontier.VisitLimits) ([]frontier.Visit, error) {
	tickets = slices.Clone(tickets)
	deadline := time.Now().Add(lease)
	reply, err := f.callShard(ctx, f.w.shards[k], "visit", func(s *shard, id string) any { return s.visit(f, id, tickets, limits) })
	if err != nil {
		return nil, err
	}
	visits := slices.Clone(reply.([]frontier.Visit))
	for i := range visits {
		visits[i].Deadline = deadline
	}
	return visits, nil
}

// Settle implements crawl.Frontier.
func (f *fetcher) Settle(ctx context.Context, k int, settlements []frontier.Settlement) ([]frontier.Settled, error) {
	batch := slices.Clone(settlements)
	for i := range batch {
		batch[i].Outcomes = slices.Clone(batch[i].Outcomes)
		for j := range batch[i].Outcomes {
			if o := &batch[i].Outcomes[j]; o.Kind == frontier.Retry {
				o.NotBefore = withoutDice(o.NotBefore)
			}
		}
	}
	reply, err := f.callShard(ctx, f.w.shards[k], "settle", func(s *shard, _ string) any { return s.settle(f, batch) })
	if err != nil {
		return nil, err
	}
	return slices.Clone(reply.([]frontier.Settled)), nil
}

// withoutDice is the longest that a retry may wait whose wait a fetcher threw dice for: a
// crawler's back-off of 5 s, doubled some times, and up to half as long again. So the
// same seed takes the same steps.
func withoutDice(d time.Duration) time.Duration {
	for step := 5 * time.Second; step <= time.Hour; step *= 2 {
		if step <= d && d <= step+step/2 {
			return step + step/2
		}
	}
	return d
}

// Renew implements crawl.Frontier.
func (f *fetcher) Renew(context.Context, int, []frontier.Renewal) error { return nil }

// Reap implements crawl.Frontier.
func (f *fetcher) Reap(ctx context.Context, k int, expired []frontier.Expired) (int, error) {
	expired = slices.Clone(expired)
	reply, err := f.callShard(ctx, f.w.shards[k], "reap", func(s *shard, _ string) any { return s.reap(expired) })
	if err != nil {
		return 0, err
	}
	return reply.(int), nil
}

// Reserve implements crawl.Frontier.
func (f *fetcher) Reserve(ctx context.Context, k int, req frontier.ReserveRequest) (frontier.Reservation, error) {
	reply, err := f.callShard(ctx, f.w.shards[k], "reserve "+req.Site, func(s *shard, _ string) any {
		r, err := s.front.Reserve(context.Background(), k, req)
		if err != nil {
			s.w.fail("reserve: %v", err)
		}
		if r.Granted && !s.w.replaying {
			s.w.reserved = append(s.w.reserved, reservation{f, req.Site, s.w.q.now(), s.w.q.now() + r.Wait + req.Slack, s.line})
		}
		return r
	})
	if err != nil {
		return frontier.Reservation{}, err
	}
	return reply.(frontier.Reservation), nil
}

// Duplicates implements crawl.Frontier.
func (f *fetcher) Duplicates(ctx context.Context, k int, contents []frontier.Content, duplicate []bool) error {
	contents = slices.Clone(contents)
	reply, err := f.callShard(ctx, f.w.shards[k], "duplicates", func(s *shard, _ string) any {
		list := make([]bool, len(contents))
		if err := s.front.Duplicates(context.Background(), k, contents, list); err != nil {
			s.w.fail("duplicates: %v", err)
		}
		return list
	})
	if err != nil {
		return err
	}
	copy(duplicate, reply.([]bool))
	return nil
}

// Rules implements crawl.Frontier.
func (f *fetcher) Rules(ctx context.Context, k int, origins []frontier.OriginRules) error {
	asked := slices.Clone(origins)
	reply, err := f.callShard(ctx, f.w.shards[k], "rules", func(s *shard, _ string) any {
		list := slices.Clone(asked)
		if err := s.front.Rules(context.Background(), k, list); err != nil {
			s.w.fail("rules: %v", err)
		}
		return list
	})
	if err != nil {
		return err
	}
	copy(origins, reply.([]frontier.OriginRules))
	return nil
}

// SetRules implements crawl.Frontier.
func (f *fetcher) SetRules(ctx context.Context, k int, origins []frontier.OriginRules) error {
	origins = slices.Clone(origins)
	for i := range origins {
		origins[i].Rules = slices.Clone(origins[i].Rules)
	}
	_, err := f.callShard(ctx, f.w.shards[k], "setrules", func(s *shard, _ string) any {
		if err := s.front.SetRules(context.Background(), k, slices.Clone(origins)); err != nil {
			s.w.fail("setrules: %v", err)
		}
		return nil
	})
	return err
}

// ClaimPages implements crawl.Frontier, as the driver in Redis does: pages of fetchers
// that are gone, or whose settlement a failover took, come back when nothing is leased.
func (f *fetcher) ClaimPages(ctx context.Context, claim frontier.PageClaim) (frontier.PageGrant, error) {
	call := func() (claimed, error) {
		reply, err := f.callShard(ctx, f.w.root, "claim", func(s *shard, _ string) any { return s.w.pages.claim(claim) })
		if err != nil {
			return claimed{}, err
		}
		return reply.(claimed), nil
	}
	c, err := call()
	if err != nil || c.grant.Left > 0 || !c.quiet {
		return c.grant, err
	}
	stats, err := f.Stats(ctx)
	if err != nil {
		return c.grant, err
	}
	t := frontier.Total(stats)
	if t.Leases > 0 || t.Pages() >= c.taken {
		return c.grant, nil
	}
	reply, err := f.callShard(ctx, f.w.root, "rebook", func(s *shard, _ string) any { return s.w.pages.rebook(c, t.Pages()) })
	if err != nil || !reply.(bool) {
		return c.grant, err
	}
	c, err = call()
	return c.grant, err
}

// Stats implements crawl.Frontier.
func (f *fetcher) Stats(ctx context.Context) ([]frontier.ShardStats, error) {
	stats := make([]frontier.ShardStats, len(f.w.shards))
	errs := make(chan error, len(stats))
	for k, s := range f.w.shards {
		go func() {
			reply, err := f.callShard(ctx, s, "stats", func(s *shard, _ string) any { return s.stats() })
			if err == nil {
				stats[k] = reply.(frontier.ShardStats)
			}
			errs <- err
		}()
	}
	var all []error
	for range stats {
		all = append(all, <-errs)
	}
	return stats, errors.Join(all...)
}

// recentStats is what somebody counted lately.
type recentStats struct {
	at    time.Time
	stats []frontier.ShardStats
}

// RecentStats implements crawl.Frontier. A shard that does not answer is silent.
func (f *fetcher) RecentStats(ctx context.Context) ([]frontier.ShardStats, error) {
	reply, err := f.callShard(ctx, f.w.root, "counted", func(s *shard, _ string) any { return s.w.recent })
	if err != nil {
		return nil, err
	}
	if r := reply.(recentStats); r.stats != nil && time.Since(r.at) < time.Second {
		return slices.Clone(r.stats), nil
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	began := time.Now()
	stats := make([]frontier.ShardStats, len(f.w.shards))
	ended := make(chan struct{}, len(stats))
	for k, s := range f.w.shards {
		go func() {
			reply, err := f.callShard(short, s, "recent", func(s *shard, _ string) any { return s.stats() })
			if err == nil {
				stats[k] = reply.(frontier.ShardStats)
			} else {
				stats[k] = frontier.ShardStats{Shard: k, Silent: true}
			}
			ended <- struct{}{}
		}()
	}
	for range stats {
		<-ended
	}
	_, err = f.callShard(ctx, f.w.root, "count", func(s *shard, _ string) any {
		s.w.recent = recentStats{began, stats}
		return nil
	})
	return slices.Clone(stats), err
}

// Finished implements crawl.Frontier, as the driver in Redis does: all shards are idle,
// twice, and nothing was admitted in between.
func (f *fetcher) Finished(ctx context.Context) (bool, error) {
	recent, err := f.RecentStats(ctx)
	if err != nil {
		return false, err
	}
	for i := range recent {
		if recent[i].Ready > 0 || recent[i].Leases > 0 || recent[i].Silent {
			return false, nil
		}
	}
	first, err := f.idle(ctx)
	if err != nil || first == nil {
		return false, err
	}
	second, err := f.idle(ctx)
	return second != nil && slices.Equal(first, second), err
}

// idle returns the admission counters of all shards, or nil when something is left.
func (f *fetcher) idle(ctx context.Context) ([]int64, error) {
	stats, err := f.Stats(ctx)
	admits := make([]int64, len(stats))
	for k := range stats {
		if stats[k].Ready > 0 || stats[k].Leases > 0 {
			return nil, nil
		}
		admits[k] = stats[k].Admits
	}
	if err != nil {
		return nil, err
	}
	return admits, nil
}
