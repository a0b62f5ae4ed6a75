// Package charset finds out which encoding a document is in, and turns it into
// UTF-8 piece by piece.
//
// Who names an encoding is an Authority. A byte order mark (BOM) rules; then
// the Content-Type header; then what the document says of itself (Prescan of
// HTML, XML, Sheet); then the look of its bytes (Detect). Labels mean what the
// WHATWG Encoding standard says (Lookup).
//
// An encoding that holds ASCII need not be decoded to find tags in it: a Decoder
// turns only the pieces that are kept into UTF-8. One that does not, such as
// UTF-16, goes through a Transcoder as a whole.
//
// Nothing here keeps what it is given, a Transcoder aside, which keeps the part
// of a character that the end of a chunk cut.
package charset

import (
	"bytes"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

// Authority says who named the encoding of a document.
type Authority uint8

// From the weakest to the strongest.
const (
	ByDefault  Authority = iota // nobody: UTF-8 where it is valid, else windows-1252
	ByDetector                  // the look of the bytes
	ByMeta                      // meta element, XML declaration, @charset
	ByHeader                    // Content-Type
	ByBOM                       // byte order mark
)

func (a Authority) String() string {
	return [...]string{"default", "detector", "meta", "header", "bom"}[a]
}

// PrescanBytes is how far Prescan should be let look before anything else
// (HTML, 13.2.3.2 asks for 1024).
const PrescanBytes = 1024

// Lookup returns the encoding of a label, with the tables of the WHATWG Encoding
// standard, and its name there in lower case; unknown labels are nil and "".
func Lookup(label string) (encoding.Encoding, string) {
	if strings.EqualFold(label, "utf-8") { // most
		return unicode.UTF8, "utf-8"
	}
	enc, err := htmlindex.Get(label)
	if err != nil {
		return nil, ""
	}
	name, err := htmlindex.Name(enc)
	if err != nil {
		return nil, ""
	}
	name = strings.ToLower(name)
	return standard(name, enc), name
}

// BOM returns the encoding that a byte order mark at the start of b names, and
// the length of the mark.
func BOM(b []byte) (name string, n int) {
	switch {
	case bytes.HasPrefix(b, []byte("\xEF\xBB\xBF")):
		return "utf-8", 3
	case bytes.HasPrefix(b, []byte("\xFE\xFF")):
		return "utf-16be", 2
	case bytes.HasPrefix(b, []byte("\xFF\xFE")):
		return "utf-16le", 2
	}
	return "", 0
}

// Meta takes an encoding's label out of a meta element's content (HTML, 2.4.4
// "extracting a character encoding from a meta element"), nil when it names none.
func Meta(content []byte) []byte {
	b := content
	for {
		i := IndexFold(b, "charset")
		if i < 0 {
			return nil
		}
		b = trimLeft(b[i+len("charset"):])
		if len(b) > 0 && b[0] == '=' {
			b = trimLeft(b[1:])
			break
		}
	}
	if len(b) == 0 {
		return nil
	}
	if q := b[0]; q == '"' || q == '\'' {
		if i := bytes.IndexByte(b[1:], q); i >= 0 {
			return b[1 : 1+i]
		}
		return nil
	}
	n := 0
	for n < len(b) && b[n] != ';' && !IsSpace(b[n]) {
		n++
	}
	return b[:n]
}

// XML reads the encoding of an XML declaration at the start of b, or recognizes
// UTF-16 without a BOM by its first characters; "" for none.
func XML(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("<\x00?\x00")):
		return "utf-16le"
	case bytes.HasPrefix(b, []byte("\x00<\x00?")):
		return "utf-16be"
	case !bytes.HasPrefix(b, []byte("<?xml")):
		return ""
	}
	end := bytes.IndexByte(b, '>')
	if end < 0 {
		return ""
	}
	b = b[:end]
	n := bytes.Index(b, []byte("encoding"))
	if n < 0 {
		return ""
	}
	b = trimLeft(b[n+len("encoding"):])
	if len(b) < 3 || b[0] != '=' {
		return ""
	}
	if b = trimLeft(b[1:]); len(b) < 2 || b[0] != '"' && b[0] != '\'' {
		return ""
	}
	if n = bytes.IndexByte(b[1:], b[0]); n < 0 {
		return ""
	}
	_, name := Lookup(string(b[1 : n+1]))
	return Inside(name)
}

// Sheet reads the encoding that a style sheet's @charset names, "" for none.
func Sheet(b []byte) string {
	rest, ok := bytes.CutPrefix(b, []byte(`@charset "`))
	if !ok {
		return ""
	}
	n := bytes.IndexByte(rest, '"')
	if n < 0 {
		return ""
	}
	_, name := Lookup(string(rest[:n]))
	return Inside(name)
}

