package extract

import (
	"seine/extract/charset"
	"seine/extract/markdown"
	"seine/extract/mediatype"
)

// Scanner finds links and facts in the document that is written to it. One per
// goroutine; made once and Reset for each document.
type Scanner struct {
	cfg Config
	col collector
	mk  markup
	doc Doc

	typ    string // media type
	label  string // charset of the Content-Type header, its WHATWG name
	header string // Content-Type header that typ and label were read from

	levels [maxZipped + 1]level
	read   reader
	marked []byte              // the Markdown so far
	wide   *charset.Transcoder // of an encoding that is no superset of ASCII
}

// maxZipped is how often a document may be gzipped: once, and once more.
const maxZipped = 2

// level is a document on one side of gzip. Its first bytes are buffered until they are
// enough to decide how it is read.
type level struct {
	buffered []byte
	begun    bool
	zipped   bool // what is written goes through zip to the next level
	zip      *inflater
	left     int64 // bytes that zip may still yield
}

// NewScanner returns a scanner; cfg must be valid.
func NewScanner(cfg Config) *Scanner {
	s := &Scanner{cfg: cfg.withDefaults()}
	s.col.cfg = &s.cfg
	s.mk.cfg, s.mk.out, s.mk.names = &s.cfg, &s.col, namesOf(&s.cfg)
	s.Reset(Doc{}, func(*Link) {})
	return s
}

// Reset makes the scanner ready for another document. emit gets links of the headers
// at once, those of the body while it is written. It also ends
// a document that was not closed.
func (s *Scanner) Reset(doc Doc, emit func(*Link)) {
	for i := range s.levels {
		l := &s.levels[i]
		l.buffered, l.begun, l.zipped = l.buffered[:0], false, false
	}
	s.doc, s.read, s.wide = doc, readNothing, nil
	if s.header != doc.ContentType || s.header == "" {
		s.header, s.label = doc.ContentType, ""
		typ, label := mediatype.Extract(doc.ContentType)
		if s.typ = typ; label != "" {
			_, s.label = charset.Lookup(label)
		}
	}
	s.col.reset(emit)
	s.col.docBase = doc.Base
	s.mk.reset(false)
	s.col.facts.Declared, s.col.facts.Said = s.label, doc.Said
	s.col.headers(&s.doc)
}

// Write takes the next bytes of the document; it never fails and keeps none of
// p. Links found in them are passed on before it returns.
func (s *Scanner) Write(p []byte) (int, error) {
	s.write(0, p)
	return len(p), nil
}

// Close ends the document. An unfinished tag is dropped.
func (s *Scanner) Close() error {
	s.end(0)
	s.col.facts.Cut += s.mk.cut
	s.mk.cut = 0
	if s.col.facts.Canonical == nil && s.col.headerCanonical != "" {
		s.col.facts.Canonical = s.col.keep([]byte(s.col.headerCanonical))
	}
	return nil
}

// Facts is what the document states about itself so far; complete after Close.
func (s *Scanner) Facts() *Facts { return &s.col.facts }

// write takes bytes at one level.
func (s *Scanner) write(n int, p []byte) {
	l := &s.levels[n]
	for !l.begun {
		need := s.need(n)
		if len(l.buffered) == 0 && len(p) >= need {
			if skip, ok := s.begin(n, p[:need], false); ok {
				p = p[skip:]
			} else {
				l.buffered = append(l.buffered, p[:need]...)
				p = p[need:]
			}
			continue
		}
		take := min(len(p), need-len(l.buffered))
		l.buffered = append(l.buffered, p[:take]...)
		if p = p[take:]; len(l.buffered) < need {
			return
		}
		s.beginBuffered(n, false)
	}
	s.feed(n, p)
}

// beginBuffered begins with the buffered bytes.
func (s *Scanner) beginBuffered(n int, whole bool) {
	l := &s.levels[n]
	if skip, ok := s.begin(n, l.buffered, whole); ok {
		s.feed(n, l.buffered[skip:])
	}
}

// feed passes bytes of a level on to what reads them.
func (s *Scanner) feed(n int, b []byte) {
	switch {
	case len(b) == 0:
	case s.levels[n].zipped:
		s.levels[n].zip.write(b)
	case s.wide != nil:
		s.wide.Write(b, s.text)
	default:
		s.text(b)
	}
}

