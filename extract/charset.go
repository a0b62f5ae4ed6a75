package extract

import (
	"bytes"
	"mime"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// Authority says who named the encoding of a document.
type Authority uint8

// From the strongest to the weakest.
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

// prescanBytes is how far a declaration is looked for before anything else
// (HTML, 13.2.3.2 asks for 1024).
const prescanBytes = 1024

// lookup returns the encoding of a label and its WHATWG name in lower case;
// unknown labels are none.
func lookup(label string) (encoding.Encoding, string) {
	enc, err := htmlindex.Get(label)
	if err != nil {
		return nil, ""
	}
	name, err := htmlindex.Name(enc)
	if err != nil {
		return nil, ""
	}
	return enc, strings.ToLower(name)
}

// bom returns the encoding that a byte order mark names, and its length.
func bom(b []byte) (string, int) {
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

// headerType splits a Content-Type header into media type and charset, both
// lower case; broken parameters do not hide the charset.
func headerType(v string) (typ, charset string) {
	typ, params, err := mime.ParseMediaType(v)
	if err == nil {
		return typ, strings.ToLower(params["charset"])
	}
	typ, rest, _ := strings.Cut(v, ";")
	if cs := metaCharset([]byte(rest)); cs != nil {
		charset = strings.ToLower(string(cs))
	}
	return strings.ToLower(strings.TrimSpace(typ)), charset
}

// metaCharset extracts an encoding's label from a meta element's content
// (HTML, 2.4.4 "extracting a character encoding from a meta element").
func metaCharset(b []byte) []byte {
	for {
		i := indexFold(b, "charset")
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
	for n < len(b) && b[n] != ';' && !isSpace(b[n]) {
		n++
	}
	return b[:n]
}

// indexFold finds s, which is lower case, in b in any case.
func indexFold(b []byte, s string) int {
	for i := 0; i+len(s) <= len(b); i++ {
		if equalFold(b[i:i+len(s)], s) {
			return i
		}
	}
	return -1
}

// declared takes a charset that a meta element names. One that stands too far
// down for the first look counts from there on (HTML, 13.2.3.4 "changing the
// encoding while parsing" would read the page again).
func (c *collector) declared(label []byte) {
	if c.facts.Declared != "" || len(label) == 0 || len(label) > 64 {
		return
	}
	_, name := lookup(string(label))
	if name == "" {
		return
	}
	c.facts.Declared = name
	if c.facts.CharsetBy > ByDetector {
		return
	}
	name = declaredAs(name)
	switch enc, _ := lookup(name); name {
	case "utf-8":
		c.dec.use(nil, false)
	case "iso-2022-jp", "replacement": // too late
		return
	default:
		c.dec.use(enc, false)
	}
	c.facts.Charset, c.facts.CharsetBy = name, ByMeta
}

// prescan looks for a declaration in the first bytes of a document (HTML,
// 13.2.3.2 "prescan a byte stream to determine its encoding") and returns its
// WHATWG name, "" for none.
func prescan(b []byte) string {
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
		case len(rest) > 5 && equalFold(rest[:5], "<meta") && (isSpace(rest[5]) || rest[5] == '/'):
			name, n := prescanMeta(rest[5:])
			if name != "" {
				return name
			}
			i += 5 + n - 1
		case len(rest) > 1 && isLetter(rest[1]), len(rest) > 2 && rest[1] == '/' && isLetter(rest[2]):
			n := 1
			for n < len(rest) && !isSpace(rest[n]) && rest[n] != '>' {
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
		case equalFold(attr, "http-equiv") && !seen[0]:
			seen[0] = true
			gotPragma = gotPragma || equalFold(val, "content-type")
		case equalFold(attr, "content") && !seen[1]:
			seen[1] = true
			if cs := metaCharset(val); cs != nil && charset == "" {
				if _, cn := lookup(string(cs)); cn != "" {
					charset, need, decided = cn, true, true
				}
			}
		case equalFold(attr, "charset") && !seen[2]:
			seen[2] = true
			_, charset = lookup(string(val))
			need, decided = false, true
		}
	}
	if !decided || need && !gotPragma || charset == "" {
		return "", n
	}
	return declaredAs(charset), n
}

// declaredAs maps what a declaration inside the bytes it speaks of cannot mean.
func declaredAs(name string) string {
	switch name {
	case "utf-16be", "utf-16le":
		return "utf-8"
	case "x-user-defined":
		return "windows-1252"
	}
	return name
}

// prescanAttr gets an attribute the way the prescan does; n is how many bytes
// it took, more is false when there was none.
func prescanAttr(b []byte) (name, val []byte, n int, more bool) {
	for n < len(b) && (isSpace(b[n]) || b[n] == '/') {
		n++
	}
	if n >= len(b) || b[n] == '>' {
		return nil, nil, n, false
	}
	from := n
	for n < len(b) && !(b[n] == '=' && n > from) && !isSpace(b[n]) && b[n] != '/' && b[n] != '>' {
		n++
	}
	name = b[from:n]
	for n < len(b) && isSpace(b[n]) {
		n++
	}
	if n >= len(b) || b[n] != '=' {
		return name, nil, n, true
	}
	for n++; n < len(b) && isSpace(b[n]); n++ {
	}
	if n < len(b) && (b[n] == '"' || b[n] == '\'') {
		i := bytes.IndexByte(b[n+1:], b[n])
		if i < 0 {
			return nil, nil, len(b), false
		}
		return name, b[n+1 : n+1+i], n + i + 2, true
	}
	from = n
	for n < len(b) && !isSpace(b[n]) && b[n] != '>' {
		n++
	}
	if n == len(b) { // the bytes end: nothing is known
		return nil, nil, n, false
	}
	return name, b[from:n], n, true
}
