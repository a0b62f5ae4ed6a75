package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
)

// framingKind is how the end of a body is known.
type framingKind uint8

const (
	noBody framingKind = iota
	byLength
	inChunks
	maybeChunks // in HTTP/1.0, which knows no chunks: the first line of the body decides
	untilClose
)

// framing is how one answer's body stands on its connection.
type framing struct {
	kind    framingKind
	left    int64   // bytes of a body by length
	codings string  // transfer codings beside chunked
	last    bool    // the server said that it closes the connection, or has to
	lenient lenient // the oddities of its head; with any, the connection is not used again
}

// framed reads one body from a connection up to where it ends. io.EOF is a whole
// body, io.ErrUnexpectedEOF the end of the connection inside it; an error of
// its own says that what came is no body.
type framed struct {
	in      *bufio.Reader
	full    bool                 // the last read filled in
	widen   func() *bufio.Reader // what to read on with then, or nil
	kind    framingKind
	left    int64 // bytes of the body, or of the chunk
	inside  bool  // a chunk was begun: its line end comes next
	chunks  bool  // the body came in chunks
	room    int   // bytes that trailers may take
	lenient lenient
}

var (
	errChunkSize = errors.New("chunk size that is none")
	errChunkEnd  = errors.New("chunk longer than its size")
	errTrailers  = errors.New("trailers larger than a header may be")
)

// next is what has come of the body, at most so many bytes, or waits for more: a
// part of in's buffer, good until in is read again.
func (f *framed) next(most int) (b []byte, err error) {
	if f.kind == maybeChunks {
		f.kind = f.guess()
	}
	switch f.kind {
	case untilClose:
		return f.nextBuffered(most)
	case noBody:
		return nil, io.EOF
	case inChunks:
		if f.left == 0 {
			if err := f.nextChunk(); err != nil {
				return nil, cutShort(err)
			}
			if f.left == 0 {
				f.kind = noBody
				return nil, io.EOF
			}
		}
	}
	if f.left > 0 {
		b, err = f.nextBuffered(int(min(int64(most), f.left)))
		f.left -= int64(len(b))
	}
	if f.left == 0 && f.kind == byLength {
		return b, io.EOF
	}
	return b, cutShort(err)
}

// nextBuffered is what in has, at most so many bytes, or what its next read brings. Who
// fills the buffer is likely to have more.
func (f *framed) nextBuffered(most int) ([]byte, error) {
	if f.in.Buffered() == 0 {
		if f.widen != nil && f.full {
			f.in, f.widen = f.widen(), nil
		}
		if _, err := f.in.Peek(1); err != nil {
			return nil, err
		}
		f.full = f.in.Buffered() == f.in.Size()
	}
	b, _ := f.in.Peek(min(f.in.Buffered(), most))
	f.in.Discard(len(b)) //nolint:errcheck // it is there
	return b, nil
}

// Read is next into p.
func (f *framed) Read(p []byte) (int, error) {
	b, err := f.next(len(p))
	return copy(p, b), err
}

// guess looks whether a body begins as one in chunks does.
func (f *framed) guess() framingKind {
	for n := 1; n <= 64; n++ { // digits and the end of their line
		b, err := f.in.Peek(n)
		if err != nil {
			return untilClose
		}
		if c := b[n-1]; hexDigit(c) < 0 {
			if n > 1 && (c == ';' || c == '\r' || c == '\n') {
				return inChunks
			}
			return untilClose
		}
	}
	return untilClose
}

// cutShort makes the end of the connection the end of a body cut short. Errors
// of the framing itself are not hidden by it.
func cutShort(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// nextChunk reads what stands between two chunks and sets left to the size of
// the next; 0 is the end of the body, whose trailers are read and dropped: what
// a header decides was decided before (RFC 9110, section 6.5.1).
func (f *framed) nextChunk() error {
	if f.inside {
		if err := f.chunkEnd(); err != nil {
			return err
		}
	}
	f.inside, f.chunks = true, true
	line, err := f.in.ReadSlice('\n')
	size, rest, fault := chunkDigits(line)
	if fault != nil && (err == nil || err == bufio.ErrBufferFull) {
		return fault
	}
	if !bytes.HasSuffix(rest, []byte("\r\n")) && err == nil {
		f.lenient |= lenientChunk
	}
	for err == bufio.ErrBufferFull { // a long extension; the limit of the connection bounds it
		_, err = f.in.ReadSlice('\n')
	}
	if err != nil {
		return err
	}
	if rest = bytes.TrimRight(rest, "\r\n"); len(rest) > 0 && rest[0] != ';' && rest[0] != ' ' && rest[0] != '\t' {
		if size == 0 { // 0x1f, say: a page would end in silence
			return errChunkSize
		}
		f.lenient |= lenientChunk
	}
	if f.left = size; size == 0 {
		return f.trailers()
	}
	return nil
}

// chunkDigits reads the digits that a chunk begins with.
func chunkDigits(line []byte) (size int64, rest []byte, err error) {
	i := 0
	for ; i < len(line); i++ {
		d := hexDigit(line[i])
		if d < 0 {
			break
		}
		if size > math.MaxInt64>>4 {
			return 0, nil, errChunkSize
		}
		size = size<<4 | int64(d)
	}
	if i == 0 {
		return 0, nil, errChunkSize
	}
	return size, line[i:], nil
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// chunkEnd reads the line end behind the bytes of a chunk.
func (f *framed) chunkEnd() error {
	for n := 0; ; n++ {
		switch c, err := f.in.ReadByte(); {
		case err != nil:
			return err
		case c == '\n':
			if n != 1 {
				f.lenient |= lenientChunk
			}
			return nil
		case c != '\r':
			return errChunkEnd
		}
	}
}

// trailers reads up to the blank line behind the last chunk.
func (f *framed) trailers() error {
	begins := true // of a line
	for {
		line, err := f.in.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
		if f.room -= len(line); f.room < 0 {
			return errTrailers
		}
		text := bytes.TrimRight(line, "\r\n")
		if begins && err == nil {
			if !bytes.HasSuffix(line, []byte("\r\n")) || len(text) > 0 && bytes.IndexByte(text, ':') < 0 {
				f.lenient |= lenientChunk
			}
			if len(text) == 0 {
				return nil
			}
		}
		begins = err == nil
	}
}
