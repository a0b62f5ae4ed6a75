package fetch

import (
	"errors"
	"io"
	"math"
)

// maxWire is how much of a compressed body, or between two codings, is read
// where its decoded body may have max bytes.
func maxWire(max int64) int64 { return max + max/16 + 64<<10 }

// maxIn is how many bytes of a whole answer are read, framing included.
func maxIn(max int64, header int) int64 { return 2*maxWire(max) + int64(header) + 1<<20 }

// wire is a body as the connection gives it: counted, cut one byte after its
// limit, its errors remembered apart from those of decoders above it.
type wire struct {
	r      *framed
	n, max int64
	err    error
}

var (
	errWireLimit = errors.New("body on the wire is larger than allowed")
	errBodyLimit = errors.New("body after inflating is larger than allowed")
)

// next is the next piece of the body, at most so many bytes: good until the next
// call.
func (w *wire) next(most int) ([]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	room := w.max - w.n
	b, err := w.r.next(int(min(int64(most), room+1))) // one byte more than allowed shows that there is more
	if int64(len(b)) > room {
		b, err = b[:room], errWireLimit
	}
	w.n += int64(len(b))
	w.err = err
	return b, err
}

// piece is next, of any size.
func (w *wire) piece() ([]byte, error) { return w.next(math.MaxInt) }

// drain reads up to limit bytes more and says whether the body ended there.
func (w *wire) drain(limit int) bool {
	for w.err == nil && limit > 0 {
		b, _ := w.next(limit)
		limit -= len(b)
	}
	return w.err == io.EOF
}

// piecewise is a body that comes piece by piece, each good until the next call.
type piecewise interface {
	piece() ([]byte, error)
}

// sniffed is a body whose start was looked at before anybody gets it.
type sniffed struct {
	src      piecewise
	start    [sniffLen]byte
	buffered int    // bytes of start that are there
	rest     []byte // of the piece that start ends in
	err      error  // what came with it
}

// look reads the start of src, as much as Sniff looks at, and returns it.
func (s *sniffed) look(src piecewise) []byte {
	s.src, s.buffered, s.rest, s.err = src, 0, nil, nil
	for s.buffered < len(s.start) && s.err == nil {
		var b []byte
		b, s.err = src.piece()
		n := copy(s.start[s.buffered:], b)
		s.buffered, s.rest = s.buffered+n, b[n:]
	}
	return s.start[:s.buffered]
}

func (s *sniffed) piece() (b []byte, err error) {
	switch {
	case s.buffered > 0:
		b, s.buffered = s.start[:s.buffered], 0
		return b, nil
	case len(s.rest) > 0:
		b, s.rest = s.rest, nil
		return b, nil
	case s.err != nil:
		return nil, s.err
	}
	return s.src.piece()
}

// letGo drops the body.
func (s *sniffed) letGo() { s.src, s.rest, s.err = nil, nil, nil }

// reading is a body for who reads it into memory of its own.
type reading struct {
	src  piecewise
	rest []byte // of a piece
	err  error  // what came with it
}

func (r *reading) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.rest, r.err = r.src.piece()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// handlerError carries an error of the Handler through the reading code.
type handlerError struct{ error }

// deliver gives a decoded body to h piece by piece, at most limit bytes of it, and
// says how much. nil is a clean end.
func deliver(h Handler, body piecewise, limit int64) (int64, error) {
	for total := int64(0); ; {
		b, err := body.piece()
		over := int64(len(b)) > limit-total
		if over {
			b = b[:limit-total]
		}
		if len(b) > 0 {
			if _, werr := h.Write(b); werr != nil {
				return total, &handlerError{werr}
			}
			total += int64(len(b))
		}
		switch {
		case over:
			return total, errBodyLimit
		case err == io.EOF:
			return total, nil
		case err != nil:
			return total, err
		}
	}
}
