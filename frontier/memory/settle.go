package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"seine/frontier"
)

// Settle takes outcomes of visits and frees their sites. What was settled
// before, or reaped, is gone.
func (f *Frontier) Settle(ctx context.Context, k int, settlements []frontier.Settlement) ([]frontier.Settled, error) {
	p, err := f.shard(ctx, k, "settle")
	if err != nil {
		return nil, err
	}
	p.lock()
	out := make([]frontier.Settled, len(settlements))
	for i := range settlements {
		st := &settlements[i]
		l := p.lease(st.Lease)
		if l == nil {
			out[i].Outcomes = make([]bool, len(st.Outcomes))
			continue
		}
		out[i] = p.settle(l, st)
	}
	return out, p.unlock(ctx, "settle")
}

func (p *shardState) settle(l *lease, st *frontier.Settlement) frontier.Settled {
	settled := make([]bool, len(st.Outcomes))
	s := l.site
	var back []int
	waits := false // something of the site does, which tells only where nothing is queued
	for i := range st.Outcomes {
		o := &st.Outcomes[i]
		at := o.Index - 1
		if at < 0 || at >= len(l.open) || !l.open[at] {
			continue
		}
		settled[i] = true
		p.close(l, at)
		switch o.Kind {
		case frontier.Done:
			p.stats.Done++
		case frontier.Recrawl:
			p.stats.Done++
			p.keepNext(s, o.Next, p.now+roundUp(o.NotBefore))
			waits = true
		case frontier.Dead:
			e := l.entry(at)
			e.Lost = 0
			e.Attempts = min(255-o.Tries, e.Attempts) + o.Tries
			p.deadLetter(s.name, o.Cause, strings.Clone(frontier.OneLine(o.Text)), e)
			if o.Unasked {
				p.stats.Unasked++
			}
		case frontier.Retry:
			p.retry(s, l.entry(at), o.NotBefore, o.Blameless)
			waits = true
		default:
			back = append(back, at)
		}
	}
	p.requeue(l, back)
	misplaced, keep := len(back) > 0 || waits && s.best() == len(s.queues), false
	if !slices.Contains(settled, false) {
		p.sum(s, st)
	}
	if st.Cookies != nil && s.leased == l && (st.Release != nil || slices.Contains(settled, true)) {
		p.keepCookies(s, *st.Cookies)
	}
	if st.Walls != nil && s.leased == l && (st.Release != nil || slices.Contains(settled, true)) {
		p.keepWalls(s, st.Walls)
	}
	if st.Release != nil && s.leased == l {
		s.leased = nil
		misplaced, keep = true, st.Release.Keep
		p.release(s, st.Release)
	}
	if s.leased != l && l.left == 0 {
		p.drop(l)
		misplaced = misplaced || s.place == nowhere
	}
	out := frontier.Settled{Outcomes: settled}
	if misplaced {
		p.place(s)
	}
	if keep {
		out.Kept, out.Due = p.keepForCaller(s)
	}
	return out
}

// keepForCaller has a site wait for the fetcher that released it, if it has URLs that are due
// when its clock is.
func (p *shardState) keepForCaller(s *site) (t frontier.Ticket, due time.Duration) {
	if s.place < 0 || s.place > 3 || s.score != 2*s.clock {
		return t, 0
	}
	p.move(s, s.place, 2*(s.clock+frontier.KeptFor.Milliseconds())+1)
	return frontier.Ticket{Site: s.name, Class: uint8(s.place), Score: formatScore(s.score)}, time.Duration(s.clock-p.now) * time.Millisecond
}

// close marks one entry of a visit as settled: it is in no list any more.
func (p *shardState) close(l *lease, at int) {
	l.open[at] = false
	l.left--
	p.stats.Open--
	p.dropEntry(l.site, l.positions[at])
}

// drop ends a lease.
func (p *shardState) drop(l *lease) {
	p.stats.Open -= int64(l.left)
	p.expiry.remove(l.pos)
	delete(p.leases, l.token)
	l.site.open--
	if l.site.leased == l {
		l.site.leased = nil
	}
}

