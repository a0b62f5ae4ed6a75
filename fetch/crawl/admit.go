package crawl

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"seine/fetch/crawl/internal/work"
	"seine/frontier"
	"seine/frontier/canon"
)

// maxAdmit bounds one admission call, so that its script stays near a
// millisecond.
const maxAdmit = 400

// fullPause is how long candidates that found no room wait before they are asked
// for again at first, maxFullPause at last.
const (
	fullPause    = time.Second
	maxFullPause = 15 * time.Second
)

// roomUnknown is how long a shard counts as full after it refused candidates
// that do not ask again.
const roomUnknown = time.Minute

// acknowledger gets the verdicts on candidates: a page, or an admitRequest. Full
// means that nobody will ask for room again.
type acknowledger interface{ answered(v frontier.Verdict) }

// candidate is a URL on its way to its shard, and who waits for the verdict. There
// are many, so most are kept in short: links of a page have all in common but this.
type candidate struct {
	work.Candidate
	from acknowledger
	once bool // it does not wait for room
}

// arrival is candidates that came together, in memory of theirs.
type arrival struct {
	from       acknowledger
	once       bool
	candidates []work.Candidate
}

// whole is what the frontier is told of the candidate.
func (l *candidate) whole() frontier.Candidate {
	if l.Rest != nil {
		return l.Rest.Candidate
	}
	p := l.from.(*page)
	return frontier.Candidate{
		URL: l.URL, Site: l.Site, Fingerprint: l.Fingerprint, Priority: l.Class,
		Depth: p.linkDepth, Referrer: p.referrer,
	}
}

// admitter gathers candidates of many pages for one shard and admits them in
// groups: while one call is under way the next group grows. Candidates that found
// no room go to the overflow, or while that takes none are parked and asked for
// again, less and less often; what comes after them is asked for at once, since
// candidates that are known need no room.
type admitter struct {
	loop *shardLoop
	wake chan struct{}

	mu          sync.Mutex
	waiting     []arrival
	calling     int       // candidates under way
	parkedCount int       // candidates that found no room
	refusedAt   time.Time // when candidates that do not ask again found none, and none was admitted since

	unacked atomic.Int64 // since when no replica acknowledged an admission, Unix ms, 0 = one did

	// Of the goroutine that admits:
	epoch   uint64      // of the connection, before the last call
	mute    atomic.Bool // the shard owes an answer for so long that nothing waits for it in memory alone
	parked  []candidate
	pause   time.Duration // until the parked are asked for again
	retryAt time.Time
}

func newAdmitter(l *shardLoop) *admitter { return &admitter{loop: l, wake: make(chan struct{}, 1)} }

// add takes candidates over, with their memory. Once says that they do not wait for room.
func (a *admitter) add(from acknowledger, once bool, candidates []work.Candidate) {
	a.mu.Lock()
	a.waiting = append(a.waiting, arrival{from, once, candidates})
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *admitter) empty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting) == 0 && a.calling == 0 && a.parkedCount == 0 && a.loop.overflow.empty()
}

// isFull reports whether the shard has no room for candidates: some wait, or
// some that do not wait found none lately.
func (a *admitter) isFull() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.parkedCount > 0 && !a.mute.Load() || time.Since(a.refusedAt) < roomUnknown
}

// hasParked reports whether candidates wait for room.
func (a *admitter) hasParked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.parkedCount > 0
}

// unackedFor is for how long no replica has acknowledged admissions.
func (a *admitter) unackedFor(now time.Time) time.Duration {
	since := a.unacked.Load()
	if since == 0 {
		return 0
	}
	return now.Sub(time.UnixMilli(since))
}

// takeWaiting takes the candidates of one call, those that have waited longest,
// into the memory of spare.
func (a *admitter) takeWaiting(spare []candidate) []candidate {
	clear(spare)
	group := spare[:0]
	a.mu.Lock()
	defer a.mu.Unlock()
	lists := 0
	for lists < len(a.waiting) && len(group) < maxAdmit {
		some := &a.waiting[lists]
		n := min(len(some.candidates), maxAdmit-len(group))
		for _, c := range some.candidates[:n] {
			group = append(group, candidate{c, some.from, some.once})
		}
		if n < len(some.candidates) {
			some.candidates = some.candidates[n:]
			break
		}
		*some = arrival{}
		lists++
	}
	if a.waiting = a.waiting[lists:]; len(a.waiting) == 0 {
		a.waiting = nil // its front is not used again
	}
	a.calling = len(group)
	return group
}

// admitGroup is one admission call: candidates, the distinct ones among
// them, and which of those each is. Neighbouring pages link to the same
// URLs.
type admitGroup struct {
	candidates []candidate
	batch      []frontier.Candidate
	verdicts   []frontier.Verdict
	of         []int
	first      map[canon.Fingerprint]int
}

