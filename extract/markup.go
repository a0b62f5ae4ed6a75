package extract

import "bytes"

// mode is what the tokenizer is in the middle of between two chunks.
type mode uint8

const (
	inData    mode = iota
	inOpen         // part holds a '<' and too little to decide what it starts
	inTag          // part holds a tag as far as it came
	inComment      // until "-->" or "--!>"
	inBogus        // until '>'
	inCDATA        // until "]]>"
	inRaw          // until the end tag of raw
	inRawOpen      // part holds a '<' that may start the end tag of raw
	inPlain        // until the end
)

// markup is the tokenizer of HTML and XHTML, with as much of the tree as
// decides what is a link. Its hot loop is in data.
type markup struct {
	cfg   *Config
	names *names
	out   *collector // what takes links and facts

	mode  mode
	quiet bool // nothing but links is to be noticed: the hot loop may skip
	xhtml bool // read as XML: elements may close themselves and have prefixes, CDATA is everywhere

	bitmap bitmap // of the chunk, for the hot loop

	part []byte // a token cut by the end of a chunk, MaxTag bytes at most
	over bool   // part was cut at MaxTag
	walk walker // where part is in its tag
	tail uint32 // the last bytes of a comment, CDATA or script before this chunk

	raw    []byte // name of the element whose text is raw
	rawTag tagID
	escape uint8 // in a script: 1 after "<!--", 2 after a "<script" behind that

	prefixes [][]byte // of names in XML that are those of HTML, SVG and MathML
	attrs    attrs
	stack    []node // open elements from the outermost svg or math on
	template int    // open template elements whose content is inert
	shadow   int    // open template elements that are shadow roots
	cut      int    // tags longer than MaxTag
}

func (m *markup) reset(xhtml bool) {
	m.mode, m.xhtml, m.part, m.over, m.prefixes = inData, xhtml, m.part[:0], false, nil
	m.stack, m.template, m.shadow, m.cut = m.stack[:0], 0, 0, 0
	m.updateQuiet()
}

// updateQuiet notes whether the hot loop may skip what bears no link.
func (m *markup) updateQuiet() {
	m.quiet = !m.xhtml && len(m.stack) == 0 && m.template == 0 && !m.cfg.wantsText() && m.cfg.Kinds&Of(CSS) == 0
}

// write takes the next chunk.
func (m *markup) write(b []byte) {
	for len(b) > 0 {
		switch m.mode {
		case inData:
			b = m.data(b)
		case inOpen:
			b = m.resumeOpen(b)
		case inTag:
			b = m.resumeTag(b)
		case inComment, inBogus, inCDATA:
			b = m.skip(b)
		case inRaw:
			b = m.rawText(b)
		case inRawOpen:
			b = m.resumeRaw(b)
		case inPlain:
			m.text(b)
			return
		}
	}
}

// close ends the document. A tag that was not closed is none.
func (m *markup) close() {
	if m.mode == inRaw || m.mode == inRawOpen {
		m.endRaw()
	}
}

// data reads text and tags until the mode changes or b ends, and returns the rest.
func (m *markup) data(b []byte) []byte {
	m.bitmap.forget()
	for i := 0; ; {
		n := next(b, i, '<') - i
		if n < 0 {
			m.text(b[i:])
			return nil
		}
		if m.quiet {
			if i = m.skipTags(b, i+n); i == len(b) {
				return nil
			}
		} else {
			m.text(b[i : i+n])
			i += n
		}
		n = m.open(b[i:])
		i += n
		if m.mode != inData || i == len(b) {
			return b[i:]
		}
	}
}

// open reads the token at the '<' that b starts with and returns how many
// bytes it took.
func (m *markup) open(b []byte) int {
	tok, n := m.classify(b)
	switch tok {
	case tokenMore:
		m.part = append(m.part[:0], b...)
		m.mode = inOpen
		return len(b)
	case tokenStart, tokenEnd:
		n = m.tag(b, tok == tokenStart)
		if n < 0 {
			m.hold(b)
			return len(b)
		}
		return n
	}
	m.begin(tok)
	return n
}

// begin enters the mode of a token that is no tag.
func (m *markup) begin(tok token) {
	m.mode = inData
	switch tok {
	case tokenText:
		m.text([]byte{'<'})
	case tokenComment:
		m.mode, m.tail = inComment, 0
	case tokenBogus:
		m.mode = inBogus
	case tokenCDATA:
		m.mode, m.tail = inCDATA, 0
	}
}

// text passes on text that a reader sees.
func (m *markup) text(b []byte) {
	if m.template == 0 {
		m.out.text(b)
	}
}

// hold keeps the tag that b, the rest of a chunk, starts with.
func (m *markup) hold(b []byte) {
	m.part = append(m.part[:0], b[:min(len(b), m.cfg.MaxTag)]...)
	m.over = len(b) > m.cfg.MaxTag
	m.mode, m.walk = inTag, inName
	m.walk.walk(b[2:]) // an end tag's slash ends no name
}

// resumeOpen adds to part until it is clear what its '<' starts.
func (m *markup) resumeOpen(b []byte) []byte {
	var tmp [16]byte
	buffered := copy(tmp[:], m.part)
	all := buffered + copy(tmp[buffered:], b)
	tok, n := m.classify(tmp[:all])
	if tok == tokenMore {
		m.part = append(m.part, b...)
		return nil
	}
	n = max(n, buffered)
	b = b[n-buffered:]
	if tok == tokenStart || tok == tokenEnd {
		m.part = append(m.part[:0], tmp[:n]...)
		m.over, m.mode, m.walk = false, inTag, inName
		return b
	}
	m.begin(tok)
	return b
}

// resumeTag adds to part until its tag ends.
func (m *markup) resumeTag(b []byte) []byte {
	n := m.walk.walk(b)
	add := b
	if n >= 0 {
		add = b[:n]
	}
	room := m.cfg.MaxTag - len(m.part)
	if len(add) > room {
		add, m.over = add[:room], true
	}
	m.part = append(m.part, add...)
	if n < 0 {
		return nil
	}
	m.mode = inData
	m.tag(m.part, m.part[1] != '/')
	m.over = false
	return b[n:]
}

// skip reads to the end of a comment, bogus comment or CDATA section.
func (m *markup) skip(b []byte) []byte {
	for i := 0; ; i++ {
		n := bytes.IndexByte(b[i:], '>')
		if n < 0 {
			m.cdata(b)
			m.keepTail(b)
			return nil
		}
		i += n
		if m.ends(b[:i]) {
			m.cdata(b[:i])
			m.mode = inData
			return b[i+1:]
		}
	}
}

// ends reports whether a '>' behind b ends what is being skipped.
func (m *markup) ends(b []byte) bool {
	t := lastBytes(m.tail, b)
	switch m.mode {
	case inComment: // a comment's first bytes may be the whole: "<!-->", "<!--->"
		return t == 0 || t == '-' || t&0xffff == '-'<<8|'-' || t&0xffffff == '-'<<16|'-'<<8|'!'
	case inCDATA:
		return t&0xffff == ']'<<8|']'
	}
	return true
}

func (m *markup) keepTail(b []byte) { m.tail = lastBytes(m.tail, b) }

// lastBytes shifts the end of b into t. A NUL counts as a byte like any other.
func lastBytes(t uint32, b []byte) uint32 {
	for _, c := range b[max(0, len(b)-4):] {
		if c == 0 {
			c = 1
		}
		t = t<<8 | uint32(c)
	}
	return t
}

// cdata hands the text of a CDATA section on.
func (m *markup) cdata(b []byte) {
	if m.mode == inCDATA {
		m.text(b)
	}
}
