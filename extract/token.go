package extract

import (
	"bytes"

	"seine/extract/charset"
)

// token is what a '<' starts.
type token uint8

const (
	tokenMore token = iota // too little to decide
	tokenText
	tokenStart
	tokenEnd
	tokenComment
	tokenBogus
	tokenCDATA
	tokenNothing // "</>"
)

// classify returns what the '<' that b starts with begins, and how many bytes of
// it are settled by that.
func (m *markup) classify(b []byte) (token, int) {
	if len(b) < 2 {
		return tokenMore, 0
	}
	switch c := b[1]; {
	case isLetter(c):
		return tokenStart, 2
	case c == '/':
		switch {
		case len(b) < 3:
			return tokenMore, 0
		case isLetter(b[2]):
			return tokenEnd, 3
		case b[2] == '>':
			return tokenNothing, 3
		}
		return tokenBogus, 2
	case c == '?':
		return tokenBogus, 2
	case c != '!':
		return tokenText, 1
	}
	if starts, more := prefix(b, "<!--"); starts {
		return tokenComment, 4
	} else if more {
		return tokenMore, 0
	}
	if m.xhtml || m.inForeign() {
		if starts, more := prefix(b, "<![CDATA["); starts {
			return tokenCDATA, 9
		} else if more {
			return tokenMore, 0
		}
	}
	return tokenBogus, 2
}

// prefix reports whether b starts with p, or may once there is more of it.
func prefix(b []byte, p string) (starts, more bool) {
	if len(b) >= len(p) {
		return string(b[:len(p)]) == p, false
	}
	return false, string(b) == p[:len(b)]
}

// skipTag returns the end of the tag that b starts with, -1 when b ends first;
// i is where its name ends. Quotes count only after a '=' that follows a name.
func skipTag(b []byte, i int) int {
	for zone := i; ; {
		for i+8 <= len(b) {
			w := load(b, i)
			if hit := equal(w, '>') | equal(w, '='); hit != 0 {
				i += first(hit)
				break
			}
			i += 8
		}
		for i < len(b) && b[i] != '>' && b[i] != '=' {
			i++
		}
		if i == len(b) {
			return -1
		}
		if b[i] == '>' {
			return i + 1
		}
		k := i - 1
		for k >= zone && charset.IsSpace(b[k]) {
			k--
		}
		if k < zone || b[k] == '/' { // a '=' where a name should start is part of the name
			i++
			continue
		}
		if i = skipValue(b, i+1); i < 0 {
			return -1
		}
		zone = i
	}
}

// skipValue returns the end of an attribute's value, as value does.
func skipValue(b []byte, i int) int {
	if i < len(b) && b[i] == '"' {
		if n := next(b, i+1, '"'); n >= 0 {
			return n + 1
		}
		return -1
	}
	_, _, end := value(b, i)
	return end
}

// walker finds the end of a tag that comes in pieces.
type walker uint8

const (
	inName walker = iota
	beforeAttr
	inAttr
	afterAttr
	beforeValue
	inDouble
	inSingle
	inBare
)

// walk reads on and returns the offset after the tag's '>', -1 when b ends first.
func (w *walker) walk(b []byte) int {
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch *w {
		case inDouble, inSingle:
			quote := byte('"')
			if *w == inSingle {
				quote = '\''
			}
			n := bytes.IndexByte(b[i:], quote)
			if n < 0 {
				return -1
			}
			i += n
			*w = beforeAttr
			continue
		}
		if c == '>' {
			return i + 1
		}
		*w = w.next(c)
	}
	return -1
}

// next is the state after c, which is no '>', outside quotes.
func (w walker) next(c byte) walker {
	space := charset.IsSpace(c)
	switch w {
	case inName:
		if space || c == '/' {
			return beforeAttr
		}
	case beforeAttr:
		if !space && c != '/' {
			return inAttr
		}
	case inAttr, afterAttr:
		switch {
		case space:
			return afterAttr
		case c == '/':
			return beforeAttr
		case c == '=':
			return beforeValue
		}
		return inAttr
	case beforeValue:
		switch {
		case c == '"':
			return inDouble
		case c == '\'':
			return inSingle
		case !space:
			return inBare
		}
	case inBare:
		if space {
			return beforeAttr
		}
	}
	return w
}