// release takes over what the fetcher says of the site.
func (p *shardState) release(s *site, free *frontier.Release) {
	remain := free.Remain
	if s.reserved != nil && s.reserved.until > p.now {
		remain = max(remain, frontier.ReserveRetry)
	}
	s.clock = max(s.clock, p.now+1+roundUp(remain)) // p.now is rounded down
	s.delay = free.Delay
	s.failures = int32(free.Failures)
	p.changed(s)
	if free.Why != "" {
		s.more().why = strings.Clone(free.Why)
	} else if s.extra != nil {
		s.extra.why = ""
	}
}

// keepCookies has a site keep these.
func (p *shardState) keepCookies(s *site, cookies string) {
	if cookies != "" || s.extra != nil {
		s.more().cookies = strings.Clone(cookies)
		p.changed(s)
	}
}

// keepWalls replaces the row of walls of a site. Its clock waits for the end of the back-off.
func (p *shardState) keepWalls(s *site, w *frontier.Walls) {
	if w.Count <= 0 {
		p.endWalls(s, p.now)
		return
	}
	row := s.wallRow()
	if row == nil {
		row = &walls{since: p.now}
		s.more().walls = row
	}
	row.count, row.vendor = w.Count, p.word(w.Vendor)
	if w.Count >= frontier.WallsInRow {
		row.ends = max(row.ends, p.now+1+roundUp(w.Pause))
		s.clock = max(s.clock, row.ends)
		p.walled[s.name] = s
	}
	p.changed(s)
}

// endWalls forgets the row of walls of a site. Its clock goes back to next, but only where
// nothing moved it since: a time that Reserve granted stays.
func (p *shardState) endWalls(s *site, next int64) {
	if row := s.wallRow(); row != nil {
		if s.clock <= row.ends {
			s.clock = min(s.clock, next)
		}
		s.extra.walls = nil
		p.changed(s)
	}
	delete(p.walled, s.name)
}

// roundUp is a duration in milliseconds.
func roundUp(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}

// retry queues an entry for later, one class lower.
func (p *shardState) retry(s *site, e frontier.Entry, notBefore time.Duration, blameless bool) {
	e.Lost = 0
	if !blameless {
		e.Priority = min(3, e.Priority+1)
		e.Attempts = min(254, e.Attempts) + 1
	}
	p.stats.Retried++
	p.stats.Waiting++
	w := &wait{until: p.now + roundUp(notBefore), order: p.stats.Retried, entry: e}
	s.waits.push(w)
	p.keepRetry(s, w)
}

// requeue puts entries that were not tried back in front, in the order they
// were leased in.
func (p *shardState) requeue(l *lease, back []int) {
	slices.SortFunc(back, func(a, b int) int { return cmp.Compare(b, a) })
	for _, at := range back {
		e := l.entry(at)
		e.Lost = 0
		p.pushFront(l.site, &e)
	}
}

// Reap ends leases that expired, unless somebody extended them since, or
// fetchers may have been cut off (as in Tick). Their
// URLs return to the front of their queues, marked as lost once more; those
// marked for the third time are dead.
func (f *Frontier) Reap(ctx context.Context, k int, expired []frontier.Expired) (int, error) {
	p, err := f.shard(ctx, k, "reap")
	if err != nil {
		return 0, err
	}
	p.lock()
	if p.now < p.quiet || p.now-p.tick > f.cfg.Lease.Milliseconds()/3 {
		return 0, p.unlock(ctx, "reap")
	}
	n := 0
	for i := range expired {
		l := p.lease(expired[i].Lease)
		if l == nil || l.deadline != expired[i].Deadline || l.deadline >= p.now {
			continue
		}
		delay := f.settings.Load().DelayOf(l.site.name)
		p.reapLease(l, delay)
		n++
	}
	return n, p.unlock(ctx, "reap")
}

// reapLease ends a lease. What is open returns to the front of its queues, marked
// as lost once more.
func (p *shardState) reapLease(l *lease, delay time.Duration) {
	s := l.site
	for at := len(l.records) - 1; at >= 0; at-- {
		if !l.open[at] {
			continue
		}
		p.close(l, at)
		p.stats.Lost++
		e := l.entry(at)
		if e.Lost++; e.Lost >= 3 {
			p.deadLetter(s.name, frontier.CauseLost, "", e)
		} else {
			p.pushFront(s, &e)
		}
	}
	if s.leased == l {
		if s.delay > 0 {
			delay = s.delay
		}
		s.clock = max(s.clock, p.now+1+roundUp(delay))
	}
	p.changed(s)
	p.drop(l)
	p.place(s)
}
