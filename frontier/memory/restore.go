package memory

import (
	"encoding/binary"
	"slices"
	"time"

	"seine/frontier"
)

// restore takes one record of a snapshot over; false when it is none.
func (p *part) restore(r *reader) bool {
	switch r.byte() {
	case snapCounters:
		p.now = r.int()
		s := &p.stats
		for _, v := range []*int64{&s.Admits, &s.Known, &s.Done, &s.Retried, &s.Dead, &s.Lost, &s.Revived, &s.Dropped} {
			*v = r.int()
		}
	case snapSite:
		p.restoreSite(r)
	case snapChunk:
		name, class, kind := r.text(), r.byte(), r.byte()
		if b := r.bytes(); !r.bad && class < 4 {
			r.bad = !p.restoreChunk(p.restored(name), int(class), kind, b)
		}
	case snapWait:
		s := p.restored(r.text())
		w := &wait{until: r.int(), order: r.int(), entry: r.full()}
		if !r.bad {
			s.waits.push(w)
			p.stats.Waiting++
		}
	case snapLease:
		p.restoreLease(r)
	case snapLetter:
		cause := r.text()
		l := letter{id: r.int(), site: r.text(), text: r.text(), entry: r.full()}
		if !r.bad {
			if p.dead[cause] == nil {
				p.dead[cause] = &letters{}
			}
			p.dead[cause].list = append(p.dead[cause].list, l)
		}
	case snapKnown:
		n := r.take(4)
		if n == nil {
			return false
		}
		for range binary.LittleEndian.Uint32(n) {
			if f := r.fingerprint(); !r.bad {
				p.known.add(f)
			}
		}
	default:
		return false
	}
	return !r.bad
}

// restored is the site of that name, without looking at its age.
func (p *part) restored(name string) *site {
	s := p.sites[name]
	if s == nil {
		s = &site{name: name, place: nowhere}
		p.sites[name] = s
	}
	return s
}

func (p *part) restoreSite(r *reader) {
	s := p.restored(r.text())
	s.clock = r.int()
	s.delay = time.Duration(r.int())
	s.failures = int32(r.int())
	s.turn = r.byte() % 8
	s.paused, s.blocked = r.bool(), r.bool()
	if r.bool() {
		s.extra = &extra{why: r.text(), override: r.text(), cap: r.int(), admitted: r.int()}
	}
}

// restoreChunk gives a list a chunk of it; chunks come in order.
func (p *part) restoreChunk(s *site, class int, kind byte, b []byte) bool {
	b = slices.Clone(b)
	plain := b
	if kind == chunkFull || kind == chunkMid {
		var err error
		if plain, err = expandChecked(b); err != nil {
			return false
		}
	}
	n, ok := countRecords(plain, kind <= chunkTop)
	if !ok {
		return false
	}
	q := p.list(s, uint8(class))
	switch kind {
	case chunkFull:
		q.front.full = append(q.front.full, b)
	case chunkTop:
		q.front.top = b
	case chunkHead:
		q.head = b
	case chunkMid:
		q.mid = append(q.mid, b)
	case chunkTail:
		q.tail = b
	default:
		return false
	}
	q.n += n
	p.stats.Queued += int64(n)
	return true
}

func (p *part) restoreLease(r *reader) {
	s := p.restored(r.text())
	l := &lease{token: r.text(), site: s}
	lent := r.bool()
	n := r.uint()
	for i := uint64(0); i < n && !r.bad; i++ {
		open := r.bool()
		var e frontier.Entry
		if open {
			e = r.full()
			l.left++
		}
		l.entries, l.open = append(l.entries, e), append(l.open, open)
	}
	if r.bad {
		return
	}
	p.enlist(l)
	if lent {
		s.lent = l
	}
}

// countRecords checks the records of a chunk and counts them.
func countRecords(b []byte, fromTop bool) (n int, ok bool) {
	for len(b) > 0 {
		var rec []byte
		if fromTop {
			if len(b) < 4 {
				return 0, false
			}
			size := int(binary.LittleEndian.Uint32(b[len(b)-4:]))
			if size > len(b)-4 {
				return 0, false
			}
			rec, b = b[len(b)-4-size:len(b)-4], b[:len(b)-4-size]
		} else {
			r := reader{b: b}
			if rec = r.bytes(); r.bad {
				return 0, false
			}
			b = r.b
		}
		if !validEntry(rec) {
			return 0, false
		}
		n++
	}
	return n, true
}
