package trust

import (
	"math"
	"sync"
	"time"
)

// entryBytes is what an entry takes at most: 40 bytes, one of the map's own, and as
// much again while the map has grown and is half empty.
const entryBytes = 100

// memory knows until when what an Identity names counts. It has two generations: when
// the young one is full, it becomes the old one, and what nobody asked for since
// the time before is forgotten.
type memory struct {
	mu         sync.Mutex
	half       int // entries of a generation
	young, old map[Identity]span
}

// span is a window in 8 bytes; it reaches to the year 2106.
type span struct{ from, until uint32 }

func newMemory(bytes int64) *memory {
	return &memory{half: max(1, int(bytes/entryBytes/2)), young: make(map[Identity]span), old: make(map[Identity]span)}
}

// get finds what counts now.
func (m *memory) get(id Identity, now time.Time) (window, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.young[id]
	if !known {
		if s, known = m.old[id]; !known {
			return window{}, false
		}
		m.add(id, s)
	}
	w := window{int64(s.from), int64(s.until)}
	return w, w.holds(now)
}

// put remembers id for w, if that holds now and for longer than what is known.
func (m *memory) put(id Identity, w window, now time.Time) {
	w = w.and(window{0, math.MaxUint32})
	if !w.holds(now) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, known := m.young[id]; !known || int64(s.until) < w.until || int64(s.from) > now.Unix() {
		m.add(id, span{uint32(w.from), uint32(w.until)})
	}
}

func (m *memory) add(id Identity, s span) {
	if len(m.young) >= m.half {
		if _, there := m.young[id]; !there {
			clear(m.old)
			m.young, m.old = m.old, m.young
		}
	}
	m.young[id] = s
}
