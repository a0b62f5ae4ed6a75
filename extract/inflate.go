package extract

import (
	"errors"
	"io"
	"iter"

	"github.com/klauspost/compress/gzip"
)

// inflater turns gzip that is pushed in into bytes that are pushed on. The
// decoder pulls, so it runs as a coroutine that is resumed by write and rests
// whenever it has read all there is. What was decoded before an error is kept.
type inflater struct {
	in     []byte
	eof    bool
	broken bool
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	buf    [16 << 10]byte
	gz     gzip.Reader
}

var errStopped = errors.New("extract: document abandoned")

// start makes the inflater ready for another document; to takes what comes out
// and says whether it wants more.
func (z *inflater) start(to func([]byte) bool) {
	z.in, z.eof, z.broken = nil, false, false
	z.next, z.stop = iter.Pull(func(yield func(struct{}) bool) {
		z.yield = yield
		err := z.gz.Reset(z)
		for err == nil {
			var n int
			n, err = z.gz.Read(z.buf[:])
			if n > 0 && !to(z.buf[:n]) {
				return
			}
		}
		z.broken = err != io.EOF
	})
}

// Read gives the decoder what was written, or lets it rest.
func (z *inflater) Read(p []byte) (int, error) {
	for len(z.in) == 0 {
		if z.eof {
			return 0, io.EOF
		}
		if !z.yield(struct{}{}) {
			return 0, errStopped
		}
	}
	n := copy(p, z.in)
	z.in = z.in[n:]
	return n, nil
}

func (z *inflater) write(b []byte) {
	z.in = b
	z.next()
	z.in = nil
}

// end says that nothing more comes, and ends the coroutine.
func (z *inflater) end() {
	z.eof = true
	z.next()
	z.stop()
}
