package canon

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/transform"
)

// queryEncoder escapes queries in the encoding of their page, after
// https://url.spec.whatwg.org/#string-percent-encode-after-encoding. It keeps
// the encoder of the last page. Characters that the encoding has not become
// "&#N;", escaped.
type queryEncoder struct {
	enc  encoding.Encoding
	name string // as the encoding standard calls it; "" for UTF-8 and its like
	to   *encoding.Encoder
	out  []byte
}

// use makes enc the encoding, and says whether it differs from UTF-8.
func (q *queryEncoder) use(enc encoding.Encoding) bool {
	if q.enc != enc {
		q.enc, q.to = enc, enc.NewEncoder()
		name, err := htmlindex.Name(enc)
		switch {
		case err != nil:
			name = "other"
		case name == "utf-8", name == "replacement", strings.HasPrefix(name, "utf-16"):
			name = ""
		}
		q.name = name
	}
	return q.name != ""
}

// escape escapes the query of text in enc. The result is valid until the next
// call.
func (q *queryEncoder) escape(text []byte, enc encoding.Encoding) []byte {
	start := bytes.IndexByte(text, '?') + 1
	if start == 0 || !q.use(enc) {
		return text
	}
	query, fragment := text[start:], []byte(nil)
	if text[len(text)-1] == '#' {
		query, fragment = text[start:len(text)-1], text[len(text)-1:]
	}
	q.out = append(q.out[:0], text[:start]...)
	query = bytes.ToValidUTF8(query, []byte("\uFFFD"))
	for len(query) > 0 {
		n := bytes.IndexFunc(query, q.special)
		if n < 0 {
			n = len(query)
		}
		q.encode(query[:n])
		query = query[n:]
		if n = len(query); n > 0 {
			r, size := utf8.DecodeRune(query)
			q.encodeSpecial(r)
			query = query[size:]
		}
	}
	return append(q.out, fragment...)
}

// encode appends s, which is UTF-8, encoded and escaped.
func (q *queryEncoder) encode(s []byte) {
	var buf [256]byte
	q.to.Reset()
	for len(s) > 0 {
		n, used, err := q.to.Transform(buf[:], s, true)
		q.out = appendEscaped(q.out, buf[:n], escQuery)
		s = s[used:]
		if err != nil && !errors.Is(err, transform.ErrShortDst) && len(s) > 0 {
			r, size := utf8.DecodeRune(s)
			q.missing(r)
			s = s[size:]
		}
	}
}

// missing appends what stands for a character that the encoding has not.
func (q *queryEncoder) missing(r rune) {
	q.out = append(q.out, "%26%23"...)
	q.out = strconv.AppendInt(q.out, int64(r), 10)
	q.out = append(q.out, "%3B"...)
}

// special says that the standard encodes r otherwise than x/text does.
func (q *queryEncoder) special(r rune) bool {
	switch q.name {
	case "gb18030":
		return r == 0xE5E5
	case "shift_jis", "euc-jp":
		return r == 0xA5 || r == 0x203E || r == 0x2212
	case "iso-2022-jp":
		return r == 0xA5 || r == 0x203E || r == 0x2212 || r == 0x0E || r == 0x0F || r == 0x1B
	}
	return false
}

// encodeSpecial appends a special character encoded and escaped.
func (q *queryEncoder) encodeSpecial(r rune) {
	roman := byte('~')
	switch r {
	case 0x2212: // minus sign: as the full-width one
		q.encode([]byte("\uFF0D"))
		return
	case 0x0E, 0x0F, 0x1B: // would shift
		q.missing(utf8.RuneError)
		return
	case 0xA5:
		roman = '\\'
	case 0x203E:
	default:
		q.missing(r)
		return
	}
	if q.name == "iso-2022-jp" {
		q.out = append(q.out, "%1B(J"...)
		q.out = append(q.out, roman)
		q.out = append(q.out, "%1B(B"...)
	} else {
		q.out = append(q.out, roman)
	}
}
