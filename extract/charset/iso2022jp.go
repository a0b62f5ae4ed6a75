package charset

import (
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"
)

// iso2022JP is the one encoding with states: escapes switch between sets of characters.
type iso2022JP struct{}

// jis is the index that ISO-2022-JP reads and writes.
var jis = &legacy{fill: fillJIS}

func (iso2022JP) NewDecoder() *encoding.Decoder {
	jis.once.Do(func() { jis.fill(jis) })
	return &encoding.Decoder{Transformer: &jpDecoder{}}
}

func (iso2022JP) NewEncoder() *encoding.Encoder {
	jis.once.Do(func() { jis.fill(jis) })
	return &encoding.Encoder{Transformer: &jpEncoder{}}
}

// jpState is the set of characters in force.
type jpState uint8

const (
	inASCII jpState = iota
	inRoman
	inKatakana
	inJIS
)

// jpEscapes are what is sent to switch to each of them; jpOld is another for inJIS.
var jpEscapes = [...]string{inASCII: "\x1b(B", inRoman: "\x1b(J", inKatakana: "\x1b(I", inJIS: "\x1b$B"}

const jpOld = "\x1b$@"

type jpDecoder struct {
	state   jpState
	escaped bool // an escape came, and nothing since
}

func (d *jpDecoder) Reset() { *d = jpDecoder{} }

// Transform reads src; what is no character, and each escape that nothing follows,
// becomes U+FFFD.
func (d *jpDecoder) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		if len(dst)-nDst < utf8.UTFMax {
			return nDst, nSrc, transform.ErrShortDst
		}
		b := src[nSrc:]
		if b[0] == 0x1b {
			if len(b) < 3 && !atEOF {
				return nDst, nSrc, transform.ErrShortSrc
			}
			if state, ok := escapeOf(b); ok {
				if d.escaped {
					nDst += utf8.EncodeRune(dst[nDst:], utf8.RuneError)
				}
				d.state, d.escaped = state, true
				nSrc += len(jpOld)
				continue
			}
		} else if d.state == inJIS && len(b) < 2 && !atEOF && between(b[0], 0x21, 0x7E) {
			return nDst, nSrc, transform.ErrShortSrc
		}
		r, n := d.read(b)
		d.escaped = false
		nDst, nSrc = nDst+utf8.EncodeRune(dst[nDst:], r), nSrc+n
	}
	return nDst, nSrc, nil
}

func escapeOf(b []byte) (jpState, bool) {
	if len(b) < len(jpOld) {
		return 0, false
	}
	for state, escape := range jpEscapes {
		if string(b[:len(escape)]) == escape {
			return jpState(state), true
		}
	}
	return inJIS, string(b[:len(jpOld)]) == jpOld
}

// read takes a character off b, which begins with no escape.
func (d *jpDecoder) read(b []byte) (rune, int) {
	c := b[0]
	switch d.state {
	case inJIS:
		if !between(c, 0x21, 0x7E) {
			return utf8.RuneError, 1
		}
		if len(b) < 2 || b[1] == 0x1b {
			return utf8.RuneError, 1
		}
		if p := int(c-0x21)*94 + int(b[1]) - 0x21; between(b[1], 0x21, 0x7E) && jis.index[p] != 0 {
			return jis.index[p], 2
		}
		return utf8.RuneError, 2
	case inKatakana:
		if !between(c, 0x21, 0x5F) {
			return utf8.RuneError, 1
		}
		return rune(c) - 0x21 + 0xFF61, 1
	}
	switch {
	case c >= utf8.RuneSelf, isShift(rune(c)):
		return utf8.RuneError, 1
	case d.state == inRoman && c == '\\':
		return 0xA5, 1
	case d.state == inRoman && c == '~':
		return 0x203E, 1
	}
	return rune(c), 1
}

// isShift names the control characters that switch sets, which no text may have.
func isShift(r rune) bool { return r == 0x0E || r == 0x0F || r == 0x1B }

type jpEncoder struct{ state jpState }

func (e *jpEncoder) Reset() { *e = jpEncoder{} }

// Transform writes src, and ends in ASCII with atEOF. It stops with an error before a
// character that the encoding does not have.
func (e *jpEncoder) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		if !utf8.FullRune(src[nSrc:]) && !atEOF {
			return nDst, nSrc, transform.ErrShortSrc
		}
		r, n := utf8.DecodeRune(src[nSrc:])
		to, b := e.write(r)
		if len(dst)-nDst < len(jpEscapes[0])+2 {
			return nDst, nSrc, transform.ErrShortDst
		}
		if b[0] == 0 && r != 0 {
			to = e.state
			if to == inJIS {
				to = inASCII
			}
		}
		if to != e.state {
			nDst += copy(dst[nDst:], jpEscapes[to])
			e.state = to
		}
		if b[0] == 0 && r != 0 {
			return nDst, nSrc, errMissing
		}
		dst[nDst] = b[0]
		nDst, nSrc = nDst+1, nSrc+n
		if to == inJIS {
			dst[nDst] = b[1]
			nDst++
		}
	}
	if atEOF && e.state != inASCII {
		if len(dst)-nDst < len(jpEscapes[0]) {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += copy(dst[nDst:], jpEscapes[inASCII])
		e.state = inASCII
	}
	return nDst, nSrc, nil
}

// fullWidth are the characters that those of half width, from U+FF61 on, are written as.
var fullWidth = []rune("。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜")

// write is the set of characters that has r, and the bytes there; zero for none.
func (e *jpEncoder) write(r rune) (to jpState, b [2]byte) {
	switch {
	case isShift(r):
		return e.state, b
	case r < utf8.RuneSelf && e.state == inRoman && r != '\\' && r != '~':
		return inRoman, [2]byte{byte(r)}
	case r < utf8.RuneSelf:
		return inASCII, [2]byte{byte(r)}
	case r == 0xA5:
		return inRoman, [2]byte{'\\'}
	case r == 0x203E:
		return inRoman, [2]byte{'~'}
	case r == 0x2212:
		r = 0xFF0D
	case r >= 0xFF61 && r <= 0xFF9F:
		r = fullWidth[r-0xFF61]
	}
	p, ok := jis.pointer[r]
	if !ok {
		return e.state, b
	}
	return inJIS, [2]byte{byte(p/94 + 0x21), byte(p%94 + 0x21)}
}
