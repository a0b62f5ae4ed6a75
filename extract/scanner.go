package extract

import (
	"golang.org/x/text/encoding"
)

// sampleBytes is how much of a document that declares no encoding is looked at
// by the detector. Scanning starts when so much is there.
const sampleBytes = 8 << 10

// reader is what a kind of document is read by.
type reader uint8

const (
	readNothing reader = iota
	readHTML
	readCSS
	readXML
	readText
)

// Scanner finds links and facts in the document that is written to it. One per
// goroutine; made once and Reset for each document.
type Scanner struct {
	cfg Config
	col collector
	mk  markup
	doc Doc

	begun bool   // the encoding is known and the scan under way
	held  []byte // the document so far, until it is
	read  reader
	label string // charset of the Content-Type header, its WHATWG name
	wide  *transcoder
}

// NewScanner returns a scanner; cfg must be valid.
func NewScanner(cfg Config) *Scanner {
	s := &Scanner{cfg: cfg.withDefaults()}
	s.col.cfg = &s.cfg
	s.mk.cfg, s.mk.out, s.mk.names = &s.cfg, &s.col, newNames(&s.cfg)
	s.Reset(Doc{}, func(*Link) {})
	return s
}

// Reset makes the scanner ready for another document. Links of the headers are
// handed to emit at once, those of the body while it is written.
func (s *Scanner) Reset(doc Doc, emit func(*Link)) {
	s.doc = doc
	s.begun, s.held, s.wide = false, s.held[:0], nil
	var typ string
	typ, label := headerType(doc.ContentType)
	s.label = ""
	if label != "" {
		_, s.label = lookup(label)
	}
	s.col.reset(emit)
	s.col.facts.Declared = s.label
	s.read = s.route(typ)
	s.mk.reset(typ == "application/xhtml+xml")
	s.col.headers(&s.doc)
}

// route says how a media type is read.
func (s *Scanner) route(typ string) reader {
	switch typ {
	case "", "text/html", "application/xhtml+xml":
		return readHTML
	}
	return readNothing
}

// Write takes the next bytes of the document; it never fails and keeps none of
// p. Links found in them are handed on before it returns.
func (s *Scanner) Write(p []byte) (int, error) {
	n := len(p)
	for !s.begun {
		need := s.need()
		if len(s.held) == 0 && len(p) >= need {
			if skip, ok := s.begin(p[:need], false); ok {
				s.feed(p[skip:])
				return n, nil
			}
			continue
		}
		take := min(len(p), need-len(s.held))
		s.held = append(s.held, p[:take]...)
		if p = p[take:]; len(s.held) < need {
			return n, nil
		}
		s.beginHeld(false)
	}
	s.feed(p)
	return n, nil
}

// Close ends the document. What an unfinished tag holds is dropped.
func (s *Scanner) Close() error {
	if !s.begun {
		s.beginHeld(true)
	}
	if s.wide != nil {
		s.wide.close(s.mk.write)
	}
	s.mk.close()
	s.col.facts.Cut = s.mk.cut
	if s.col.facts.Canonical == nil && s.col.headerCanonical != "" {
		s.col.facts.Canonical = s.col.keep([]byte(s.col.headerCanonical))
	}
	return nil
}

// Facts is what the document said of itself so far; complete after Close.
func (s *Scanner) Facts() *Facts { return &s.col.facts }

// beginHeld begins with what was held back.
func (s *Scanner) beginHeld(whole bool) {
	if skip, ok := s.begin(s.held, whole); ok {
		s.feed(s.held[skip:])
	}
}

func (s *Scanner) feed(b []byte) {
	switch {
	case len(b) == 0:
	case s.wide != nil:
		s.wide.write(b, s.mk.write)
	case s.read == readHTML:
		s.mk.write(b)
	}
}

// need is how many bytes must be there to begin or to know that more are needed.
func (s *Scanner) need() int {
	switch {
	case s.label != "":
		return 3 // a byte order mark
	case len(s.held) < prescanBytes && s.col.facts.CharsetBy != byTooLittle:
		return prescanBytes
	}
	return sampleBytes
}

// begin decides how the document that starts with b is read, and returns where
// its text starts; false when more of it is needed. Whole says there is no more.
func (s *Scanner) begin(b []byte, whole bool) (int, bool) {
	name, by, skip := s.encoding(b, whole)
	s.col.facts.CharsetBy = by
	if by == byTooLittle {
		return 0, false
	}
	enc, _ := lookup(name)
	s.col.facts.Charset = name
	s.begun = true
	switch name {
	case "utf-8":
		enc = nil
	case "utf-16le", "utf-16be", "iso-2022-jp":
		s.wide = newTranscoder(enc)
		enc = nil
	}
	s.col.dec.use(enc, by == ByDefault)
	return skip, true
}

// byTooLittle stands in for an authority while more bytes are needed.
const byTooLittle Authority = 255

// encoding determines a document's encoding (HTML, 13.2.3).
func (s *Scanner) encoding(b []byte, whole bool) (name string, by Authority, skip int) {
	if name, n := bom(b); n > 0 {
		return name, ByBOM, n
	}
	if s.label != "" {
		return s.label, ByHeader, 0
	}
	if name = prescan(b[:min(len(b), prescanBytes)]); name != "" {
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

// transcoder turns a document that is no superset of ASCII into UTF-8.
type transcoder struct {
	dec  *encoding.Decoder
	part []byte
	out  [4096]byte
}

func newTranscoder(enc encoding.Encoding) *transcoder { return &transcoder{dec: enc.NewDecoder()} }

func (t *transcoder) write(b []byte, to func([]byte)) {
	if len(t.part) > 0 { // a character cut by the end of a chunk
		for len(b) > 0 && len(t.part) > 0 {
			t.part = append(t.part, b[0])
			b = b[1:]
			t.part = t.part[:copy(t.part, t.part[t.run(t.part, false, to):])]
		}
	}
	n := t.run(b, false, to)
	t.part = append(t.part, b[n:]...)
}

func (t *transcoder) close(to func([]byte)) {
	t.run(t.part, true, to)
	t.part = t.part[:0]
}

// run converts as much of b as can be and returns how much that was.
func (t *transcoder) run(b []byte, end bool, to func([]byte)) int {
	read := 0
	for {
		n, k, err := t.dec.Transformer.Transform(t.out[:], b[read:], end)
		read += k
		to(t.out[:n])
		if err == nil || n == 0 && k == 0 {
			return read
		}
	}
}
