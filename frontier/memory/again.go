package memory

import (
	"context"
	"encoding/binary"
	"math"

	"seine/frontier"
)

// againSet is the URLs of a site that wait to be fetched again: the first to be due
// first, and each by its key.
type againSet struct {
	due   heap[*again]
	byKey map[uint64]*again
}

// again is one of them. It takes some 90 bytes beside its entry.
type again struct {
	until int64 // milliseconds
	key   uint64
	pos   int
	entry string // stored form
}

func (a *again) before(x *again) bool {
	return a.until < x.until || a.until == x.until && a.key < x.key
}
func (a *again) at() int     { return a.pos }
func (a *again) moved(i int) { a.pos = i }

// firstWait is when the first retry may run, or the first URL is fetched again;
// math.MaxInt64 for none.
func (s *site) firstWait() int64 {
	first := int64(math.MaxInt64)
	if len(s.waits) > 0 {
		first = s.waits[0].until
	}
	if s.again != nil {
		first = min(first, s.again.due[0].until)
	}
	return first
}

// keepNext has a URL wait until it is fetched again, in the place of another of its
// key.
func (p *shardState) keepNext(s *site, next *frontier.Next, until int64) {
	if s.again == nil {
		s.again = &againSet{byKey: make(map[uint64]*again)}
	}
	p.scratch = frontier.AppendEntry(p.scratch[:0], s.name, &next.Entry)
	a := s.again.byKey[next.Key]
	if a == nil {
		a = &again{until: until, key: next.Key, entry: string(p.scratch)}
		s.again.byKey[a.key] = a
		s.again.due.push(a)
		p.stats.Recrawls++
	} else {
		a.until, a.entry = until, string(p.scratch)
		s.again.due.fix(a.pos)
	}
	p.keepAgain(s, a)
}

// reserved is how many of most URLs are left to those due to be fetched again; what
// is less than one comes about by turns.
func (p *shardState) reserved(s *site, most, share int) int {
	if share <= 0 || s.again == nil {
		return 0
	}
	n := int(float64(most)*(float64(min(share, 100))/100) + float64(s.turn)/8)
	due := 0
	s.again.due.each(0, func(a *again) bool { return due < n && a.until <= p.now }, func(*again) { due++ })
	return min(due, n)
}

// renew lends up to most URLs that are due to be fetched again, the longest due
// first. In the store they stand at the front of their queues until they are
// settled.
func (p *shardState) renew(l *lease, most int) {
	s := l.site
	for n := 0; n < most && s.again != nil && s.again.due[0].until <= p.now; n++ {
		a := s.again.due[0]
		s.again.due.remove(0)
		delete(s.again.byKey, a.key)
		if len(s.again.due) == 0 {
			s.again = nil
		}
		p.stats.Recrawls--
		p.stats.Recrawled++
		p.dropAgain(s, a)
		p.first--
		at := position{decodeEntry(a.entry, s.name).Priority, p.first}
		p.keepEntry(s, at, []byte(a.entry))
		l.records = append(l.records, a.entry)
		l.positions = append(l.positions, at)
	}
}

// Renew brings forward when URLs are fetched again. Cost: O(log waiting) for each.
func (f *Frontier) Renew(ctx context.Context, k int, renewals []frontier.Renewal) error {
	p, err := f.shard(ctx, k, "renew")
	if err != nil {
		return err
	}
	p.lock()
	for i := range renewals {
		r := &renewals[i]
		s := p.sites[r.Site]
		if s == nil || s.again == nil {
			continue
		}
		until := p.now + roundUp(r.Within)
		if a := s.again.byKey[r.Key]; a != nil && until < a.until {
			a.until = until
			s.again.due.fix(a.pos)
			p.keepAgain(s, a)
			p.place(s)
		}
	}
	return p.unlock(ctx, "renew")
}

// keepAgain stores a URL that is fetched again.
func (p *shardState) keepAgain(s *site, a *again) {
	if p.tx == nil {
		return
	}
	p.value = append(binary.AppendVarint(p.value[:0], a.until), a.entry...)
	p.tx.Set(p.numbered(keyAgain, s.name, int64(a.key)), p.value)
}

func (p *shardState) dropAgain(s *site, a *again) {
	if p.tx != nil {
		p.tx.Delete(p.numbered(keyAgain, s.name, int64(a.key)))
	}
}

func (l *loader) loadAgain(key, value []byte) bool {
	name, _, id, ok := parseNumbered(key, 0)
	r := reader{b: value}
	until := r.int()
	e, err := frontier.DecodeEntry(string(r.b), name)
	if !ok || r.bad || err != nil {
		return false
	}
	l.keepNext(l.loaded(name), &frontier.Next{Entry: e, Key: uint64(id)}, until)
	return true
}
