package crawl

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

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

// waiter is told when links of its were answered: a page, or a batch of seeds.
// Full means that nobody will ask for room again.
type waiter interface{ acknowledge(v frontier.Verdict) }

// link is a candidate on its way to its shard, and who waits for the answer.
type link struct {
	frontier.Candidate
	from waiter
	once bool // it does not wait for room
}

// admitter gathers candidates of many pages for one shard and admits them in
// groups: while one call is under way the next group grows. Candidates that
// found no room go to the overflow, or while that takes none are parked and asked for
// again, less and less often; what comes after them is asked for at once, since
// links that are known need no room.
type admitter struct {
	lane *lane
	wake chan struct{}

	mu      sync.Mutex
	waiting []link
	calling int       // candidates under way
	parked  int       // candidates that found no room
	noRoom  time.Time // when candidates that do not ask again found none, and none was admitted since

	// Of the goroutine that admits:
	epoch uint64 // of the connection, before the last call
	full  []link
	pause time.Duration // until full is tried again
	retry time.Time
}

func newAdmitter(l *lane) *admitter { return &admitter{lane: l, wake: make(chan struct{}, 1)} }

// add takes links over.
func (a *admitter) add(links []link) {
	a.mu.Lock()
	a.waiting = append(a.waiting, links...)
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *admitter) empty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting) == 0 && a.calling == 0 && a.parked == 0 && a.lane.spill.empty()
}

// isFull reports whether the shard has no room for candidates: some wait, or
// some that do not found none lately.
func (a *admitter) isFull() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.parked > 0 || time.Since(a.noRoom) < roomUnknown
}

// waits reports whether candidates wait for room.
func (a *admitter) waits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.parked > 0
}

// swap takes everything that waits and leaves an empty line in spare's memory.
func (a *admitter) swap(spare []link) []link {
	clear(spare)
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.waiting
	a.waiting = spare[:0]
	a.calling = len(all)
	return all
}

// group is one admission call: links, the distinct candidates among them, and
// which of those each link is. Neighbouring pages link to the same URLs.
type group struct {
	links    []link
	batch    []frontier.Candidate
	verdicts []frontier.Verdict
	of       []int
	first    map[canon.Fingerprint]int
}

// set takes links. Where memory is scarce they wait, when keep says so, or one
// of the links to a URL does.
func (g *group) set(links []link, keep bool) {
	g.links, g.batch, g.of = links, g.batch[:0], g.of[:0]
	clear(g.first)
	for i := range links {
		c := &links[i].Candidate
		at, known := g.first[c.Fingerprint]
		if !known || c.Again != "" {
			at = len(g.batch)
			g.batch = append(g.batch, *c)
			if c.Again == "" {
				g.first[c.Fingerprint] = at
			}
		}
		g.batch[at].Waits = g.batch[at].Waits || c.Waits || c.Seed || keep
		g.of = append(g.of, at)
	}
	g.verdicts = append(g.verdicts[:0], make([]frontier.Verdict, len(g.batch))...)
}

// run admits until ctx ends.
func (a *admitter) run(ctx context.Context) {
	g := group{first: make(map[canon.Fingerprint]int)}
	var links []link
	for ctx.Err() == nil {
		a.takeBack()
		links = a.swap(links)
		if len(links) == 0 && !a.ripe() {
			a.rest(ctx)
			continue
		}
		err := a.admit(ctx, &g, links)
		if err == nil && a.ripe() {
			full := a.full
			a.full = nil
			err = a.admit(ctx, &g, full)
		}
		if err != nil {
			a.lane.w.fail(ctx, err)
			return
		}
		a.park()
	}
}

// rest waits until links come, the parked ones are ripe, or the worker stops.
func (a *admitter) rest(ctx context.Context) {
	var ripe <-chan time.Time
	var stop <-chan struct{}
	if len(a.full) > 0 {
		t := time.NewTimer(time.Until(a.retry))
		defer t.Stop()
		ripe, stop = t.C, a.lane.w.stopping
	} else if !a.lane.spill.empty() {
		t := time.NewTicker(look) // at whether its disk is full
		defer t.Stop()
		ripe = t.C
	}
	select {
	case <-a.wake:
		sleep(ctx, nil, a.lane.w.cfg.Linger)
	case <-ripe:
	case <-stop:
	case <-ctx.Done():
	}
}

