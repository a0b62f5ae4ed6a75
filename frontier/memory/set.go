package memory

import (
	"math/bits"

	"seine/frontier/canon"
)

// tables is the number of tables of a set. One of them grows at a time, so that
// no insertion ever moves more than a share of what is known.
const tables = 256

// set holds fingerprints exactly, 16 bytes each plus slack. Every table is one
// array ordered by hash: a fingerprint stands at or right of the place that
// multiply-shift gives it, never left of a smaller one, so that an unsuccessful
// search ends early even in a table that is nearly full, and growing is one
// pass over memory in order.
type set struct {
	tables [tables]table
	zero   bool // the fingerprint of all zeros, which marks empty places
	n      int
}

// table is a share of a set. Its last places take what runs over the end.
type table struct {
	slots []canon.Fingerprint
	home  uint64 // places that multiply-shift gives out; the rest is overrun
	n     int
	limit int // grows above
}

// overrun is the number of places behind the last home.
const overrun = 64

// tableOf uses the low bits, home the high ones: they are independent.
func tableOf(f canon.Fingerprint) int { return int(f.Key % tables) }

// less orders fingerprints as they are in a table.
func less(a, b canon.Fingerprint) bool {
	return a.Key < b.Key || a.Key == b.Key && a.Site < b.Site
}

// has reports whether f is in the set. Cost: one or two cache lines.
func (s *set) has(f canon.Fingerprint) bool {
	if f == (canon.Fingerprint{}) {
		return s.zero
	}
	t := &s.tables[tableOf(f)]
	if t.n == 0 {
		return false
	}
	i := t.find(f)
	return i < len(t.slots) && t.slots[i] == f
}

// add puts f in and reports whether it was new.
func (s *set) add(f canon.Fingerprint) bool {
	if f == (canon.Fingerprint{}) {
		if s.zero {
			return false
		}
		s.zero = true
		s.n++
		return true
	}
	t := &s.tables[tableOf(f)]
	if t.n >= t.limit {
		t.grow()
	}
	for {
		i := t.find(f)
		if i < len(t.slots) && t.slots[i] == f {
			return false
		}
		if t.insert(i, f) {
			s.n++
			return true
		}
		t.grow()
	}
}

// find returns where f stands or belongs.
func (t *table) find(f canon.Fingerprint) int {
	hi, _ := bits.Mul64(f.Key, t.home)
	i := int(hi)
	for i < len(t.slots) && t.slots[i] != (canon.Fingerprint{}) && less(t.slots[i], f) {
		i++
	}
	return i
}

// insert shifts the run that starts at i by one place; false means that it
// reaches the end of the table.
func (t *table) insert(i int, f canon.Fingerprint) bool {
	end := i
	for end < len(t.slots) && t.slots[end] != (canon.Fingerprint{}) {
		end++
	}
	if end >= len(t.slots) {
		return false
	}
	copy(t.slots[i+1:end+1], t.slots[i:end])
	t.slots[i] = f
	t.n++
	return true
}

// grow makes the table a quarter larger. Fingerprints keep their order, so each
// lands behind the one before it or at its own home.
func (t *table) grow() {
	old := t.slots
	t.home = max(16, t.home+t.home/4)
	for {
		t.slots = make([]canon.Fingerprint, t.home+overrun)
		t.limit = int(t.home - t.home/8)
		if t.fill(old) {
			return
		}
		t.home += t.home / 4
	}
}

// fill puts ordered fingerprints in; false means that they ran over the end.
func (t *table) fill(old []canon.Fingerprint) bool {
	next := 0
	for _, f := range old {
		if f == (canon.Fingerprint{}) {
			continue
		}
		hi, _ := bits.Mul64(f.Key, t.home)
		next = max(next, int(hi))
		if next >= len(t.slots) {
			return false
		}
		t.slots[next] = f
		next++
	}
	return true
}
