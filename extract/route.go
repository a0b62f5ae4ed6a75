package extract

import (
	"bytes"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"
)

// reader is what a document is read as.
type reader uint8

const (
	readNothing reader = iota
	readHTML
	readCSS
	readXML
	readLines
)

func isMarkup(typ string) bool { return typ == "text/html" || typ == "application/xhtml+xml" }

// route says how the document that starts with b is read: by its media type,
// where that tells; a sitemap by what it looks like.
func (s *Scanner) route(b []byte, unzipped bool) reader {
	look := sniff(b)
	if s.doc.Sitemap {
		if look == readHTML { // an error page in place of a sitemap
			return readNothing
		}
		return look
	}
	switch typ := s.typ; {
	case isMarkup(typ), typ == "image/svg+xml":
		return readHTML
	case typ == "text/css":
		return readCSS
	case typ == "application/xml", typ == "text/xml", strings.HasSuffix(typ, "+xml"):
		if look == readHTML {
			return readHTML
		}
		return readXML
	case typ == "", typ == "unknown/unknown", typ == "application/unknown", typ == "*/*",
		unzipped && (typ == "application/gzip" || typ == "application/x-gzip" || typ == "application/octet-stream"):
		if look == readLines {
			return readNothing
		}
		return look
	}
	return readNothing
}

// sniff tells what a document looks like by its first bytes.
func sniff(b []byte) reader {
	if name, n := bom(b); n == 2 { // UTF-16: every other byte will do
		var ascii []byte
		for i := n + len(name) - len("utf-16be"); i+1 < len(b); i += 2 {
			ascii = append(ascii, b[i]|b[i+1])
		}
		b = ascii
	} else {
		b = b[n:]
	}
	b = trim(b)
	if len(b) == 0 || b[0] != '<' {
		if bytes.IndexByte(b, 0) >= 0 || indexFold(b, "<html") < 0 && indexFold(b, "<a ") < 0 {
			return readLines
		}
		return readHTML
	}
	if len(b) >= 9 && equalFold(b[:9], "<!doctype") && indexFold(b[:min(len(b), 64)], "html") > 0 {
		return readHTML
	}
	for _, root := range []string{"urlset", "sitemapindex", "rss", "feed", "rdf"} {
		for i, rest := 0, b; ; rest = rest[i+1:] {
			if i = bytes.IndexByte(rest, '<'); i < 0 {
				break
			}
			name := rest[i+1:]
			if end := bytes.IndexAny(name, " \t\r\n>/"); end >= 0 {
				name = name[:end]
			}
			if colon := bytes.IndexByte(name, ':'); colon >= 0 {
				name = name[colon+1:]
			}
			if equalFold(name, root) {
				return readXML
			}
		}
	}
	if bytes.HasPrefix(b, []byte("<?xml")) && indexFold(b, "<html") < 0 {
		return readXML
	}
	return readHTML
}

// sampleBytes is how much of a document that declares no encoding is looked at
// by the detector. Scanning starts when so much is there.
const sampleBytes = 8 << 10

// byTooLittle stands in for an authority while more bytes are needed.
const byTooLittle Authority = 255

// encoding determines a document's encoding (HTML, 13.2.3).
func (s *Scanner) encoding(b []byte, read reader, whole bool) (name string, by Authority, skip int) {
	if name, n := bom(b); n > 0 {
		return name, ByBOM, n
	}
	if s.label != "" {
		return s.label, ByHeader, 0
	}
	switch read {
	case readNothing:
		return "utf-8", ByDefault, 0
	case readXML:
		if name = xmlCharset(b); name != "" {
			s.col.facts.Declared = name
			return name, ByMeta, 0
		}
		return "utf-8", ByDefault, 0
	case readCSS:
		if rest, ok := bytes.CutPrefix(b, []byte(`@charset "`)); ok {
			if n := bytes.IndexByte(rest, '"'); n >= 0 {
				if _, name = lookup(string(rest[:n])); name != "" {
					return declaredAs(name), ByMeta, 0
				}
			}
		}
		return "utf-8", ByDefault, 0
	}
	if name = prescan(b[:min(len(b), prescanBytes)]); name != "" {
		return name, ByMeta, 0
	}
	if name = xmlCharset(b); name != "" { // HTML, 13.2.3.2 "get an XML encoding"
		s.col.facts.Declared = name
		return name, ByMeta, 0
	}
	if !whole && len(b) < sampleBytes {
		return "", byTooLittle, 0
	}
	if name = prescan(b); name != "" { // a browser would read the page again
		return name, ByMeta, 0
	}
	if name = detect(b); name != "" {
		return name, ByDetector, 0
	}
	return "windows-1252", ByDefault, 0
}

// xmlCharset reads the encoding of an XML declaration, or tells UTF-16 without
// a mark by its first characters.
func xmlCharset(b []byte) string {
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
	_, name := lookup(string(b[1 : n+1]))
	return declaredAs(name)
}

// transcoder turns a document that is no superset of ASCII into UTF-8.
type transcoder struct {
	dec  transform.Transformer
	part []byte // a character cut by the end of a chunk
	out  [4096]byte
}

func newTranscoder(enc encoding.Encoding) *transcoder {
	return &transcoder{dec: enc.NewDecoder().Transformer}
}

func (t *transcoder) write(b []byte, to func([]byte)) {
	for len(b) > 0 && len(t.part) > 0 {
		t.part = append(t.part, b[0])
		b = b[1:]
		t.part = t.part[:copy(t.part, t.part[t.run(t.part, false, to):])]
	}
	t.part = append(t.part, b[t.run(b, false, to):]...)
}

func (t *transcoder) close(to func([]byte)) {
	t.run(t.part, true, to)
	t.part = t.part[:0]
}

// run converts as much of b as can be and returns how much that was.
func (t *transcoder) run(b []byte, end bool, to func([]byte)) int {
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
