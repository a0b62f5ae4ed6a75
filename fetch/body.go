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

// Read is next into p.
func (w *wire) Read(p []byte) (int, error) {
	b, err := w.next(len(p))
	return copy(p, b), err
}

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

// copied is a body read into memory of its own, as one is that has to be decoded
// or looked at before anybody gets it.
type copied struct {
	src  io.Reader
	buf  []byte
	held int   // bytes of buf that are read already
	err  error // what met them
}

// fill reads until n bytes are held or the source ends, and returns them.
func (c *copied) fill(n int) []byte {
	for c.held < n && c.err == nil {
		var k int
		k, c.err = c.src.Read(c.buf[c.held:])
		c.held += k
	}
	return c.buf[:min(c.held, n)]
}

func (c *copied) piece() (b []byte, err error) {
	if c.held == 0 && c.err == nil {
		c.held, c.err = c.src.Read(c.buf)
	}
	b, c.held = c.buf[:c.held], 0
	return b, c.err
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
