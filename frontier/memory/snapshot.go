package memory

import (
	"encoding/binary"
	"io"
	"slices"
)

// The records of a snapshot. Like those of a journal they have no length; a
// frame ends between two of them.
const (
	snapCounters = 'c'
	snapSite     = 's' // what is kept of a site
	snapChunk    = 'q' // some entries of a list
	snapWait     = 'w' // a retry
	snapLease    = 'l' // a visit that is out
	snapLetter   = 'd' // a dead letter
	snapKnown    = 'f' // fingerprints
	snapEnd      = 'e'
)

// The parts of a list that a snapshot keeps as they are.
const (
	chunkFull = iota // of the front, compressed
	chunkTop
	chunkHead
	chunkMid // compressed
	chunkTail
)

// frameGoal is how large the frames of a snapshot are about, in bytes.
const frameGoal = 256 << 10

// image is the state of a shard at one moment, as payloads of frames. Large
// chunks are not copied: nobody changes their bytes.
type image struct {
	frames [][][]byte
	frame  [][]byte // pieces of the last frame, but cur
	cur    []byte
	size   int // bytes in the last frame
}

// record appends a record; text may hold on to large to avoid a copy.
func (m *image) record(rec, large []byte) {
	m.cur = append(m.cur, rec...)
	if len(large) < 1024 {
		m.cur = append(m.cur, large...)
	} else {
		m.frame = append(m.frame, m.cur, large)
		m.cur = nil
	}
	m.size += len(rec) + len(large)
	if m.size >= frameGoal {
		m.flush()
	}
}

func (m *image) flush() {
	if m.size > 0 {
		m.frames = append(m.frames, append(m.frame, m.cur))
		m.frame, m.cur, m.size = nil, nil, 0
	}
}

// capture takes the image of all but what is known. The lock is held. Cost: some
// hundred ns a site, and a copy of the lists that fit in one chunk.
func (p *part) capture() *image {
	m := &image{}
	s := &p.stats
	rec := binary.AppendVarint([]byte{snapCounters}, p.now)
	for _, v := range []int64{s.Admits, s.Known, s.Done, s.Retried, s.Dead, s.Lost, s.Revived, s.Dropped} {
		rec = binary.AppendVarint(rec, v)
	}
	m.record(rec, nil)
	for _, s := range p.sites {
		rec = m.site(s, rec)
	}
	for _, l := range p.leases {
		rec = appendText(append(rec[:0], snapLease), l.site.name)
		rec = appendBool(appendText(rec, l.token), l.site.lent == l)
		rec = binary.AppendUvarint(rec, uint64(len(l.entries)))
		for i := range l.entries {
			if rec = appendBool(rec, l.open[i]); l.open[i] {
				rec = appendFull(rec, &l.entries[i])
			}
		}
		m.record(rec, nil)
	}
	for cause, d := range p.dead {
		for _, l := range d.list[d.first:] {
			rec = appendText(append(rec[:0], snapLetter), cause)
			rec = binary.AppendVarint(rec, l.id)
			rec = appendFull(appendText(appendText(rec, l.site), l.text), &l.entry)
			m.record(rec, nil)
		}
	}
	m.flush()
	return m
}

// site takes the image of a site.
func (m *image) site(s *site, rec []byte) []byte {
	rec = appendText(append(rec[:0], snapSite), s.name)
	rec = binary.AppendVarint(rec, s.clock)
	rec = binary.AppendVarint(rec, int64(s.delay))
	rec = binary.AppendVarint(rec, int64(s.failures))
	rec = append(rec, s.turn)
	rec = appendBool(appendBool(rec, s.paused), s.blocked)
	if rec = appendBool(rec, s.extra != nil); s.extra != nil {
		rec = appendText(appendText(rec, s.extra.why), s.extra.override)
		rec = binary.AppendVarint(binary.AppendVarint(rec, s.extra.cap), s.extra.admitted)
	}
	m.record(rec, nil)
	for class, q := range s.queues {
		if q == nil {
			continue
		}
		chunk := func(kind byte, b []byte) {
			if len(b) > 0 {
				rec = append(appendText(append(rec[:0], snapChunk), s.name), byte(class), kind)
				m.record(binary.AppendUvarint(rec, uint64(len(b))), b)
			}
		}
		for _, b := range q.front.full {
			chunk(chunkFull, b)
		}
		chunk(chunkTop, slices.Clone(q.front.top))
		chunk(chunkHead, q.head)
		for _, b := range q.mid[q.taken:] {
			chunk(chunkMid, b)
		}
		chunk(chunkTail, q.tail)
	}
	waits := slices.Clone(s.waits)
	slices.SortFunc(waits, func(a, b *wait) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	for _, w := range waits {
		rec = appendText(append(rec[:0], snapWait), s.name)
		rec = appendFull(binary.AppendVarint(binary.AppendVarint(rec, w.until), w.order), &w.entry)
		m.record(rec, nil)
	}
	return rec
}

// save writes the snapshot to a new file: the image, and then, table by table
// under the lock, what is known now. What became known since the image was
// taken is in the journal too, and is the same twice.
func (p *part) save(path string, header []byte, m *image) (size int64, err error) {
	f, err := createFile(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	w := &frameWriter{w: f}
	w.frame(header)
	w.salt = saltOf(header)
	for _, pieces := range m.frames {
		w.frame(pieces...)
	}
	var rec []byte
	for i := range tables {
		p.mu.Lock()
		rec = p.known.appendTo(rec[:0], i)
		p.mu.Unlock()
		w.frame(rec)
	}
	w.frame([]byte{snapEnd})
	if w.err == nil {
		w.err = f.Sync()
	}
	return w.size, w.err
}

// frameWriter writes payloads as frames.
type frameWriter struct {
	w    io.Writer
	salt uint32
	buf  []byte
	size int64
	err  error
}

func (w *frameWriter) frame(pieces ...[]byte) {
	if w.err != nil {
		return
	}
	w.buf = append(w.buf[:0], make([]byte, frameHeader)...)
	for _, p := range pieces {
		w.buf = append(w.buf, p...)
	}
	sealFrame(w.buf, w.salt, w.size, 0)
	_, w.err = w.w.Write(w.buf)
	w.size += int64(len(w.buf))
}
