package extract

// set holds 64-bit hashes, each with a flag: whether it was added as one to
// follow. Its memory is kept from page to page; clearing costs what was added.
type set struct {
	slots []uint64 // 0 is empty; bit 0 is the flag
	spare []uint64 // memory to grow into
	n     int
}

// hasHash reports whether addHash would have no news: h is there, as one to follow if
// follow is true.
func (s *set) hasHash(h uint64, follow bool) bool {
	if len(s.slots) == 0 {
		return false
	}
	h = keyOf(h)
	for i := s.home(h); ; i++ {
		switch old := s.slots[i&(len(s.slots)-1)]; {
		case old == 0:
			return false
		case old|1 == h:
			return old&1 != 0 || !follow
		}
	}
}

// addHash adds h and reports whether that is news: it was not there, or only as
// one not to follow and follow is true.
func (s *set) addHash(h uint64, follow bool) bool {
	if 2*s.n >= len(s.slots) {
		s.grow()
	}
	h = keyOf(h)
	for i := s.home(h); ; i++ {
		switch slot := &s.slots[i&(len(s.slots)-1)]; {
		case *slot == 0:
			*slot = h
			if !follow {
				*slot = h &^ 1
			}
			s.n++
			return true
		case *slot|1 == h:
			if follow && *slot&1 == 0 {
				*slot = h
				return true
			}
			return false
		}
	}
}

// keyOf is h with its flag up, and never 0 without it.
func keyOf(h uint64) uint64 { return max(h|1, 3) }

// home is where the search for a key begins.
func (s *set) home(key uint64) int {
	return int(key >> 1 * 0x9E3779B97F4A7C15 >> 20 & uint64(len(s.slots)-1))
}

func (s *set) grow() {
	old := s.slots
	n := max(minSlots, 2*len(old))
	if cap(s.spare) < n {
		s.spare = make([]uint64, n)
	}
	s.slots, s.spare, s.n = s.spare[:n], nil, 0
	clear(s.slots)
	for _, h := range old {
		if h != 0 {
			s.addHash(h, h&1 != 0)
		}
	}
	s.spare = old
}

// minSlots is what a set starts with for every page, whatever the last one held.
const minSlots = 256

func (s *set) clear() {
	s.slots = s.slots[:min(minSlots, len(s.slots))]
	clear(s.slots)
	s.n = 0
}

// queue keeps links, their bytes in one buffer.
type queue struct {
	links []queued
	bytes []byte
	link  Link
}

// queued is a link whose texts stand in the buffer, one behind the other.
type queued struct {
	kind          Kind
	noFollow      bool
	raw, rel, typ uint32 // lengths
}

// maxQueue bounds a queue, in bytes: of real pages, few have half as much.
const (
	maxQueue    = 64 << 10
	queuedBytes = 16
)

// push copies l in; false when there is no room.
func (q *queue) push(l *Link) bool {
	if len(q.bytes)+len(l.Raw)+len(l.Rel)+len(l.Type)+queuedBytes*(len(q.links)+1) > maxQueue {
		return false
	}
	q.links = append(q.links, queued{l.Kind, l.NoFollow, uint32(len(l.Raw)), uint32(len(l.Rel)), uint32(len(l.Type))})
	q.bytes = append(append(append(q.bytes, l.Raw...), l.Rel...), l.Type...)
	return true
}

// each hands the links to f in order.
func (q *queue) each(f func(*Link)) {
	b := q.bytes
	cut := func(n uint32) (s []byte) {
		s, b = b[:n:n], b[n:]
		return s
	}
	for _, l := range q.links {
		q.link = Link{Kind: l.kind, NoFollow: l.noFollow, Priority: -1}
		q.link.Raw, q.link.Rel, q.link.Type = cut(l.raw), cut(l.rel), cut(l.typ)
		f(&q.link)
	}
}

func (q *queue) clear() { q.links, q.bytes = q.links[:0], q.bytes[:0] }
