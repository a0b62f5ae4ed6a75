package inflate

// streamSize is the window and twice as much of what is new, so that most pages move
// the window at most once.
const streamSize = 3 * Window

// Stream decodes into memory of its own, 96 KB, which it makes with the first piece
// and keeps for further streams.
type Stream struct {
	d   Decoder
	buf []byte
}

// Reset makes s ready for another stream.
func (s *Stream) Reset(f Format) {
	s.d.Reset(f)
	s.buf = s.buf[:0]
}

// Next takes a piece of the stream and returns some of what it decodes to, good
// until the next call, and how much of src was taken. It has to be called again
// with the rest, which may be empty, until it returns nothing. Errors are those of
// [Decoder.Decode] but ErrRoom; bytes may come with them.
func (s *Stream) Next(src []byte) (out []byte, n int, err error) {
	if s.buf == nil {
		s.buf = make([]byte, 0, streamSize)
	}
	if cap(s.buf)-len(s.buf) < Window/2 {
		s.buf = s.buf[:copy(s.buf[:Window], s.buf[len(s.buf)-Window:])]
	}
	from := len(s.buf)
	s.buf, n, err = s.d.Decode(s.buf, src)
	if err == ErrRoom {
		err = nil
	}
	return s.buf[from:], n, err
}

// End is [Decoder.End].
func (s *Stream) End() error { return s.d.End() }