// takeBack parks the links that wait for an overflow that takes none now.
func (a *admitter) takeBack() {
	s := a.lane.spill
	if s.empty() || a.lane.w.overflowErr() == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock() // over both, or they would seem to be nowhere
	a.full = s.takeBack(a.full)
	a.parked = len(a.full)
}

// ripe reports whether it is time to ask for the parked links again.
func (a *admitter) ripe() bool {
	return len(a.full) > 0 && (a.lane.w.isStopping() || !time.Now().Before(a.retry))
}

// admit admits links in groups.
func (a *admitter) admit(ctx context.Context, g *group, links []link) error {
	for some := range slices.Chunk(links, maxAdmit) {
		g.set(some, a.lane.spill != nil)
		if err := a.call(ctx, g.batch, g.verdicts); err != nil {
			return err
		}
		a.apply(g)
	}
	return nil
}

// park decides when links that found no room are asked for again. A worker that
// stops tells their pages that it will not be.
func (a *admitter) park() {
	switch {
	case len(a.full) == 0:
		a.pause = 0
	case a.lane.w.isStopping():
		for i := range a.full {
			a.full[i].from.acknowledge(frontier.Full)
		}
		a.full = nil
	case !time.Now().Before(a.retry):
		a.pause = min(max(2*a.pause, fullPause), maxFullPause)
		a.retry = time.Now().Add(a.pause)
	}
	a.mu.Lock()
	a.calling, a.parked = 0, len(a.full)
	done := len(a.waiting) == 0 && a.parked == 0
	a.mu.Unlock()
	if done && a.lane.w.isStopping() {
		a.lane.stir()
	}
}

// call admits one batch, again until a replica acknowledged it where asked.
func (a *admitter) call(ctx context.Context, batch []frontier.Candidate, verdicts []frontier.Verdict) error {
	a.epoch = a.lane.doubt()
	for {
		err := a.lane.w.cfg.Frontier.Admit(ctx, a.lane.shard, batch, verdicts)
		if !errors.Is(err, frontier.ErrNotAcked) {
			return err
		}
		a.lane.w.count.notAcked.Inc()
		if !sleep(ctx, nil, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// apply hands verdicts back to the pages and keeps links that found no room.
func (a *admitter) apply(g *group) {
	fresh, full := false, false
	for _, v := range g.verdicts {
		a.lane.verdicts[v].Inc()
		fresh, full = fresh || v == frontier.Admitted, full || v == frontier.Full
	}
	a.lane.remember(a.epoch, func() {
		for i, v := range g.verdicts {
			if (v == frontier.Admitted || v == frontier.Seen) && g.batch[i].Again == "" {
				a.lane.known.add(g.batch[i].Fingerprint)
			}
		}
	})
	spills := a.lane.spill != nil && a.lane.w.overflowErr() == nil
	gone := full && spills // candidates that found no room do not ask again
	for i := range g.links {
		l, v := &g.links[i], g.verdicts[g.of[i]]
		if v == frontier.Full && (!l.once || spills) {
			a.full = append(a.full, *l)
			continue
		}
		gone = gone || v == frontier.Full
		l.from.acknowledge(v)
	}
	if fresh {
		a.lane.stir()
	}
	if fresh || gone {
		a.noteRoom(gone)
	}
	if full && spills {
		a.lane.spill.take(a.full, a.lane.stir)
		clear(a.full)
		a.full = a.full[:0]
	}
}

// noteRoom keeps when candidates that do not ask again found no room. Without
// some of those others were admitted.
func (a *admitter) noteRoom(gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.noRoom = (time.Time{}); gone {
		a.noRoom = time.Now()
	}
}