// text hands bytes on in an encoding that holds ASCII.
func (s *Scanner) text(b []byte) {
	switch s.read {
	case readHTML:
		s.mk.write(b)
	case readCSS:
		s.col.sheetWrite(b)
	case readXML:
		s.col.listWrite(b)
	case readLines:
		s.col.linesWrite(b)
	case readMarkdown:
		if room := maxMarkdown - len(s.marked); len(b) > room {
			b = b[:room]
			s.col.facts.Truncated = true
		}
		s.marked = append(s.marked, b...)
	}
}

const (
	// maxMarkdown is how much of a document of Markdown is read, bytes: the whole of it is
	// kept, and a tree of it that takes some fifty times as much while it is read.
	maxMarkdown = 512 << 10
	// maxKeptMarkdown is how much memory for it is kept for the next document.
	maxKeptMarkdown = 64 << 10
)

// endMarkdown reads a document of Markdown as the HTML that it stands for.
func (s *Scanner) endMarkdown() {
	html, err := markdown.AppendHTML(nil, s.marked)
	if err != nil {
		s.col.facts.Truncated = true
	}
	s.mk.write(html)
	s.mk.close()
	s.col.finishText()
	if s.marked = s.marked[:0]; cap(s.marked) > maxKeptMarkdown {
		s.marked = nil
	}
}

// end ends one level and those behind it.
func (s *Scanner) end(n int) {
	l := &s.levels[n]
	if !l.begun {
		s.beginBuffered(n, true)
	}
	if l.zipped {
		l.zip.end()
		l.zipped = false
		if l.zip.broken {
			s.col.facts.Truncated = true
		}
		s.end(n + 1)
		return
	}
	if s.wide != nil {
		s.wide.Close(s.text)
		s.wide = nil
	}
	switch s.read {
	case readHTML:
		s.mk.close()
		s.col.finishText()
	case readCSS:
		s.col.sheetClose()
	case readXML:
		s.col.listClose()
	case readLines:
		s.col.line()
	case readMarkdown:
		s.endMarkdown()
	}
	s.read = readNothing
}

// need is how many bytes of a level must be there to begin, or to know that
// more are needed.
func (s *Scanner) need(n int) int {
	switch buffered := len(s.levels[n].buffered); {
	case buffered >= charset.PrescanBytes:
		return sampleBytes
	case s.label != "" && n == 0 && isMarkup(s.typ) && buffered < 3:
		return 3 // a byte order mark, or gzip's
	}
	return charset.PrescanBytes
}

// begin decides how the document that starts with b is read and returns where
// its text starts; false when more of it is needed. Whole says there is no more.
func (s *Scanner) begin(n int, b []byte, whole bool) (int, bool) {
	l := &s.levels[n]
	if n < maxZipped && len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8 {
		if l.zip == nil {
			l.zip = new(inflater)
		}
		l.begun, l.zipped, l.left = true, true, s.cfg.MaxBytes
		l.zip.start(func(p []byte) bool {
			if l.left -= int64(len(p)); l.left < 0 {
				p = p[:int64(len(p))+l.left]
				s.col.facts.Truncated = true
			}
			s.write(n+1, p)
			if l.left < 0 {
				return false
			}
			return !s.col.list.full
		})
		return 0, true
	}
	read := s.route(b, n > 0)
	name, by, skip := s.encoding(b, read, whole)
	if by == byTooLittle {
		return 0, false
	}
	s.read, l.begun = read, true
	s.col.facts.Markup = read == readHTML && n == 0
	switch read {
	case readHTML:
		s.mk.reset(isXML(s.typ))
	case readMarkdown:
		s.mk.reset(false)
		s.marked = s.marked[:0]
		s.col.listed = s.doc.Sitemap
	}
	s.use(name, by)
	return skip, true
}

// use reads what follows in an encoding.
func (s *Scanner) use(name string, by charset.Authority) {
	s.col.facts.Charset, s.col.facts.CharsetBy = name, by
	enc, _ := charset.Lookup(name)
	switch name {
	case "utf-8":
		enc = nil
	case "utf-16le", "utf-16be", "iso-2022-jp", "replacement":
		s.wide = charset.NewTranscoder(enc)
		enc = nil
	}
	s.col.dec.Use(enc, by == charset.ByDefault)
}
