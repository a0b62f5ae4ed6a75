package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
)

// SiteStates reads what a shard keeps of some sites, in their order.
func (f *Frontier) SiteStates(ctx context.Context, k int, sites []string) ([]frontier.SiteState, error) {
	p, err := f.shard(ctx, k, "site states")
	if err != nil {
		return nil, err
	}
	p.lock()
	defer p.mu.Unlock()
	states := make([]frontier.SiteState, len(sites))
	for i, name := range sites {
		states[i] = p.stateOf(name)
	}
	return states, nil
}

// stateOf is what is kept of a site. The lock is held.
func (p *shardState) stateOf(name string) frontier.SiteState {
	state := frontier.SiteState{Site: name, Place: frontier.PlaceIdle}
	s := p.sites[name]
	if s == nil {
		return state
	}
	p.age(s)
	left := func(at int64) time.Duration { return time.Duration(at-p.now) * time.Millisecond }
	state.Delay, state.Why, state.Failures, state.Waiting = s.delay, s.why(), int(s.failures), int64(len(s.waits))
	if s.recrawl != nil {
		state.Recrawls = int64(len(s.recrawl.due))
	}
	if s.clock > 0 {
		state.Clock = left(s.clock)
	}
	for class, q := range s.queues {
		if q != nil {
			state.Queued[class] = int64(q.n)
		}
	}
	switch {
	case s.leased != nil:
		state.Place, state.Lease = frontier.PlaceLeased, frontier.Lease{Token: s.leased.token, Site: s.name}
		state.Left, state.Open = left(s.leased.deadline), int64(s.leased.left)
	case s.place == inPaused:
		state.Place, state.Due = frontier.PlacePaused, left(s.score/2)
	case s.place >= 0 && s.place < inPaused:
		state.Place, state.Class, state.Due = frontier.PlaceReady, int(s.place), left(s.score/2)
	}
	if s.paused {
		state.Paused = p.stopOf(s, 0)
	}
	if s.blocked {
		state.Blocked = p.stopOf(s, 1)
	}
	state.Totals = s.siteTotals.shown()
	if s.extra != nil && s.extra.stops[2].since != 0 {
		state.Dropped = &frontier.Drop{Since: time.UnixMilli(s.extra.stops[2].since).UTC(), By: s.extra.stops[2].reason}
	}
	if s.extra != nil {
		state.Cap, state.Admitted, state.Override, state.Credentials = s.extra.cap, s.extra.admitted, s.extra.override, s.extra.auth
		state.WantsSign = strings.HasPrefix(s.extra.cookies, frontier.WantsSign)
	}
	if row := s.wallRow(); row != nil {
		state.Walls = &frontier.WallRow{Count: row.count, Vendor: row.vendor, Since: time.UnixMilli(row.since).UTC(), Left: max(0, left(row.ends))}
	}
	state.Known = state.Place != frontier.PlaceIdle || s.clock > 0 || state.Admitted > 0
	return state
}

// stopOf is since when and why a site is paused, 0, or blocked, 1.
func (p *shardState) stopOf(s *site, which int) *frontier.Stop {
	why := s.more().stops[which]
	return &frontier.Stop{Site: s.name, Shard: p.k, Blocked: which == 1, Since: time.UnixMilli(why.since).UTC(), Reason: why.reason}
}

// Entries reads up to count entries of one place of a site from offset on.
func (f *Frontier) Entries(ctx context.Context, k int, at frontier.EntryPlace, offset, count int64) ([]frontier.QueuedEntry, error) {
	count = min(count, frontier.EntriesMost)
	if count <= 0 || offset < 0 && offset+count > 0 {
		return nil, fmt.Errorf("memory: entries: %d from %d on", count, offset)
	}
	p, err := f.shard(ctx, k, "entries")
	if err != nil {
		return nil, err
	}
	p.lock()
	defer p.mu.Unlock()
	s := p.sites[at.Site]
	if s == nil {
		return nil, nil
	}
	switch at.Kind {
	case frontier.InRetries:
		return p.retriesOf(s, int(offset), int(count)), nil
	case frontier.InVisit:
		return openOf(p.leases[at.Token]), nil
	}
	return entriesOf(s, at.Class, int(offset), int(count)), nil
}

// entriesOf are entries of one queue of a site.
func entriesOf(s *site, class, first, count int) (list []frontier.QueuedEntry) {
	q := s.queues[class&3]
	if q == nil {
		return nil
	}
	if first < 0 { // counted from the end, as LRANGE does
		if first += q.n; first < 0 {
			first, count = 0, count+first
		}
	}
	q.some(first, count, func(rec []byte) {
		_, e := numberOf(rec)
		list = append(list, frontier.QueuedEntry{Entry: decodeEntry(e, s.name)})
	})
	return list
}

// retriesOf are retries of a site, the first due first.
func (p *shardState) retriesOf(s *site, first, count int) (list []frontier.QueuedEntry) {
	waits := slices.SortedFunc(slices.Values(s.waits), func(a, b *wait) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.order, b.order))
	})
	waits = waits[min(max(first, 0), len(waits)):]
	for _, w := range waits[:min(count, len(waits))] {
		list = append(list, frontier.QueuedEntry{Entry: w.entry, Left: time.Duration(max(0, w.until-p.now)) * time.Millisecond})
	}
	return list
}

// openOf are the entries of a visit that are not settled.
func openOf(l *lease) (list []frontier.QueuedEntry) {
	if l == nil {
		return nil
	}
	for i, open := range l.open {
		if open {
			list = append(list, frontier.QueuedEntry{Entry: l.entry(i)})
		}
	}
	return list
}

// Knows reports whether a shard knows a URL, which is exact here.
func (f *Frontier) Knows(ctx context.Context, k int, url canon.Fingerprint) (bool, error) {
	p, err := f.shard(ctx, k, "knows")
	if err != nil {
		return false, err
	}
	p.lock()
	defer p.mu.Unlock()
	return p.known.has(url), nil
}

// Exact: what is known is kept whole.
func (f *Frontier) Exact() bool { return true }
