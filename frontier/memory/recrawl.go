package memory

import (
	"context"
	"encoding/binary"
	"math"

	"seine/frontier"
)

// recrawlSet is the URLs of a site that wait to be recrawled: the first to be due
// first, and each by its key.
type recrawlSet struct {
	due   heap[*recrawl]
	byKey map[uint64]*recrawl
}

// recrawl is one of them. It takes some 90 bytes beside its entry.
type recrawl struct {
	until int64 // milliseconds
	key   uint64
	pos   int
	entry string // stored form
}

func (a *recrawl) before(x *recrawl) bool {
	return a.until < x.until || a.until == x.until && a.key < x.key
}
func (a *recrawl) moved(i int) { a.pos = i }

// firstWait is when the first retry may run, or the first URL is recrawled;
// math.MaxInt64 for none.
func (s *site) firstWait() int64 {
	first := int64(math.MaxInt64)
	if len(s.waits) > 0 {
		first = s.waits[0].until
	}
	if s.recrawl != nil {
		first = min(first, s.recrawl.due[0].until)
	}
	return first
}

// keepNext has a URL wait until it is recrawled, in the place of another of its
// key.
func (p *shardState) keepNext(s *site, next *frontier.Next, until int64) {
	if s.recrawl == nil {
		s.recrawl = &recrawlSet{byKey: make(map[uint64]*recrawl)}
	}
	p.scratch = frontier.AppendEntry(p.scratch[:0], s.name, &next.Entry)
	a := s.recrawl.byKey[next.Key]
	if a == nil {
		a = &recrawl{until: until, key: next.Key, entry: string(p.scratch)}
		s.recrawl.byKey[a.key] = a
		s.recrawl.due.push(a)
		p.stats.Recrawls++
	} else {
		a.until, a.entry = until, string(p.scratch)
		s.recrawl.due.fix(a.pos)
	}
	p.keepRecrawl(s, a)
}

// reserved is how many of most URLs are left to those due to be recrawled; what
// is less than one comes about by turns.
func (p *shardState) reserved(s *site, most, share int) int {
	if share <= 0 || s.recrawl == nil {
		return 0
	}
	n := int(float64(most)*(float64(min(share, 100))/100) + float64(s.round)/8)
	due := 0
	s.recrawl.due.each(0, func(a *recrawl) bool { return due < n && a.until <= p.now }, func(*recrawl) { due++ })
	return min(due, n)
}

// renew leases up to most URLs that are due to be recrawled, the longest due
// first. In the store they stand at the front of their queues until they are
// settled.
func (p *shardState) renew(l *lease, most int) {
	s := l.site
	for n := 0; n < most && s.recrawl != nil && s.recrawl.due[0].until <= p.now; n++ {
		a := s.recrawl.due[0]
		s.recrawl.due.remove(0)
		delete(s.recrawl.byKey, a.key)
		if len(s.recrawl.due) == 0 {
			s.recrawl = nil
		}
		p.stats.Recrawls--
		p.stats.Recrawled++
		p.dropRecrawl(s, a)
		p.first--
		at := position{decodeEntry(a.entry, s.name).Priority, p.first}
		p.keepEntry(s, at, []byte(a.entry))
		l.records = append(l.records, a.entry)
		l.positions = append(l.positions, at)
	}
}

// Renew brings forward when URLs are recrawled. Cost: O(log waiting) for each.
func (f *Frontier) Renew(ctx context.Context, k int, renewals []frontier.Renewal) error {
	p, err := f.shard(ctx, k, "renew")
	if err != nil {
		return err
	}
	p.lock()
	for i := range renewals {
		r := &renewals[i]
		s := p.sites[r.Site]
		if s == nil || s.recrawl == nil {
			continue
		}
		until := p.now + roundUp(r.Within)
		if a := s.recrawl.byKey[r.Key]; a != nil && until < a.until {
			a.until = until
			s.recrawl.due.fix(a.pos)
			p.keepRecrawl(s, a)
			p.place(s)
		}
	}
	return p.unlock(ctx, "renew")
}

// keepRecrawl stores a URL that is recrawled.
func (p *shardState) keepRecrawl(s *site, a *recrawl) {
	if p.tx == nil {
		return
	}
	p.value = append(binary.AppendVarint(p.value[:0], a.until), a.entry...)
	p.tx.Set(p.numbered(keyRecrawl, s.name, int64(a.key)), p.value)
}

func (p *shardState) dropRecrawl(s *site, a *recrawl) {
	if p.tx != nil {
		p.tx.Delete(p.numbered(keyRecrawl, s.name, int64(a.key)))
	}
}

func (l *loader) loadRecrawl(key, value []byte) bool {
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
