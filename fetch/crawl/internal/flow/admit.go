package flow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/fetch/crawl/internal/work"
	"seine/frontier"
	"seine/frontier/canon"
)

const (
	// maxAdmit bounds one admission call, so that its script stays near a millisecond.
	maxAdmit = 400
	// maxGathered is about how many candidates one group of calls has.
	maxGathered = 8 * maxAdmit
	// fullPause is how long candidates that found no room wait at first before they are
	// admitted again, maxFullPause at last.
	fullPause    = time.Second
	maxFullPause = 15 * time.Second
	// roomUnknown is how long a shard counts as full after it refused candidates that do
	// not wait for room.
	roomUnknown = time.Minute
	// admitPatience is how long one admission call may take before the Admitter looks
	// whether the shard answers anything.
	admitPatience = 5 * time.Second
	// Heartbeat is the longest time between two ticks of a shard.
	Heartbeat = time.Second
	// look is how often the Admitter looks at what nobody reports.
	look = 50 * time.Millisecond
)

// Acknowledger gets the verdicts on candidates. Full means that nobody will admit them
// again.
type Acknowledger interface{ Answered(v frontier.Verdict) }

// Page is an Acknowledger whose plain links share depth and referrer.
type Page interface {
	Acknowledger
	Common() (depth uint32, referrer string)
	ShardSilent() // it goes back since a shard is silent
}

// Candidate is a URL on its way to its shard, and who waits for the verdict.
type Candidate struct {
	work.Candidate
	From Acknowledger // a Page for a plain link
	Once bool         // it does not wait for room
}

// arrival is candidates that came together, in memory of theirs.
type arrival struct {
	from       Acknowledger
	once       bool
	candidates []work.Candidate
}

// whole is the candidate as the frontier takes it.
func (c *Candidate) whole() frontier.Candidate {
	if c.Rest != nil {
		return c.Rest.Candidate
	}
	depth, referrer := c.From.(Page).Common()
	return frontier.Candidate{URL: c.URL, Site: c.Site, Fingerprint: c.Fingerprint, Priority: c.Class, Depth: depth, Referrer: referrer}
}

// AdmitConfig is what the Admitters of a crawler share.
type AdmitConfig struct {
	Frontier interface {
		Admit(ctx context.Context, shard int, batch []frontier.Candidate, verdicts []frontier.Verdict) error
		Renew(ctx context.Context, shard int, list []frontier.Renewal) error
	}
	Known     *KnownURLs
	Overflow  Overflow         // nil: none
	Written   *KnownURLs       // whose lines are in the overflow; nil without one
	Linger    time.Duration    // that a group waits for more
	Stopping  <-chan struct{}  // closed when the crawler stops: nothing waits for room any more
	IsCrowded func() bool      // half of what may be open is
	NotAcked  *metrics.Counter // admissions that no replica acknowledged
	Overflown *metrics.Counter // candidates whose lines are safe
}

func (cfg *AdmitConfig) isStopping() bool {
	select {
	case <-cfg.Stopping:
		return true
	default:
		return false
	}
}

// spills reports whether candidates that find no room go to the overflow now.
func (cfg *AdmitConfig) spills() bool { return cfg.Overflow != nil && cfg.Overflow.Err() == nil }

// Admitter gathers candidates of many pages for one shard and admits them in groups.
// Candidates that found no room go to the overflow. While that takes none they are parked
// and admitted again, less and less often. What comes after them is admitted at once,
// since candidates that are known need no room.
type Admitter struct {
	Overflow *OverflowQueue // nil without an overflow

	cfg      *AdmitConfig
	shard    *Shard
	batch    *Batcher[arrival]
	verdicts [4]*metrics.Counter
	notify   func() // wakes the shard loop

	mu        sync.Mutex
	open      int       // candidates without a verdict that are not in the overflow
	parked    int       // of them, those that found no room
	refusedAt time.Time // when candidates that do not wait found no room, and none was admitted since

	unacked      atomic.Int64 // since when no replica acknowledged an admission, Unix ms, 0 = one did
	unresponsive atomic.Bool  // the shard owes an answer for so long that nothing waits for it in memory alone
}

// admitRun is what one run of an Admitter knows.
type admitRun struct {
	*Admitter
	epoch   uint64 // of the connection, before the last call
	full    []Candidate
	pause   time.Duration // until full is admitted again
	retryAt time.Time
	group   admitGroup
}

