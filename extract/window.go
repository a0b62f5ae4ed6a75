package extract

// window gathers the chunks of a document for a lexer that wants its input
// whole: it is given what is there, says how far it got with tokens that are
// surely complete, and what is left waits for more. Memory is bounded by the
// longest token kept.
type window struct {
	buf  []byte
	max  int
	want int    // bytes to gather before the next try, so that tries stay linear
	skip string // a token longer than max is dropped up to this
	tail [3]byte
	cut  int
}

// windowBytes is what is gathered at least.
const windowBytes = 4 << 10

func (w *window) reset(max int) {
	*w = window{buf: w.buf[:0], max: max, want: windowBytes}
}

// write adds b; lex takes a prefix of the bytes gathered, final being true at
// the end, and returns how many it is done with. When a token is longer than
// max, give names what ends it, "" when it ends by itself.
func (w *window) write(b []byte, lex func(b []byte, final bool) int, give func(b []byte) string) {
	for len(b) > 0 {
		if w.skip != "" {
			b = w.skipTo(b)
			continue
		}
		n := min(len(b), max(w.want-len(w.buf), 1))
		w.buf = appendNoNUL(w.buf, b[:n])
		if b = b[n:]; len(w.buf) < w.want {
			return
		}
		done := lex(w.buf, false)
		w.buf = w.buf[:copy(w.buf, w.buf[done:])]
		if len(w.buf) > w.max {
			w.cut++
			w.skip = give(w.buf)
			rest := w.buf
			w.buf = w.buf[:0]
			w.tail = [3]byte{}
			copy(w.tail[:], rest[len(rest)-3:])
		}
		w.want = max(windowBytes, 2*len(w.buf))
	}
}

// skipTo drops b up to and with the end of the token that is skipped.
func (w *window) skipTo(b []byte) []byte {
	n := len(w.skip)
	for i, c := range b {
		copy(w.tail[:], w.tail[1:])
		w.tail[2] = c
		if string(w.tail[3-n:]) == w.skip {
			w.skip = ""
			return b[i+1:]
		}
	}
	return nil
}

// close gives lex what is left.
func (w *window) close(lex func(b []byte, final bool) int) {
	if w.skip == "" && len(w.buf) > 0 {
		lex(w.buf, true)
	}
	w.buf = w.buf[:0]
}

// appendNoNUL appends b with NUL, which the lexers take for the end, as space,
// and keeps room for the one that they put behind it.
func appendNoNUL(dst, b []byte) []byte {
	from := len(dst)
	dst = append(dst, b...)
	for i := from; i < len(dst); i++ {
		if dst[i] == 0 {
			dst[i] = ' '
		}
	}
	dst = append(dst, 0)
	return dst[:len(dst)-1]
}
