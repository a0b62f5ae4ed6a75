package extract

import (
	"bytes"
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
	readMarkdown
)

func isMarkup(typ string) bool { return typ == "text/html" || typ == "application/xhtml+xml" }

// isMarkdown names the media types of Markdown (RFC 7763), and what servers wrote before.
func isMarkdown(typ string) bool { return typ == "text/markdown" || typ == "text/x-markdown" }

// isXML names the media types of XML (MIME Sniffing, section 4.6).
func isXML(typ string) bool {
	return typ == "application/xml" || typ == "text/xml" || strings.HasSuffix(typ, "+xml")
}

// route says how the document that starts with b is read: by its media type,
// where that decides; a sitemap by what it looks like, whatever its type.
func (s *Scanner) route(b []byte, unzipped bool) reader {
	if isMarkup(s.typ) && !s.doc.Sitemap {
		return readHTML
	}
	look := sniff(b)
	xml := isXML(s.typ)
	if s.doc.Sitemap && (look != readHTML || !xml && !isMarkup(s.typ)) {
		if look == readHTML { // an error page in its place
			return readNothing
		}
		// llms.txt is Markdown and begins with a heading, as no list of addresses does.
		_, bom := charset.BOM(b)
		if head := trim(b[bom:]); look == readLines && (isMarkdown(s.typ) || len(head) > 0 && head[0] == '#') {
			return readMarkdown
		}
		return look
	}
	switch typ := s.typ; {
	case isMarkup(typ), typ == "image/svg+xml":
		return readHTML
	case typ == "text/css":
		return readCSS
	case isMarkdown(typ):
		return readMarkdown
	case xml:
		if look == readHTML {
			return readHTML
		}
		return readXML
	case typ == "", typ == "unknown/unknown", typ == "application/unknown",
		unzipped && (typ == "application/gzip" || typ == "application/x-gzip" || typ == "application/octet-stream"):
		if look == readLines {
			return readNothing
		}
		return look
	}
	return readNothing
}

// sniff returns what a document looks like by its first bytes.
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
	markup := len(b) > 0 && b[0] == '<'
	switch {
	case markup && len(b) >= 9 && charset.EqualFold(b[:9], "<!doctype") && charset.IndexFold(b[:min(len(b), 64)], "html") > 0:
		return readHTML
	case (markup || bytes.IndexByte(b, 0) < 0) && hasElement(b, "urlset", "sitemapindex", "rss", "feed", "rdf"): // behind the output of a script, too
		return readXML
	case hasElement(b, "html", "head", "body", "a"), bytes.Contains(b, []byte(xhtmlNamespace)):
		return readHTML
	case !markup:
		return readLines
	case bytes.HasPrefix(b, []byte("<?xml")):
		return readXML
	}
	return readHTML
}

// hasElement reports whether a tag in b has one of the names, whatever its prefix.
func hasElement(b []byte, names ...string) bool {
	for {
		i := bytes.IndexByte(b, '<')
		if i < 0 {
			return false
		}
		b = b[i+1:]
		name := b
		if end := bytes.IndexAny(name, " \t\r\n>/"); end >= 0 {
			name = name[:end]
		}
		if colon := bytes.IndexByte(name, ':'); colon >= 0 {
			name = name[colon+1:]
		}
		for _, n := range names {
			if charset.EqualFold(name, n) {
				return true
			}
		}
	}
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
	case readNothing, readMarkdown:
		return "utf-8", charset.ByDefault, 0
	case readXML:
		if name = charset.XML(trim(b)); name != "" { // blank lines in front of it are a habit
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
	if name = charset.XML(trim(b)); name != "" && isXML(s.typ) {
		s.col.facts.Declared = name
		return name, charset.ByMeta, 0
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
	if name = charset.Prescan(b); name != "" { // a browser would reread the page
		return name, charset.ByMeta, 0
	}
	if name = charset.Detect(b); name != "" {
		return name, charset.ByDetector, 0
	}
	return "windows-1252", charset.ByDefault, 0
}