// NewAdmitter returns an Admitter for a shard, whose verdicts it counts. It calls notify
// when the shard may have something due, or nothing is open any more while the crawler
// stops.
func NewAdmitter(cfg *AdmitConfig, s *Shard, verdicts [4]*metrics.Counter, notify func()) *Admitter {
	a := &Admitter{cfg: cfg, shard: s, batch: NewBatcher[arrival](maxGathered, cfg.Linger), verdicts: verdicts, notify: notify}
	a.batch.size = func(ar arrival) int { return len(ar.candidates) }
	if cfg.Overflow != nil {
		a.Overflow = newOverflowQueue(cfg, s)
	}
	return a
}

// AddCandidates takes candidates over, with their memory, whose verdicts from gets. With once they do not wait for room.
func (a *Admitter) AddCandidates(from Acknowledger, once bool, candidates []work.Candidate) {
	a.mu.Lock()
	a.open += len(candidates)
	a.mu.Unlock()
	a.batch.Add(arrival{from, once, candidates})
}

// IsEmpty reports whether no candidate waits for its verdict.
func (a *Admitter) IsEmpty() bool {
	a.mu.Lock()
	defer a.mu.Unlock() // over both: candidates move between them
	return a.open == 0 && a.Overflow.Waiting() == 0
}

// IsUnresponsive reports whether the shard answers nothing, so that nothing waits for it.
func (a *Admitter) IsUnresponsive() bool { return a.unresponsive.Load() }

// IsFull reports whether the shard has no room for candidates: some wait, or some that do
// not wait found none lately.
func (a *Admitter) IsFull(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.parked > 0 && !a.unresponsive.Load() || now.Sub(a.refusedAt) < roomUnknown
}

// HasParked reports whether candidates wait for room.
func (a *Admitter) HasParked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.parked > 0
}

// Stalls reports whether candidates wait for room here or in the overflow.
func (a *Admitter) Stalls() bool { return a.HasParked() || a.Overflow.Waiting() > 0 }

// UnackedFor is for how long no replica has acknowledged admissions.
func (a *Admitter) UnackedFor(now time.Time) time.Duration {
	since := a.unacked.Load()
	if since == 0 {
		return 0
	}
	return now.Sub(time.UnixMilli(since))
}

// Run admits until ctx ends. Its error ends the crawl.
func (a *Admitter) Run(ctx context.Context) error {
	r := &admitRun{Admitter: a, group: admitGroup{first: make(map[canon.Fingerprint]int)}}
	var arrivals []arrival
	var candidates []Candidate
	for ctx.Err() == nil {
		r.reclaim()
		arrivals = a.batch.nextGroup(arrivals)
		clear(candidates)
		candidates = candidates[:0]
		for _, some := range arrivals {
			for _, c := range some.candidates {
				candidates = append(candidates, Candidate{c, some.from, some.once})
			}
		}
		if r.staysUnresponsive(time.Now()) {
			r.setUnresponsive(candidates)
			r.park(time.Now())
			if len(candidates) == 0 {
				r.awaitCandidates(ctx)
			}
			continue
		}
		if len(candidates) == 0 && !r.isRetryDue(time.Now()) {
			r.awaitCandidates(ctx)
			continue
		}
		err := r.admitAll(ctx, candidates)
		if err == nil && r.isRetryDue(time.Now()) {
			full := r.full
			r.full = nil
			err = r.admitAll(ctx, full)
		}
		if err != nil {
			return err
		}
		r.park(time.Now())
	}
	return nil
}

// reclaim parks the candidates that wait for an overflow that takes none now.
func (r *admitRun) reclaim() {
	o := r.Overflow
	if o.Waiting() == 0 || r.cfg.spills() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.full)
	r.full = o.reclaim(r.full)
	r.open += len(r.full) - before
	r.parked = len(r.full)
}

// staysUnresponsive reports whether the shard answers nothing, from a call that did not
// get through until the next tick that does.
func (r *admitRun) staysUnresponsive(now time.Time) bool {
	if !r.unresponsive.Load() {
		return false
	}
	if r.shard.SilentFor(now) >= Heartbeat {
		return true
	}
	r.unresponsive.Store(false)
	r.retryAt = time.Time{}
	return false
}

