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
	enc    encoding.Encoding
	legacy bool // it is not UTF-8 nor its like
	to     *encoding.Encoder
	out    []byte
}

// use makes enc the encoding, and says whether it differs from UTF-8.
func (q *queryEncoder) use(enc encoding.Encoding) bool {
	if q.enc != enc {
		q.enc, q.to = enc, enc.NewEncoder()
		name, err := htmlindex.Name(enc)
		q.legacy = err != nil || name != "utf-8" && name != "replacement" && !strings.HasPrefix(name, "utf-16")
	}
	return q.legacy
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
	q.encode(bytes.ToValidUTF8(query, []byte("\uFFFD")))
	return append(q.out, fragment...)
}

// encode appends s, which is UTF-8, encoded and escaped.
func (q *queryEncoder) encode(s []byte) {
	var buf [256]byte
	q.to.Reset()
	for {
		n, used, err := q.to.Transform(buf[:], s, true)
		q.out = appendEscaped(q.out, buf[:n], escQuery)
		s = s[used:]
		switch {
		case err == nil:
			return
		case !errors.Is(err, transform.ErrShortDst):
			r, size := utf8.DecodeRune(s)
			q.missing(r)
			s = s[size:]
		}
	}
}

// missing appends what stands for a character that the encoding has not.
func (q *queryEncoder) missing(r rune) {
	if r == 0x0E || r == 0x0F || r == 0x1B { // would shift, in ISO-2022-JP
		r = utf8.RuneError
	}
	q.out = append(q.out, "%26%23"...)
	q.out = strconv.AppendInt(q.out, int64(r), 10)
	q.out = append(q.out, "%3B"...)
}
