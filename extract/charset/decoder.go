package charset

import (
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Decoder turns pieces of a document, each of whole characters, into UTF-8. The
// zero Decoder reads UTF-8. One per document at a time; it allocates when it
// first meets an encoding.
type Decoder struct {
	enc     encoding.Encoding // nil: UTF-8
	dec     transform.Transformer
	guessed bool // nothing declared it: UTF-8 where it is valid, else enc
	valid   bool // guessed, and some of it was, beyond ASCII
}

// Use makes the decoder read enc, nil being UTF-8. Guessed says that nothing
// named it: what is valid UTF-8 is read as such.
func (d *Decoder) Use(enc encoding.Encoding, guessed bool) {
	if enc != d.enc {
		d.enc, d.dec = enc, nil
	}
	d.guessed, d.valid = guessed, false
}

// Encoding is what the document was written in as far as it was read, nil for
// UTF-8.
func (d *Decoder) Encoding() encoding.Encoding {
	if d.guessed && d.valid {
		return nil
	}
	return d.enc
}

// Plain reports whether b is UTF-8 as it stands, so that it need not be appended.
func (d *Decoder) Plain(b []byte) bool {
	if isASCII(b) {
		return true
	}
	if d.enc != nil && !d.guessed || !utf8.Valid(b) {
		return false
	}
	d.valid = d.valid || d.enc != nil
	return true
}

// Append appends b to dst as UTF-8; what is no character becomes U+FFFD.
func (d *Decoder) Append(dst, b []byte) []byte {
	if d.dec == nil {
		enc := d.enc
		if enc == nil {
			enc = unicode.UTF8
		}
		d.dec = enc.NewDecoder().Transformer
	}
	d.dec.Reset()
	for {
		n, read, err := d.dec.Transform(dst[len(dst):cap(dst)], b, true)
		dst = dst[:len(dst)+n]
		b = b[read:]
		if err != transform.ErrShortDst {
			return dst
		}
		dst = append(dst, make([]byte, 3*len(b)+16)...)[:len(dst)]
	}
}

// Transcoder turns a document that is no superset of ASCII into UTF-8.
type Transcoder struct {
	dec  transform.Transformer
	part []byte // a character cut by the end of a chunk
	out  [4096]byte
}

// NewTranscoder returns a transcoder of one document in enc.
func NewTranscoder(enc encoding.Encoding) *Transcoder {
	return &Transcoder{dec: enc.NewDecoder().Transformer}
}

// Write converts the next chunk and hands it to to, whose argument is valid
// during the call.
func (t *Transcoder) Write(b []byte, to func([]byte)) {
	for len(b) > 0 && len(t.part) > 0 {
		t.part = append(t.part, b[0])
		b = b[1:]
		t.part = t.part[:copy(t.part, t.part[t.run(t.part, false, to):])]
	}
	t.part = append(t.part, b[t.run(b, false, to):]...)
}

// Close ends the document.
func (t *Transcoder) Close(to func([]byte)) {
	t.run(t.part, true, to)
	t.part = t.part[:0]
}

// run converts as much of b as can be and returns how much that was.
func (t *Transcoder) run(b []byte, end bool, to func([]byte)) int {
	read := 0
	for {
		n, k, err := t.dec.Transform(t.out[:], b[read:], end)
		read += k
		if n > 0 {
			to(t.out[:n])
		}
		if err != transform.ErrShortDst || n == 0 && k == 0 {
			return read
		}
	}
}