// setUnresponsive parks candidates of a shard that answers nothing; those that an
// overflow takes go there. Once half of what may be open is, the pages of those that are
// parked go back: requests to all other sites would stop.
func (r *admitRun) setUnresponsive(candidates []Candidate) {
	r.unresponsive.Store(true)
	r.full = append(r.full, candidates...)
	if r.cfg.spills() {
		r.spill()
	} else if r.cfg.IsCrowded() {
		for i := range r.full {
			if p, ok := r.full[i].From.(Page); ok {
				p.ShardSilent()
			}
		}
		r.refuseAll()
	}
}

// spill hands the candidates that found no room to the overflow.
func (r *admitRun) spill() {
	r.Overflow.write(r.full, r.notify)
	r.forget(len(r.full))
	clear(r.full)
	r.full = r.full[:0]
}

// refuseAll answers the candidates that found no room: they are not admitted again.
func (r *admitRun) refuseAll() {
	for i := range r.full {
		r.full[i].From.Answered(frontier.Full)
	}
	r.forget(len(r.full))
	r.full = nil
}

// forget counts n candidates as open no longer.
func (r *admitRun) forget(n int) {
	r.mu.Lock()
	r.open -= n
	r.mu.Unlock()
}

// park decides when candidates that found no room are admitted again. A crawler that
// stops answers that they will not be.
func (r *admitRun) park(now time.Time) {
	switch {
	case len(r.full) == 0:
		r.pause = 0
	case r.cfg.isStopping():
		r.refuseAll()
	case !now.Before(r.retryAt):
		r.pause = min(max(2*r.pause, fullPause), maxFullPause)
		r.retryAt = now.Add(r.pause)
	}
	r.mu.Lock()
	r.parked = len(r.full)
	done := r.open == 0
	r.mu.Unlock()
	if done && r.cfg.isStopping() {
		r.notify()
	}
}

// isRetryDue reports whether it is time to admit the parked candidates again.
func (r *admitRun) isRetryDue(now time.Time) bool {
	return len(r.full) > 0 && (r.cfg.isStopping() || !now.Before(r.retryAt))
}

// awaitCandidates waits until candidates come, the parked ones are to be admitted again,
// or the crawler stops.
func (r *admitRun) awaitCandidates(ctx context.Context) {
	var ripe <-chan time.Time
	var stop <-chan struct{}
	if len(r.full) > 0 {
		t := time.NewTimer(time.Until(r.retryAt))
		defer t.Stop()
		ripe, stop = t.C, r.cfg.Stopping
	}
	if r.unresponsive.Load() || len(r.full) == 0 && r.Overflow.Waiting() > 0 {
		t := time.NewTicker(look) // the shard may answer, the overflow's disk be full, or free again
		defer t.Stop()
		ripe = t.C
	}
	select {
	case <-r.batch.wake:
		Sleep(ctx, nil, r.cfg.Linger)
	case <-ripe:
	case <-stop:
	case <-ctx.Done():
	}
}

// admitAll admits candidates in groups.
func (r *admitRun) admitAll(ctx context.Context, candidates []Candidate) error {
	for len(candidates) > 0 {
		some := candidates[:min(len(candidates), maxAdmit)]
		r.group.fill(some, r.Overflow != nil)
		err := r.admitGroup(ctx)
		if err == errUnresponsive {
			r.setUnresponsive(candidates)
			return nil
		}
		if err == nil {
			err = r.renewKnown(ctx)
		}
		if err != nil {
			return err
		}
		r.applyVerdicts()
		candidates = candidates[len(some):]
	}
	return nil
}

// admitGroup is one admission call: candidates, the distinct ones among them, and which of
// those each is. Neighbouring pages link to the same URLs.
type admitGroup struct {
	candidates []Candidate
	batch      []frontier.Candidate
	verdicts   []frontier.Verdict
	of         []int
	first      map[canon.Fingerprint]int
}

// fill makes the group of candidates. Where memory is scarce they wait, when keep says so,
// or one of the candidates to a URL does.
func (g *admitGroup) fill(candidates []Candidate, keep bool) {
	g.candidates, g.batch, g.of = candidates, g.batch[:0], g.of[:0]
	clear(g.first)
	for i := range candidates {
		c := &candidates[i]
		at, known := g.first[c.Fingerprint]
		if !known || c.IsRefetch() {
			at = len(g.batch)
			g.batch = append(g.batch, c.whole())
			if !c.IsRefetch() {
				g.first[c.Fingerprint] = at
			}
		}
		g.batch[at].Waits = g.batch[at].Waits || c.Rest != nil && (c.Rest.Waits || c.Rest.Seed) || keep
		g.of = append(g.of, at)
	}
	g.verdicts = append(g.verdicts[:0], make([]frontier.Verdict, len(g.batch))...)
}

