package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/fetch/crawl/internal/watch"
	"seine/frontier"
)

const (
	// slowCall is how long a shard may take to answer a tick without being called slow.
	slowCall = 500 * time.Millisecond
	// silentAfter is how long a shard may owe an answer.
	silentAfter = 10 * time.Second
	// unackedAfter is for how long no replica may have acknowledged admissions.
	unackedAfter = 2 * time.Second
	// stallAfter is how long due sites may stay untouched before the crawler calls
	// itself not ready.
	stallAfter = time.Minute
)

// findLimit finds what bounds the rate now. The watch calls it once a second.
func (c *Crawler) findLimit(now time.Time) {
	s := c.sight(now)
	c.limit.Set(s.Limit())
}

// sight is how the crawler looks now.
func (c *Crawler) sight(now time.Time) watch.Sight {
	handlers := c.handlers.Running(now)
	delayed := c.delayed()
	late := make([]time.Duration, len(c.shards))
	for i, s := range c.shards {
		late[i] = time.Duration(s.late.Load())
	}
	return watch.Sight{
		Workers: c.agenda.Size(), Busy: c.agenda.Busy(), Handlers: handlers.Calls, Hanging: handlers.Hanging,
		Lack:        c.lack(),
		SinkStalls:  c.sinkStalls(),
		Unacked:     c.anyShard(func(s *shard) bool { return s.admitter.UnackedFor(now) > unackedAfter }),
		ShardsStall: c.gate.HoldsUp() || c.anyShard(func(s *shard) bool { return s.admitter.HasParked() || s.SilentFor(now) > slowCall }),
		LateShards:  c.late.AnyLate(late, now),
		CPUBusy:     c.cpu.IsBusy(now),
		VisitsFull:  c.hungry.Load() > 0 && c.visits.Load() >= int64(c.cfg.MaxVisits),
		Waiting:     delayed > 0 || c.anyShard(func(s *shard) bool { return s.later.Load() }),
		Unreachable: c.recent.IsUnreachable(now), Refused: c.recent.IsRefused(now), Walled: c.recent.IsWalled(now) || c.allWalled(),
		AddressesBind: c.addressesBind(delayed),
		Left:          c.left.IsAll(now, c.recent.SinceEnded(now)),
	}
}

// allWalled reports whether the fleet backs off from every site that has work, since walls
// answer there, as counted last.
func (c *Crawler) allWalled() bool {
	t := c.totals.Load()
	return t != nil && t.Leases == 0 && t.Walled > 0 && t.Walled >= t.Ready
}

// addressesBind reports whether half of the visits that wait, or more, wait for their
// share of an address.
func (c *Crawler) addressesBind(delayed int) bool {
	if c.preparer == nil {
		return false
	}
	hosts, _ := c.preparer.Crowded()
	return hosts > 0 && 2*hosts >= delayed
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

// overflowErr is why the overflow takes nothing just now, or nil.
func (c *Crawler) overflowErr() error {
	if c.cfg.Overflow == nil {
		return nil
	}
	return c.cfg.Overflow.Err()
}

// overflowStalled is overflowErr while candidates wait that found no room.
func (c *Crawler) overflowStalled() error {
	err := c.overflowErr()
	if err != nil && c.anyShard(func(s *shard) bool { return s.admitter.Stalls() }) {
		return err
	}
	return nil
}

// situation is what holds the crawler up now.
func (c *Crawler) situation(now time.Time) *watch.Situation {
	handlers := c.handlers.Running(now)
	left, leftWhy := c.left.Count()
	s := &watch.Situation{
		At: now, Left: left, LeftWhy: leftWhy, Shards: len(c.shards), Paused: c.pausedShards(), Sink: c.cfg.Sink.Err(), Overflow: c.overflowStalled(), HasOverflow: c.cfg.Overflow != nil,
		FeedRefused: int(c.count.FeedRefused.Get()), Hanging: handlers.Hanging, HangingURL: handlers.URL,
	}
	for _, sh := range c.shards {
		if sh.SilentFor(now) > silentAfter {
			s.Silent++
		}
		if sh.admitter.IsFull(now) {
			s.Full++
		}
		if sh.admitter.UnackedFor(now) > unackedAfter {
			s.Unacked++
		}
	}
	if stats := c.stats.Load(); stats != nil {
		for i := range *stats {
			if (*stats)[i].Memory.OverWatermark {
				s.OverWatermark++
			}
		}
	}
	return s
}

func (c *Crawler) pausedShards() int {
	n := 0
	for _, s := range c.shards {
		if s.paused.Load() {
			n++
		}
	}
	return n
}

// Paused reports that the crawl or shards of it are paused, "" when none is.
func (c *Crawler) Paused() string {
	switch n := c.pausedShards(); n {
	case 0:
		return ""
	case len(c.shards):
		return "the crawl is paused"
	default:
		return fmt.Sprintf("%d of %d shards are paused", n, len(c.shards))
	}
}

// Busy reports whether processors or Redis bounded the crawl when that was looked at
// last: work that can wait should wait then.
func (c *Crawler) Busy() bool {
	limit := c.limit.Get()
	return limit == watch.LimitCPU || limit == watch.LimitRedis
}

// Ready reports why the crawler is of no use right now: a shard that does not
// answer or is full, or due sites while nothing ended for a minute.
func (c *Crawler) Ready(ctx context.Context) error {
	var errs []error
	now := time.Now()
	ended := c.recent.SinceEnded(now)
	for _, s := range c.shards {
		fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("crawl: "+format, args...)) }
		since, ever := s.SinceAnswer(now)
		switch {
		case !ever:
			fault("shard %d has not answered yet", s.Index)
		case s.SilentFor(now) > silentAfter:
			fault("shard %d has not answered for %s", s.Index, since.Round(time.Second))
		}
		if s.admitter.IsFull(now) {
			note := ""
			if c.cfg.Overflow != nil && c.overflowErr() == nil {
				note = "; its new links go to the overflow, fetching goes on"
			}
			fault("shard %d has no room: admission answers full%s", s.Index, note)
		}
		if d := s.admitter.UnackedFor(now); d > unackedAfter {
			fault("no replica of shard %d has acknowledged new URLs for %s; its pages wait", s.Index, d.Round(time.Second))
		}
		if s.hungry.Load() && !s.paused.Load() && ended > stallAfter {
			fault("sites of shard %d are due and no page ended for %s", s.Index, ended.Round(time.Second))
		}
	}
	errs = append(errs, c.unkept())
	if err := c.overflowStalled(); err != nil {
		errs = append(errs, fmt.Errorf("crawl: candidates that find no room cannot be written: %w", err))
	}
	return errors.Join(errs...)
}

