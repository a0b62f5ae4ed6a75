package trust

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
	"time"
)

const (
	ways       = 16 // entries of a set
	entryBytes = 40
	setBytes   = ways * entryBytes
	leastSets  = 16
)

// memory knows until when what an Identity names counts. An identity, which is a hash,
// says which set keeps it, and in that set the one asked for longest ago gives way. So
// what was asked for lately stays, without a list, at 40 bytes an entry. The table
// doubles as it fills: while it does, the old half is there too.
type memory struct {
	mu   sync.Mutex
	most int // sets
	sets [][ways]entry
	used int // entries
}

// entry of a set, the latest first; one without a span is empty.
type entry struct {
	id   Identity
	span span
}

// span is a window in 8 bytes; it reaches to the year 2106.
type span struct{ from, until uint32 }

func newMemory(bytes int64) *memory {
	most := max(1, int(bytes/setBytes)-leastSets)
	return &memory{most: most, sets: make([][ways]entry, min(most, leastSets))}
}

// at is the set of an identity.
func (m *memory) at(id *Identity) *[ways]entry {
	i, _ := bits.Mul64(binary.LittleEndian.Uint64(id[:]), uint64(len(m.sets)))
	return &m.sets[i]
}

// spanOf finds what is known of id, and puts it in front of its set.
func (m *memory) spanOf(id *Identity) (span, bool) {
	set := m.at(id)
	for i := range set {
		if e := set[i]; e.id == *id && e.span != (span{}) {
			copy(set[1:i+1], set[:i])
			set[0] = e
			return e.span, true
		}
	}
	return span{}, false
}

// recall finds what counts now.
func (m *memory) recall(id Identity, now time.Time) (window, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.spanOf(&id)
	w := window{int64(s.from), int64(s.until)}
	return w, known && w.contains(now)
}

// remember keeps id for w, if that holds now and for longer than what is known.
func (m *memory) remember(id Identity, w window, now time.Time) {
	w = w.and(window{0, math.MaxUint32})
	if !w.contains(now) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.spanOf(&id)
	switch {
	case !known:
		m.grow()
		m.insert(entry{id, span{uint32(w.from), uint32(w.until)}})
	case int64(s.until) < w.until || int64(s.from) > now.Unix():
		m.at(&id)[0].span = span{uint32(w.from), uint32(w.until)}
	}
}

// insert puts a new entry in front of its set.
func (m *memory) insert(e entry) {
	set := m.at(&e.id)
	if set[ways-1].span == (span{}) {
		m.used++
	}
	copy(set[1:], set[:])
	set[0] = e
}

// grow makes the table larger when it is half full.
func (m *memory) grow() {
	if m.used < len(m.sets)*ways/2 || len(m.sets) == m.most {
		return
	}
	old := m.sets
	m.sets, m.used = make([][ways]entry, min(2*len(old), m.most)), 0
	for i := range old {
		for j := ways - 1; j >= 0; j-- { // the latest last, and so in front again
			if e := old[i][j]; e.span != (span{}) {
				m.insert(e)
			}
		}
	}
}