// Inside maps the name of an encoding that a declaration inside the bytes it
// speaks of cannot mean to the one that it is read as.
func Inside(name string) string {
	switch name {
	case "utf-16be", "utf-16le":
		return "utf-8"
	case "x-user-defined":
		return "windows-1252"
	}
	return name
}

// Prescan looks for a declaration in the first bytes of a document (HTML,
// 13.2.3.2 "prescan a byte stream to determine its encoding") and returns its
// WHATWG name, "" for none.
func Prescan(b []byte) string {
	for i := 0; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '<')
		if n < 0 {
			return ""
		}
		i += n
		rest := b[i:]
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			n := bytes.Index(rest[2:], []byte("-->"))
			if n < 0 {
				return ""
			}
			i += 2 + n + 2
		case len(rest) > 5 && EqualFold(rest[:5], "<meta") && (IsSpace(rest[5]) || rest[5] == '/'):
			name, n := prescanMeta(rest[5:])
			if name != "" {
				return name
			}
			i += 5 + n - 1
		case len(rest) > 1 && isLetter(rest[1]), len(rest) > 2 && rest[1] == '/' && isLetter(rest[2]):
			n := 1
			for n < len(rest) && !IsSpace(rest[n]) && rest[n] != '>' {
				n++
			}
			for {
				var more bool
				var k int
				if _, _, k, more = prescanAttr(rest[n:]); !more {
					n += k
					break
				}
				n += k
			}
			i += n - 1
		case len(rest) > 1 && (rest[1] == '!' || rest[1] == '/' || rest[1] == '?'):
			n := bytes.IndexByte(rest, '>')
			if n < 0 {
				return ""
			}
			i += n
		}
	}
	return ""
}

// prescanMeta reads a meta element's attributes; n is how far.
func prescanMeta(b []byte) (name string, n int) {
	var gotPragma, need, decided bool
	var seen [3]bool
	charset := ""
	for {
		attr, val, k, more := prescanAttr(b[n:])
		if n += k; n >= len(b) {
			return "", n
		}
		if !more {
			break
		}
		switch {
		case EqualFold(attr, "http-equiv") && !seen[0]:
			seen[0] = true
			gotPragma = gotPragma || EqualFold(val, "content-type")
		case EqualFold(attr, "content") && !seen[1]:
			seen[1] = true
			if cs := Meta(val); cs != nil && charset == "" {
				if _, cn := Lookup(string(cs)); cn != "" {
					charset, need, decided = cn, true, true
				}
			}
		case EqualFold(attr, "charset") && !seen[2]:
			seen[2] = true
			_, charset = Lookup(string(val))
			need, decided = false, true
		}
	}
	if !decided || need && !gotPragma || charset == "" {
		return "", n
	}
	return Inside(charset), n
}

// prescanAttr gets an attribute the way the prescan does; n is how many bytes
// it took, more is false when there was none.
func prescanAttr(b []byte) (name, val []byte, n int, more bool) {
	for n < len(b) && (IsSpace(b[n]) || b[n] == '/') {
		n++
	}
	if n >= len(b) || b[n] == '>' {
		return nil, nil, n, false
	}
	from := n
	for n < len(b) && !(b[n] == '=' && n > from) && !IsSpace(b[n]) && b[n] != '/' && b[n] != '>' {
		n++
	}
	name = b[from:n]
	for n < len(b) && IsSpace(b[n]) {
		n++
	}
	if n >= len(b) || b[n] != '=' {
		return name, nil, n, true
	}
	for n++; n < len(b) && IsSpace(b[n]); n++ {
	}
	if n < len(b) && (b[n] == '"' || b[n] == '\'') {
		i := bytes.IndexByte(b[n+1:], b[n])
		if i < 0 {
			return nil, nil, len(b), false
		}
		return name, b[n+1 : n+1+i], n + i + 2, true
	}
	from = n
	for n < len(b) && !IsSpace(b[n]) && b[n] != '>' {
		n++
	}
	if n == len(b) { // the bytes end: nothing is known
		return nil, nil, n, false
	}
	return name, b[from:n], n, true
}

// IsSpace reports whether c is ASCII white space, as HTML has it.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func trimLeft(b []byte) []byte { return bytes.TrimLeft(b, " \n\t\r\f") }

// EqualFold reports whether b is s, which is lower case, in any case of ASCII:
// bytes.EqualFold would take the long s for an s.
func EqualFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != s[i] {
			return false
		}
	}
	return true
}

// IndexFold finds s, which is lower case, in b in any case.
func IndexFold(b []byte, s string) int {
	for i := 0; i+len(s) <= len(b); i++ {
		if EqualFold(b[i:i+len(s)], s) {
			return i
		}
	}
	return -1
}