// errUnresponsive: the shard answers nothing at all.
var errUnresponsive = errors.New("crawl: the shard is silent")

// admitGroup admits the group, again until a replica acknowledged it where asked. While
// the crawler stops it fails with errUnresponsive instead.
func (r *admitRun) admitGroup(ctx context.Context) error {
	r.epoch = r.shard.CheckEpoch()
	for {
		err := r.callAdmit(ctx)
		if !errors.Is(err, frontier.ErrNotAcked) {
			if err == nil {
				r.unacked.Store(0)
			}
			return err
		}
		r.cfg.NotAcked.Inc()
		r.unacked.CompareAndSwap(0, time.Now().UnixMilli())
		if r.cfg.isStopping() {
			return errUnresponsive
		}
		if !Sleep(ctx, nil, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// callAdmit is one call. It fails with errUnresponsive when the shard has not answered
// ticks either for a while: the call may then take effect late, as once.
func (r *admitRun) callAdmit(ctx context.Context) error {
	for {
		short, cancel := context.WithTimeout(ctx, admitPatience)
		err := r.cfg.Frontier.Admit(short, r.shard.Index, r.group.batch, r.group.verdicts)
		late := err != nil && ctx.Err() == nil && short.Err() != nil && !errors.Is(err, frontier.ErrNotAcked)
		cancel()
		if !late {
			return err
		}
		if r.shard.SilentFor(time.Now()) >= admitPatience-Heartbeat {
			return errUnresponsive
		}
	}
}

// renewKnown brings forward the recrawls of known URLs of the group. It is
// a hint: a shard that is silent meanwhile does not get it.
func (r *admitRun) renewKnown(ctx context.Context) error {
	g := &r.group
	var list []frontier.Renewal
	for i := range g.candidates {
		c := g.candidates[i].Rest
		if c == nil || c.Within == 0 || g.verdicts[g.of[i]] != frontier.Seen {
			continue
		}
		key := c.Fingerprint.Key
		if c.Sitemap {
			key = c.RefetchFingerprint().Key
		}
		list = append(list, frontier.Renewal{Site: c.Site, Key: key, Within: c.Within})
	}
	if list == nil {
		return nil
	}
	slices.SortStableFunc(list, func(x, y frontier.Renewal) int { return strings.Compare(x.Site, y.Site) })
	short, cancel := context.WithTimeout(ctx, admitPatience)
	defer cancel()
	err := r.cfg.Frontier.Renew(short, r.shard.Index, list)
	if err != nil && ctx.Err() == nil && short.Err() != nil && !errors.Is(err, frontier.ErrStale) {
		return nil
	}
	return err
}

// applyVerdicts answers the pages, and keeps candidates that found no room.
func (r *admitRun) applyVerdicts() {
	g := &r.group
	fresh, full := false, false
	for i, v := range g.verdicts {
		r.verdicts[v].Inc()
		fresh, full = fresh || v == frontier.Admitted, full || v == frontier.Full
		if (v == frontier.Admitted || v == frontier.Seen) && g.batch[i].Refetch == "" {
			r.cfg.Known.Remember(g.batch[i].Fingerprint, r.epoch)
		}
	}
	spills := r.cfg.spills()
	lost, answered := full && spills, 0 // some without room do not wait for it here
	for i := range g.candidates {
		c, v := &g.candidates[i], g.verdicts[g.of[i]]
		if v == frontier.Full && (!c.Once || spills) {
			r.full = append(r.full, *c)
			continue
		}
		lost = lost || v == frontier.Full
		answered++
		c.From.Answered(v)
	}
	r.forget(answered)
	if fresh {
		r.notify()
	}
	if fresh || lost {
		r.noteRefusal(lost, time.Now())
	}
	if full && spills {
		r.spill()
	}
}

// noteRefusal notes when candidates that do not wait found no room. Without some of those
// others were admitted.
func (r *admitRun) noteRefusal(lost bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusedAt = (time.Time{}); lost {
		r.refusedAt = now
	}
}
