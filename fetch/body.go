package fetch

import (
	"errors"
	"io"
)

// maxWire is how much of a compressed body, or between two codings, is read
// where its decoded body may have max bytes.
func maxWire(max int64) int64 { return max + max/16 + 64<<10 }

// maxIn is how many bytes of a whole answer are read, framing included.
func maxIn(max int64, header int) int64 { return 2*maxWire(max) + int64(header) + 1<<20 }

// wire is a body as the connection gives it: counted, cut one byte after its
// limit, its errors remembered apart from those of decoders above it.
type wire struct {
	r      io.Reader
	n, max int64
	err    error
}

var (
	errWireLimit = errors.New("body on the wire is larger than allowed")
	errBodyLimit = errors.New("body after inflating is larger than allowed")
)

func (w *wire) Read(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if room := w.max - w.n + 1; int64(len(p)) > room {
		p = p[:room] // one byte more than allowed shows that there is more
	}
	n, err := w.r.Read(p)
	if w.n+int64(n) > w.max {
		n, err = int(w.max-w.n), errWireLimit
	}
	w.n += int64(n)
	w.err = err
	return n, err
}

// drain reads up to limit bytes more and says whether the body ended there.
func (w *wire) drain(buf []byte, limit int64) bool {
	for w.err == nil && limit > 0 {
		n, _ := w.Read(buf)
		limit -= int64(n)
	}
	return w.err == io.EOF
}

// handlerError carries an error of the Handler through the reading code.
type handlerError struct{ error }

// deliver gives a decoded body to h in chunks, at most limit bytes of it, and
// says how much. first holds bytes read before. nil is a clean end.
func deliver(h Handler, src io.Reader, buf []byte, held int, heldErr error, limit int64) (int64, error) {
	var total int64
	n, err := held, heldErr
	for {
		if n > 0 {
			over := total+int64(n) > limit
			if over {
				n = int(limit - total)
			}
			if n > 0 {
				if _, werr := h.Write(buf[:n]); werr != nil {
					return total, &handlerError{werr}
				}
				total += int64(n)
			}
			if over {
				return total, errBodyLimit
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		n, err = src.Read(buf)
	}
}

// fill reads until buf holds n bytes or the source ends.
func fill(src io.Reader, buf []byte, n int) (held int, err error) {
	for held < n && err == nil {
		var k int
		k, err = src.Read(buf[held:])
		held += k
	}
	return held, err
}
