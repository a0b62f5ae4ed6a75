package extract

// set holds 64-bit hashes, each with a flag: whether it was added as one to
// follow. Its memory is kept from page to page; clearing costs what was added.
type set struct {
	slots []uint64 // 0 is empty; bit 0 is the flag
	spare []uint64 // memory to grow into
	n     int
}

// add puts h in and tells whether that is news: it was not there, or only as
// one not to follow and follow is true.
func (s *set) add(h uint64, follow bool) bool {
	if 2*s.n >= len(s.slots) {
		s.grow()
	}
	h |= 1
	if h == 1 {
		h = 3
	}
	mask := uint64(len(s.slots) - 1)
	for i := h >> 1 * 0x9E3779B97F4A7C15 >> 20 & mask; ; i = (i + 1) & mask {
		switch old := s.slots[i]; {
		case old == 0:
			s.slots[i] = h
			if !follow {
				s.slots[i] = h &^ 1
			}
			s.n++
			return true
		case old|1 == h:
			if follow && old&1 == 0 {
				s.slots[i] = h
				return true
			}
			return false
		}
	}
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
			s.add(h, h&1 != 0)
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

// queue holds links back, their bytes in one buffer.
type queue struct {
	links []Link
	bytes []byte
}

const (
	maxQueue      = 64
	maxQueueBytes = 16 << 10
)

// push copies l in; false when there is no room.
func (q *queue) push(l *Link) bool {
	if len(q.links) >= maxQueue || len(q.bytes)+len(l.Raw)+len(l.Rel)+len(l.Type) > maxQueueBytes {
		return false
	}
	c := *l
	c.Raw, c.Rel, c.Type = q.keep(l.Raw), q.keep(l.Rel), q.keep(l.Type)
	q.links = append(q.links, c)
	return true
}

func (q *queue) keep(b []byte) []byte {
	from := len(q.bytes)
	q.bytes = append(q.bytes, b...)
	return q.bytes[from:len(q.bytes):len(q.bytes)]
}

func (q *queue) clear() { q.links, q.bytes = q.links[:0], q.bytes[:0] }