// set takes candidates. Where memory is scarce they wait, when keep says so, or
// one of the candidates to a URL does.
func (g *admitGroup) set(candidates []candidate, keep bool) {
	g.candidates, g.batch, g.of = candidates, g.batch[:0], g.of[:0]
	clear(g.first)
	for i := range candidates {
		c := &candidates[i]
		at, known := g.first[c.Fingerprint]
		if !known || c.IsAgain() {
			at = len(g.batch)
			g.batch = append(g.batch, c.whole())
			if !c.IsAgain() {
				g.first[c.Fingerprint] = at
			}
		}
		g.batch[at].Waits = g.batch[at].Waits || c.Rest != nil && (c.Rest.Waits || c.Rest.Seed) || keep
		g.of = append(g.of, at)
	}
	g.verdicts = append(g.verdicts[:0], make([]frontier.Verdict, len(g.batch))...)
}

// run admits until ctx ends.
func (a *admitter) run(ctx context.Context) {
	g := admitGroup{first: make(map[canon.Fingerprint]int)}
	var candidates []candidate
	for ctx.Err() == nil {
		a.takeBack()
		candidates = a.takeWaiting(candidates)
		if a.isMute() {
			a.setMute(candidates)
			a.park()
			if len(candidates) == 0 {
				a.awaitCandidates(ctx)
			}
			continue
		}
		if len(candidates) == 0 && !a.isRetryDue() {
			a.awaitCandidates(ctx)
			continue
		}
		err := a.admit(ctx, &g, candidates)
		if err == nil && a.isRetryDue() {
			full := a.parked
			a.parked = nil
			err = a.admit(ctx, &g, full)
		}
		if err != nil {
			a.loop.crawler.fail(ctx, err)
			return
		}
		a.park()
	}
}

// awaitCandidates waits until candidates come, the parked ones are to be asked
// for again, or the crawler stops.
func (a *admitter) awaitCandidates(ctx context.Context) {
	var ripe <-chan time.Time
	var stop <-chan struct{}
	if len(a.parked) > 0 {
		t := time.NewTimer(time.Until(a.retryAt))
		defer t.Stop()
		ripe, stop = t.C, a.loop.crawler.stopping
	}
	if a.mute.Load() || len(a.parked) == 0 && !a.loop.overflow.empty() {
		t := time.NewTicker(look) // the shard may answer, the overflow's disk be full, or free again
		defer t.Stop()
		ripe = t.C
	}
	select {
	case <-a.wake:
		sleep(ctx, nil, a.loop.crawler.cfg.Linger)
	case <-ripe:
	case <-stop:
	case <-ctx.Done():
	}
}

// takeBack parks the candidates that wait for an overflow that takes none now.
func (a *admitter) takeBack() {
	o := a.loop.overflow
	if o.empty() || a.loop.crawler.overflowErr() == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock() // over both, or they would be counted nowhere
	a.parked = o.takeBack(a.parked)
	a.parkedCount = len(a.parked)
}

// isRetryDue reports whether it is time to ask for the parked candidates again.
func (a *admitter) isRetryDue() bool {
	return len(a.parked) > 0 && (a.loop.crawler.isStopping() || !time.Now().Before(a.retryAt))
}

// admit admits candidates in groups.
func (a *admitter) admit(ctx context.Context, g *admitGroup, candidates []candidate) error {
	for len(candidates) > 0 {
		some := candidates[:min(len(candidates), maxAdmit)]
		g.set(some, a.loop.overflow != nil)
		err := a.call(ctx, g.batch, g.verdicts)
		if err == errMute {
			a.setMute(candidates)
			return nil
		}
		if err == nil {
			err = a.renew(ctx, g)
		}
		if err != nil {
			return err
		}
		a.apply(g)
		candidates = candidates[len(some):]
	}
	return nil
}

// admitPatience is how long one admission call is waited for before it is looked
// at whether the shard answers anything.
const admitPatience = 5 * time.Second

// errMute: the shard answers nothing at all.
var errMute = errors.New("crawl: the shard is silent")

// isMute reports whether the shard answers nothing, from a call that did not
// get through until the next tick that does.
func (a *admitter) isMute() bool {
	if !a.mute.Load() {
		return false
	}
	if a.loop.silentFor(time.Now()) >= heartbeat {
		return true
	}
	a.mute.Store(false)
	a.retryAt = time.Time{}
	return false
}

// setMute parks candidates of a shard that answers nothing; those that an
// overflow takes go there. Once half of what may be open is, the pages of those
// that are parked go back: requests to all other sites would stop.
func (a *admitter) setMute(candidates []candidate) {
	a.mute.Store(true)
	a.parked = append(a.parked, candidates...)
	if a.loop.overflow != nil && a.loop.crawler.overflowErr() == nil {
		a.loop.overflow.add(a.parked, a.loop.notify)
	} else if a.loop.crawler.isCrowded() {
		for i := range a.parked {
			if p, ok := a.parked[i].from.(*page); ok {
				p.silent.Store(true)
			}
			a.parked[i].from.answered(frontier.Full)
		}
	} else {
		return
	}
	clear(a.parked)
	a.parked = a.parked[:0]
}

