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

// fullPause is how long candidates that found no room wait before they ask again.
const fullPause = time.Second

// waiter is told when links of its were answered: a page, or a batch of seeds.
type waiter interface{ acknowledge(v frontier.Verdict) }

// link is a candidate on its way to its shard, and who waits for the answer.
type link struct {
	frontier.Candidate
	from waiter
}

// admitter gathers candidates of many pages for one shard and admits them in
// groups: while one call is under way the next group grows.
type admitter struct {
	lane *lane
	wake chan struct{}

	mu      sync.Mutex
	waiting []link
	full    bool // the shard has no room
	calling int  // candidates under way
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
	return len(a.waiting) == 0 && a.calling == 0
}

// isFull reports whether the shard refused candidates for want of room.
func (a *admitter) isFull() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.full
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

func (g *group) set(links []link) {
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
		g.of = append(g.of, at)
	}
	g.verdicts = append(g.verdicts[:0], make([]frontier.Verdict, len(g.batch))...)
}

// run admits until ctx ends.
func (a *admitter) run(ctx context.Context) {
	g := group{first: make(map[canon.Fingerprint]int)}
	var links []link
	for {
		if links = a.swap(links); len(links) == 0 {
			select {
			case <-a.wake:
				sleep(ctx, nil, a.lane.w.cfg.Linger)
				continue
			case <-ctx.Done():
				return
			}
		}
		for some := range slices.Chunk(links, maxAdmit) {
			g.set(some)
			if err := a.call(ctx, g.batch, g.verdicts); err != nil {
				a.lane.w.fail(ctx, err)
				return
			}
			a.apply(ctx, &g)
		}
	}
}

// call admits one batch, again until a replica acknowledged it where asked.
func (a *admitter) call(ctx context.Context, batch []frontier.Candidate, verdicts []frontier.Verdict) error {
	a.lane.forget()
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

// apply hands verdicts back to the pages and puts refused links in line again.
func (a *admitter) apply(ctx context.Context, g *group) {
	fresh := false
	sure := !a.lane.forget()
	for i, v := range g.verdicts {
		a.lane.w.count.verdicts[v].Inc()
		fresh = fresh || v == frontier.Admitted
		if sure && (v == frontier.Admitted || v == frontier.Seen) && g.batch[i].Again == "" {
			a.lane.known.add(g.batch[i].Fingerprint)
		}
	}
	var full []link
	for i := range g.links {
		if v := g.verdicts[g.of[i]]; v != frontier.Full {
			g.links[i].from.acknowledge(v)
		} else {
			full = append(full, g.links[i])
		}
	}
	a.mu.Lock()
	a.calling -= len(g.links)
	a.full = len(full) > 0
	a.waiting = append(a.waiting, full...)
	a.mu.Unlock()
	if fresh {
		a.lane.stir()
	}
	if len(full) > 0 {
		sleep(ctx, nil, fullPause)
	}
}
