package charset

import (
	"errors"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/transform"
)

// legacy is an encoding of one or several bytes a character, as the WHATWG Encoding
// standard has it. The tables come from x/text and are put right where they differ.
// Reading and writing follow the standard: x/text takes ASCII along with what is no
// character, and writes other bytes for some characters.
type legacy struct {
	fill func(*legacy) // makes the tables
	// read takes the first character off b, which begins with no ASCII: how many bytes
	// it has, 0 when more are needed.
	read func(l *legacy, b []byte) (r rune, n int)
	// write appends a character that is no ASCII, nothing when the encoding has none.
	write func(l *legacy, dst []byte, r rune) []byte

	once    sync.Once
	index   []rune         // by the standard's pointer, 0 = none
	more    []rune         // of characters of three or four bytes, likewise
	pointer map[rune]int32 // what is written of index
}

// legacies are those of several bytes, by the standard's names in lower case.
var legacies = map[string]encoding.Encoding{
	"big5":        &legacy{fill: fillBig5, read: readBig5, write: writeBig5},
	"euc-kr":      &legacy{fill: fillEUCKR, read: readEUCKR, write: writeEUCKR},
	"shift_jis":   shiftJIS,
	"euc-jp":      &legacy{fill: fillEUCJP, read: readEUCJP, write: writeEUCJP},
	"gbk":         &legacy{fill: fillGB, read: readGB, write: writeGBK},
	"gb18030":     &legacy{fill: fillGB, read: readGB, write: writeGB18030},
	"iso-2022-jp": iso2022JP{},
}

// charmaps are those of one byte that were asked for, by name.
var charmaps sync.Map // of *legacy

// standard is the encoding of a name as the standard has it, of x/text's one.
func standard(name string, enc encoding.Encoding) encoding.Encoding {
	if l, ok := legacies[name]; ok {
		return l
	}
	c, ok := enc.(*charmap.Charmap)
	if !ok && name == "iso-8859-8-i" { // the same bytes, in another order on screen
		c, ok = charmap.ISO8859_8, true
	}
	if !ok {
		return enc
	}
	l, ok := charmaps.Load(name)
	if !ok {
		l, _ = charmaps.LoadOrStore(name, &legacy{fill: func(l *legacy) { fillCharmap(l, c) }, read: readByte, write: writeByte})
	}
	return l.(*legacy)
}

// NewDecoder implements encoding.Encoding.
func (l *legacy) NewDecoder() *encoding.Decoder {
	l.once.Do(func() { l.fill(l) })
	return &encoding.Decoder{Transformer: &legacyDecoder{l: l}}
}

// NewEncoder implements encoding.Encoding.
func (l *legacy) NewEncoder() *encoding.Encoder {
	l.once.Do(func() { l.fill(l) })
	return &encoding.Encoder{Transformer: &legacyEncoder{l: l}}
}

type legacyDecoder struct {
	transform.NopResetter
	l *legacy
}

// Transform reads src; what is no character becomes U+FFFD.
func (d *legacyDecoder) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		if c := src[nSrc]; c < utf8.RuneSelf {
			if nDst == len(dst) {
				return nDst, nSrc, transform.ErrShortDst
			}
			dst[nDst] = c
			nDst, nSrc = nDst+1, nSrc+1
			continue
		}
		r, n := d.l.read(d.l, src[nSrc:])
		if n == 0 {
			if !atEOF {
				return nDst, nSrc, transform.ErrShortSrc
			}
			r, n = utf8.RuneError, len(src)-nSrc
		}
		if len(dst)-nDst < utf8.UTFMax {
			return nDst, nSrc, transform.ErrShortDst
		}
		if second := r >> 24; second != 0 { // two characters
			nDst += utf8.EncodeRune(dst[nDst:], r&0xFFFFFF)
			r = combining[second-1]
		}
		nDst += utf8.EncodeRune(dst[nDst:], r)
		nSrc += n
	}
	return nDst, nSrc, nil
}

// errMissing is of a character that an encoding does not have.
var errMissing = errors.New("charset: a character that the encoding does not have")

type legacyEncoder struct {
	transform.NopResetter
	l *legacy
}

// Transform writes src; it stops with an error before a character that the encoding
// does not have.
func (e *legacyEncoder) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		var room [4]byte
		r, n := rune(src[nSrc]), 1
		b := append(room[:0], src[nSrc])
		if r >= utf8.RuneSelf {
			if r, n = utf8.DecodeRune(src[nSrc:]); n == 1 && !atEOF && !utf8.FullRune(src[nSrc:]) {
				return nDst, nSrc, transform.ErrShortSrc
			}
			if b = e.l.write(e.l, room[:0], r); len(b) == 0 {
				return nDst, nSrc, errMissing
			}
		}
		if len(dst)-nDst < len(b) {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst, nSrc = nDst+copy(dst[nDst:], b), nSrc+n
	}
	return nDst, nSrc, nil
}

// fillCharmap has bytes 80 to 9F that x/text does not know be the control characters of
// those numbers.
func fillCharmap(l *legacy, c *charmap.Charmap) {
	l.index = make([]rune, 128)
	for i := range l.index {
		r := c.DecodeByte(byte(0x80 + i))
		if r == utf8.RuneError && i < 0x20 {
			r = rune(0x80 + i)
		}
		if r != utf8.RuneError {
			l.index[i] = r
		}
	}
	l.point(func(int) bool { return true })
}

func readByte(l *legacy, b []byte) (rune, int) {
	if r := l.index[b[0]-0x80]; r != 0 {
		return r, 1
	}
	return utf8.RuneError, 1
}

func writeByte(l *legacy, dst []byte, r rune) []byte {
	if p, ok := l.pointer[r]; ok {
		return append(dst, byte(0x80+p))
	}
	return dst
}

// point notes the first pointer of each character, of those that may be written.
func (l *legacy) point(may func(pointer int) bool) {
	l.pointer = make(map[rune]int32, len(l.index))
	for p, r := range l.index {
		if _, has := l.pointer[r]; r != 0 && !has && may(p) {
			l.pointer[r] = int32(p)
		}
	}
}

// tabled is a table of so many pointers, by what x/text reads of their bytes.
func tabled(enc encoding.Encoding, count int, bytes func(p int) []byte) []rune {
	table, d := make([]rune, count), enc.NewDecoder()
	for p := range table {
		d.Reset()
		var dst [8]byte
		n, _, _ := d.Transform(dst[:], bytes(p), true)
		if r, size := utf8.DecodeRune(dst[:n]); size == n && r != utf8.RuneError {
			table[p] = r
		}
	}
	return table
}

// trail is the second byte of a pointer whose row is of so many: they leave out 7F, and
// in Big5 all up to A0.
func trail(n, gap int) byte {
	if n < 0x3F {
		return byte(n + 0x40)
	}
	return byte(n + gap)
}

// found is the character at a pointer of two bytes whose second is c. Where there is
// none, a second byte of ASCII stands for itself.
func found(table []rune, p int, c byte) (rune, int) {
	if p >= 0 && p < len(table) && table[p] != 0 {
		return table[p], 2
	}
	if c < utf8.RuneSelf {
		return utf8.RuneError, 1
	}
	return utf8.RuneError, 2
}

func between(c, low, high byte) bool { return c >= low && c <= high }