// park decides when candidates that found no room are asked for again. A
// crawler that stops tells their pages that it will not be.
func (a *admitter) park() {
	switch {
	case len(a.parked) == 0:
		a.pause = 0
	case a.loop.crawler.isStopping():
		for i := range a.parked {
			a.parked[i].from.answered(frontier.Full)
		}
		a.parked = nil
	case !time.Now().Before(a.retryAt):
		a.pause = min(max(2*a.pause, fullPause), maxFullPause)
		a.retryAt = time.Now().Add(a.pause)
	}
	a.mu.Lock()
	a.calling, a.parkedCount = 0, len(a.parked)
	done := len(a.waiting) == 0 && a.parkedCount == 0
	a.mu.Unlock()
	if done && a.loop.crawler.isStopping() {
		a.loop.notify()
	}
}

// call admits one batch, again until a replica acknowledged it where asked. While the
// crawler stops it fails with errMute instead.
func (a *admitter) call(ctx context.Context, batch []frontier.Candidate, verdicts []frontier.Verdict) error {
	a.epoch = a.loop.checkEpoch()
	for {
		err := a.tryCall(ctx, batch, verdicts)
		if !errors.Is(err, frontier.ErrNotAcked) {
			if err == nil {
				a.unacked.Store(0)
			}
			return err
		}
		a.loop.crawler.count.NotAcked.Inc()
		a.unacked.CompareAndSwap(0, time.Now().UnixMilli())
		if a.loop.crawler.isStopping() {
			return errMute
		}
		if !sleep(ctx, nil, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// tryCall is one call. It fails with errMute when the shard has not answered
// ticks either for a while: the call may then take effect late, as once.
func (a *admitter) tryCall(ctx context.Context, batch []frontier.Candidate, verdicts []frontier.Verdict) error {
	for {
		short, cancel := context.WithTimeout(ctx, admitPatience)
		err := a.loop.crawler.cfg.Frontier.Admit(short, a.loop.shard, batch, verdicts)
		late := err != nil && ctx.Err() == nil && short.Err() != nil && !errors.Is(err, frontier.ErrNotAcked)
		cancel()
		if !late {
			return err
		}
		if a.loop.silentFor(time.Now()) >= admitPatience-heartbeat {
			return errMute
		}
	}
}

// apply hands verdicts back to the pages and keeps candidates that found no room.
func (a *admitter) apply(g *admitGroup) {
	fresh, full := false, false
	for _, v := range g.verdicts {
		a.loop.verdicts[v].Inc()
		fresh, full = fresh || v == frontier.Admitted, full || v == frontier.Full
	}
	for i, v := range g.verdicts {
		if (v == frontier.Admitted || v == frontier.Seen) && g.batch[i].Refetch == "" {
			a.loop.crawler.known.Add(g.batch[i].Fingerprint, a.epoch)
		}
	}
	spills := a.loop.overflow != nil && a.loop.crawler.overflowErr() == nil
	gone := full && spills // candidates that found no room do not ask again
	for i := range g.candidates {
		l, v := &g.candidates[i], g.verdicts[g.of[i]]
		if v == frontier.Full && (!l.once || spills) {
			a.parked = append(a.parked, *l)
			continue
		}
		gone = gone || v == frontier.Full
		l.from.answered(v)
	}
	if fresh {
		a.loop.notify()
	}
	if fresh || gone {
		a.noteRefusal(gone)
	}
	if full && spills {
		a.loop.overflow.add(a.parked, a.loop.notify)
		clear(a.parked)
		a.parked = a.parked[:0]
	}
}

// renew brings forward when URLs of a group that are known are fetched again. It is
// a hint: a shard that is silent meanwhile does not get it.
func (a *admitter) renew(ctx context.Context, g *admitGroup) error {
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
	err := a.loop.crawler.cfg.Frontier.Renew(short, a.loop.shard, list)
	if err != nil && ctx.Err() == nil && short.Err() != nil && !errors.Is(err, frontier.ErrStale) {
		return nil
	}
	return err
}

// noteRefusal keeps when candidates that do not ask again found no room. Without
// some of those others were admitted.
func (a *admitter) noteRefusal(gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refusedAt = (time.Time{}); gone {
		a.refusedAt = time.Now()
	}
}

// admitRequest waits for the verdicts on candidates that stand on no page.
type admitRequest struct {
	mu   sync.Mutex
	full bool // for one of them there was no room
	left int
	done chan struct{} // closed when all are answered
}

func (q *admitRequest) answered(v frontier.Verdict) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.full = q.full || v == frontier.Full
	if q.left--; q.left == 0 {
		close(q.done)
	}
}

// admitAll admits candidates that stand on no page, through the shard loops of
// a running crawler, and waits for all verdicts. It fails with frontier.ErrFull
// when there was no room for all, with once at the first try, else until the
// crawler stopped: whoever named them has to keep them.
func (c *Crawler) admitAll(ctx context.Context, candidates []frontier.Candidate, once bool) error {
	if len(candidates) == 0 {
		return nil
	}
	q := &admitRequest{left: len(candidates), done: make(chan struct{})}
	for _, cand := range candidates {
		c.loopOf(cand.Fingerprint).admitter.add(q, once, []work.Candidate{work.CandidateOf(cand)})
	}
	select {
	case <-q.done:
		if q.full {
			return frontier.ErrFull
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
