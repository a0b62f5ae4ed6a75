package extract

import (
	"bytes"
	"mime"
	"strings"

	"seine/extract/charset"
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

// headerType splits a Content-Type header into media type and charset, both
// lower case; broken parameters do not hide the charset.
func headerType(v string) (typ, label string) {
	typ, params, err := mime.ParseMediaType(v)
	if err == nil {
		return typ, strings.ToLower(params["charset"])
	}
	typ, rest, _ := strings.Cut(v, ";")
	if cs := charset.Meta([]byte(rest)); cs != nil {
		label = strings.ToLower(string(cs))
	}
	return strings.ToLower(strings.TrimSpace(typ)), label
}

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
	if name, n := charset.BOM(b); n == 2 { // UTF-16: every other byte will do
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
const byTooLittle charset.Authority = 255

// encoding determines a document's encoding (HTML, 13.2.3).
func (s *Scanner) encoding(b []byte, read reader, whole bool) (name string, by charset.Authority, skip int) {
	if name, n := charset.BOM(b); n > 0 {
		return name, charset.ByBOM, n
	}
	if s.label != "" {
		return s.label, charset.ByHeader, 0
	}
	switch read {
	case readNothing:
		return "utf-8", charset.ByDefault, 0
	case readXML:
		if name = charset.XML(b); name != "" {
			s.col.facts.Declared = name
			return name, charset.ByMeta, 0
		}
		return "utf-8", charset.ByDefault, 0
	case readCSS:
		if name = charset.Sheet(b); name != "" {
			return name, charset.ByMeta, 0
		}
		return "utf-8", charset.ByDefault, 0
	}
	if name = charset.Prescan(b[:min(len(b), charset.PrescanBytes)]); name != "" {
		return name, charset.ByMeta, 0
	}
	if name = charset.XML(b); name != "" { // HTML, 13.2.3.2 "get an XML encoding"
		s.col.facts.Declared = name
		return name, charset.ByMeta, 0
	}
	if !whole && len(b) < sampleBytes {
		return "", byTooLittle, 0
	}
	if name = charset.Prescan(b); name != "" { // a browser would read the page again
		return name, charset.ByMeta, 0
	}
	if name = charset.Detect(b); name != "" {
		return name, charset.ByDetector, 0
	}
	return "windows-1252", charset.ByDefault, 0
}