// maxRaw bounds the name of an element of raw text, which may have a prefix in XML:
// what is buffered of its end tag fits resumeRaw's memory.
const maxRaw = 24

// enterRaw makes what follows the raw text of an element, up to its end tag.
func (m *markup) enterRaw(name []byte, el tagID) {
	m.raw = m.raw[:0]
	for _, c := range name {
		m.raw = append(m.raw, c|0x20)
	}
	m.mode, m.rawTag, m.escape, m.tail = inRaw, el, 0, 0
	if m.template == 0 {
		m.out.beginRaw(el)
	}
}

// endRaw is called when raw text ended. Its end tag is still to come.
func (m *markup) endRaw() {
	m.mode = inData
	m.out.endRaw()
}

// rawText reads raw text until its end tag or the end of b.
func (m *markup) rawText(b []byte) []byte {
	for i := 0; ; {
		n := m.rawStop(b[i:])
		if n < 0 {
			m.out.raw(m.rawTag, b)
			m.keepTail(b)
			return nil
		}
		i += n
		if b[i] == '>' { // of a script, escaped
			if t := lastBytes(m.tail, b[:i]); t&0xffff == '-'<<8|'-' {
				m.escape = 0
			}
			i++
			continue
		}
		switch tok, n := m.classifyRaw(b[i:]); tok {
		case tokenMore:
			m.out.raw(m.rawTag, b[:i])
			m.keepTail(b[:i])
			m.part = append(m.part[:0], b[i:]...)
			m.mode = inRawOpen
			return nil
		case tokenEnd:
			m.out.raw(m.rawTag, b[:i])
			m.endRaw()
			return b[i:]
		default:
			i += n
		}
	}
}

// rawStop finds the next byte that may matter in raw text.
func (m *markup) rawStop(b []byte) int {
	if m.escape == 0 {
		return bytes.IndexByte(b, '<')
	}
	for i, c := range b {
		if c == '<' || c == '>' {
			return i
		}
	}
	return -1
}

// classifyRaw reports whether the '<' that b starts with begins the end tag of
// the raw text; scripts have states of their own (13.2.5.17 to 31).
func (m *markup) classifyRaw(b []byte) (token, int) {
	ends, more := closing(b, "</", m.raw)
	if ends {
		if m.escape == 2 {
			m.escape = 1
			return tokenText, 2 + len(m.raw)
		}
		return tokenEnd, 0
	}
	if m.rawTag == tagScript && !more {
		switch m.escape {
		case 0:
			var starts bool
			if starts, more = prefix(b, "<!--"); starts {
				m.escape = 1
				return tokenText, 4
			}
		case 1:
			if ends, more = closing(b, "<", m.raw); ends {
				m.escape = 2
				return tokenText, 1 + len(m.raw)
			}
		}
	}
	if more {
		return tokenMore, 0
	}
	return tokenText, 1
}

// closing reports whether b starts with open, name in any case, and a byte that
// ends a name, or may once there is more of it.
func closing(b []byte, open string, name []byte) (is, more bool) {
	n := len(open)
	if len(b) < n {
		return false, string(b) == open[:len(b)]
	}
	if string(b[:n]) != open {
		return false, false
	}
	for i, c := range name {
		if n+i == len(b) {
			return false, true
		}
		if d := b[n+i]; d != c && (d|0x20 != c || !isLetter(d)) {
			return false, false
		}
	}
	if n += len(name); n == len(b) {
		return false, true
	}
	return endsName(b[n]), false
}

// resumeRaw adds to part until it is clear whether its '<' ends the raw text.
func (m *markup) resumeRaw(b []byte) []byte {
	var tmp [32]byte
	buffered := copy(tmp[:], m.part)
	all := buffered + copy(tmp[buffered:], b)
	tok, n := m.classifyRaw(tmp[:all])
	if tok == tokenMore {
		m.part = append(m.part, b...)
		return nil
	}
	m.mode = inRaw
	if tok == tokenEnd {
		m.endRaw()
		n = max(buffered, len("</"))
		m.part = append(m.part[:0], tmp[:n]...)
		m.over, m.mode, m.walk = false, inTag, inName
		return b[n-buffered:]
	}
	// Nothing buffered can start another end tag: it has one '<', its first byte.
	n = max(n, buffered)
	m.out.raw(m.rawTag, tmp[:n])
	m.keepTail(tmp[:n])
	return b[n-buffered:]
}
