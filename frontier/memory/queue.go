package memory

import (
	"encoding/binary"

	"github.com/klauspost/compress/s2"

	"seine/frontier"
)

// chunkSize is where a chunk ends, in bytes of stored entries. The chunks
// between the first and the last are compressed: URLs of one site have much in
// common.
const chunkSize = 8 << 10

// queue is one list of a site: entries that were put back in front, and behind
// them those that were appended.
type queue struct {
	n     int
	front stack
	head  []byte  // what is left of the first chunk
	mid   []chunk // compressed chunks, zeroed when taken
	taken int     // chunks of mid that were taken
	tail  []byte  // the last chunk, growing
	last  int     // records of tail
	size  int     // bytes of mid
}

// chunk is a compressed chunk, and how many records it has.
type chunk struct {
	packed []byte
	n      int
}

// bytes is what the queue takes.
func (q *queue) bytes() int {
	return q.front.size + len(q.front.top) + len(q.head) + q.size + len(q.tail)
}

// pushBack appends e, an entry of site, under its number. It needs scratch, and
// returns it with the record: the number, then the entry's stored form.
func (q *queue) pushBack(site string, seq int64, e *frontier.Entry, scratch []byte) []byte {
	scratch = frontier.AppendEntry(binary.AppendVarint(scratch[:0], seq), site, e)
	if len(q.tail)+len(scratch) > chunkSize && len(q.tail) > 0 {
		q.seal()
	}
	q.tail = binary.AppendUvarint(q.tail, uint64(len(scratch)))
	q.tail = append(q.tail, scratch...)
	q.n++
	q.last++
	return scratch
}

// seal ends the last chunk and begins a new one.
func (q *queue) seal() {
	if len(q.head) == 0 && q.taken == len(q.mid) {
		q.head, q.tail, q.last = q.tail, nil, 0
		return
	}
	packed := compress(q.tail)
	q.mid, q.size = append(q.mid, chunk{packed, q.last}), q.size+len(packed)
	q.tail, q.last = make([]byte, 0, chunkSize+chunkSize/8), 0
}

// pushFront puts e before all others.
func (q *queue) pushFront(site string, seq int64, e *frontier.Entry, scratch []byte) []byte {
	scratch = frontier.AppendEntry(binary.AppendVarint(scratch[:0], seq), site, e)
	q.front.push(scratch)
	q.n++
	return scratch
}

// numberOf splits a record into its number and the stored form of its entry.
func numberOf(rec []byte) (seq int64, entry []byte) {
	seq, n := binary.Varint(rec)
	return seq, rec[n:]
}

// peek is the first record; valid until the queue changes.
// The queue is not empty.
func (q *queue) peek() []byte {
	if !q.front.empty() {
		return q.front.peek()
	}
	q.fill()
	size, n := binary.Uvarint(q.head)
	return q.head[n : n+int(size)]
}

// fill makes sure that the first chunk holds an entry.
func (q *queue) fill() {
	if len(q.head) > 0 {
		return
	}
	if q.taken == len(q.mid) {
		q.head, q.tail, q.last = q.tail, nil, 0
		q.mid, q.taken = nil, 0
		return
	}
	packed := q.mid[q.taken].packed
	q.head, q.size = expand(packed), q.size-len(packed)
	q.mid[q.taken] = chunk{}
	q.taken++
	if q.taken > 64 && q.taken > len(q.mid)/2 {
		q.mid = append([]chunk(nil), q.mid[q.taken:]...)
		q.taken = 0
	}
}

// pop drops the first entry.
func (q *queue) pop() {
	q.n--
	if !q.front.empty() {
		q.front.pop()
		return
	}
	q.fill()
	size, n := binary.Uvarint(q.head)
	q.head = q.head[n+int(size):]
}

// each calls f with every record, first to last.
func (q *queue) each(f func(rec []byte)) {
	q.front.each(f)
	eachRecord(q.head, f)
	for _, c := range q.mid[q.taken:] {
		eachRecord(expand(c.packed), f)
	}
	eachRecord(q.tail, f)
}

// some calls f with up to count records from the first-th on; chunks before are
// passed without being expanded.
func (q *queue) some(first, count int, f func(rec []byte)) {
	at := 0
	one := func(rec []byte) {
		if at >= first && at < first+count {
			f(rec)
		}
		at++
	}
	q.front.each(one)
	eachRecord(q.head, one)
	for _, c := range q.mid[q.taken:] {
		if at+c.n <= first {
			at += c.n
			continue
		}
		if at >= first+count {
			return
		}
		eachRecord(expand(c.packed), one)
	}
	eachRecord(q.tail, one)
}

func eachRecord(chunk []byte, f func(rec []byte)) {
	for len(chunk) > 0 {
		size, n := binary.Uvarint(chunk)
		f(chunk[n : n+int(size)])
		chunk = chunk[n+int(size):]
	}
}

func compress(chunk []byte) []byte {
	packed := s2.EncodeBetter(nil, chunk)
	return append(make([]byte, 0, len(packed)), packed...)
}

func expand(packed []byte) []byte {
	chunk, err := s2.Decode(nil, packed)
	if err != nil {
		panic("memory: a chunk of a queue was overwritten: " + err.Error())
	}
	return chunk
}

// stack is a list that grows and shrinks at its front only. A record ends with
// its length in four bytes, so that it can be read from behind.
type stack struct {
	full [][]byte // compressed chunks, the lowest first
	size int      // bytes of full
	top  []byte
}

func (s *stack) empty() bool { return len(s.top) == 0 }

func (s *stack) push(rec []byte) {
	if len(s.top)+len(rec) > chunkSize && len(s.top) > 0 {
		packed := compress(s.top)
		s.full, s.size = append(s.full, packed), s.size+len(packed)
		s.top = s.top[:0]
	}
	s.top = append(s.top, rec...)
	s.top = binary.LittleEndian.AppendUint32(s.top, uint32(len(rec)))
}

func (s *stack) peek() []byte {
	end := len(s.top) - 4
	size := int(binary.LittleEndian.Uint32(s.top[end:]))
	return s.top[end-size : end]
}

func (s *stack) pop() {
	s.top = s.top[:len(s.top)-4-len(s.peek())]
	if len(s.top) > 0 {
		return
	}
	if last := len(s.full) - 1; last >= 0 {
		s.top, s.size = expand(s.full[last]), s.size-len(s.full[last])
		s.full[last] = nil
		s.full = s.full[:last]
		return
	}
	s.top = nil
}

// each calls f with every record, the topmost first.
func (s *stack) each(f func(rec []byte)) {
	eachFromTop(s.top, f)
	for i := len(s.full) - 1; i >= 0; i-- {
		eachFromTop(expand(s.full[i]), f)
	}
}

func eachFromTop(chunk []byte, f func(rec []byte)) {
	s := stack{top: chunk}
	for len(s.top) > 0 {
		rec := s.peek()
		f(rec)
		s.top = s.top[:len(s.top)-4-len(rec)]
	}
}