// HasRoom reports whether this fetcher could fetch more sites, and holds less than its
// fair share.
func (c *Crawler) HasRoom() bool {
	return c.mayAcquire() && c.room() > 0 && c.visits.Load() < c.fairShare()
}

// Crowded reports whether hosts waited lately for their share of an address.
func (c *Crawler) Crowded() bool {
	if c.preparer == nil {
		return false
	}
	_, lately := c.preparer.Crowded()
	return lately
}

// SetSeeding sets whether this process admits seeds: the crawl is not finished then,
// whatever the list of programs has.
func (c *Crawler) SetSeeding(seeds bool) { c.seeding.Store(seeds) }

// SetLive sets who is at work on the crawl, and what this fetcher reported of itself.
// Fetchers share what an address may be asked. None takes more than its share of the sites
// while another has room, and the idle ones look less often.
func (c *Crawler) SetLive(p frontier.Present, self frontier.Member) {
	c.live.Store(int64(p.Programs))
	others := p.Room
	if self.Room {
		others--
	}
	c.othersRoom.Store(others > 0)
	if c.preparer != nil {
		c.preparer.SetFetchers(p.Programs, p.Crowded, self.Crowded)
	}
}

// found is how many URLs this crawler had admitted.
func (c *Crawler) found() (n uint64) {
	for _, s := range c.shards {
		n += s.admitted.Get()
	}
	return n
}

// Progress reads the counters.
func (c *Crawler) Progress() Progress {
	n := c.count
	p := Progress{
		Elapsed: time.Since(n.Started), Done: n.Done.Get(), Dead: n.Dead.Get(), Retried: n.Retries.Get(), Unchanged: n.Unchanged.Get(),
		Bytes: n.Bytes.Get(), Wire: n.Wire.Get(), Links: n.Links.Get(), New: c.found(), Overflow: n.Overflow.Get(), Returned: n.Returned.Load(),
		Visits: c.visits.Load(), Requests: c.agenda.Busy(), Classes: n.Classes(), Causes: n.Causes(),
		Limit: c.limit.Get(), Rate: c.rate.Pages(), Growth: c.rate.Growth(),
	}
	if end := c.ended.Load(); end != nil {
		p.Ended = *end
	}
	backedOff, giveUp := c.backOffs.Counts()
	p.BackedOff = make(map[string]BackedOff, len(backedOff))
	for cause, b := range backedOff {
		p.BackedOff[cause] = BackedOff(b)
	}
	if now := time.Now(); !giveUp.IsZero() && (c.recent.IsUnreachable(now) || c.recent.IsWalled(now)) {
		p.GivesUp = max(0, giveUp.Sub(now))
	}
	if t := c.totals.Load(); t != nil {
		p.Queued, p.Waiting, p.Known = t.Queued, t.Waiting, t.Known
	}
	return p
}

// WriteMetrics writes the crawler's metrics and its view of the shards in
// Prometheus text format.
func (c *Crawler) WriteMetrics(out io.Writer) {
	c.count.WriteMetrics(out)
	gauge := func(name string, v int64) { metrics.WriteGaugeUint64(out, name, uint64(max(v, 0))) }
	gauge("seine_crawl_visits_active", c.visits.Load())
	gauge("seine_crawl_workers", int64(c.agenda.Size()))
	gauge("seine_crawl_workers_busy", int64(c.agenda.Busy()))
	gauge("seine_crawl_visits_delayed", int64(c.delayed()))
	gauge("seine_crawl_open_bytes", c.gate.Bytes())
	for _, n := range c.cfg.Rules.Counts() {
		rule := fmt.Sprintf("seine_crawl_fields_total{field=%q,at=%q,", n.Name, n.At)
		metrics.WriteCounterUint64(out, rule+`result="found"}`, n.Found)
		metrics.WriteCounterUint64(out, rule+`result="failed"}`, n.Failed)
		metrics.WriteCounterUint64(out, rule+`result="missing"}`, n.Missing)
	}
	c.handlers.WriteMetrics(out, time.Now())
	limit := c.limit.Get()
	for _, name := range watch.Limits {
		v := int64(0)
		if name == limit {
			v = 1
		}
		gauge(fmt.Sprintf("seine_crawl_limited_by{bound=%q}", name), v)
	}
	gauge("seine_crawl_live_programs", c.live.Load())
	if stats := c.stats.Load(); stats != nil {
		frontier.WriteMetrics(out, *stats)
	}
}
