package extract

// tag is a start or end tag.
type tag struct {
	element
	b    []byte // from '<' on
	name []byte
}

// tag reads the tag that b starts with and returns its length, -1 when b ends
// first. A tag cut at MaxTag is read as far as it was kept.
func (m *markup) tag(b []byte, start bool) int {
	i := 2
	if start {
		i = 1
	}
	from := i
	var t tag
	if w := uint64(0); i+8 <= len(b) {
		w = load(b, i)
		stop := equal(w, '>') | below(w, '0')
		i += first(stop) // 8 when there is none
		t.key = (w | ones*0x20) & (1<<(8*(i-from)&63) - 1)
	}
	if i-from == 8 || i-from == 0 || !endsName(b[i]) {
		for i < len(b) && !endsName(b[i]) {
			i++
		}
		t.key = nameKey(b[from:i])
	}
	t.b, t.name = b, b[from:i]
	if e := m.names.find(t.key); e != nil {
		t.element = *e
	}
	end := -1
	switch {
	case !start:
		end = skipTag(b, i)
	case t.flags&(flagLook|flagRule) != 0 || len(m.stack) > 0 || m.cfg.Kinds.Has(CSS) || m.xhtml:
		end = m.attrs.parse(b, i, m.cfg.MaxTag)
	default:
		end = skipTag(b, i)
		m.attrs.seen, m.attrs.self = 0, false
	}
	if end > m.cfg.MaxTag || end < 0 && m.over {
		m.cut++
		m.attrs.self = false
		end = max(end, 0)
	}
	if end < 0 {
		return -1
	}
	if start {
		m.start(&t)
	} else {
		m.end(&t)
	}
	return end
}

// start handles a start tag.
func (m *markup) start(t *tag) {
	if len(m.stack) > 0 && m.foreignStart(t) {
		if m.template == 0 || m.cfg.Template {
			m.out.foreignLinks(m, t)
		}
		return
	}
	if m.head && t.flags&flagHead == 0 {
		m.endHead()
	}
	m.htmlStart(t)
	if t.flags&flagRule != 0 && !(m.xhtml && m.attrs.self) {
		m.rule(t)
	}
	if m.cfg.Text && t.flags&flagInline == 0 {
		m.out.space()
	}
	switch {
	case m.attrs.seen == 0 || m.template > 0 && !m.cfg.Template:
	case t.el == tagSVG || t.el == tagMath:
		m.out.foreignLinks(m, t)
	default:
		m.out.links(m, t)
	}
}

// rule changes how the rest is read.
func (m *markup) rule(t *tag) {
	switch t.el {
	case tagTemplate:
		m.template++
		m.settle()
	case tagPlaintext:
		m.mode = inPlain
	case tagTitle, tagTextarea, tagStyle, tagScript, tagIFrame, tagRaw:
		m.enterRaw(t.name, t.el)
	}
}

// end handles an end tag.
func (m *markup) end(t *tag) {
	if len(m.stack) > 0 {
		m.foreignEnd(t)
	}
	if m.cfg.Text && t.flags&flagInline == 0 {
		m.out.space()
	}
	switch t.el {
	case tagHead:
		m.endHead()
	case tagTemplate:
		if m.template > 0 && !m.inForeign() {
			m.template--
			m.settle()
		}
	}
}

// endHead is called when the head is over; later calls do nothing.
func (m *markup) endHead() {
	if m.head {
		m.head = false
		m.out.endHead()
		m.settle()
	}
}

// bytes is the value of an attribute of the tag b as written, nil when missing.
func (a *attrs) bytes(b []byte, id attrID) []byte {
	if !a.has(id) {
		return nil
	}
	return b[a.from[id]:a.to[id]]
}

// equalFold tells whether b is s, which is lower case, in any case.
func equalFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i := range b {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != s[i] {
			return false
		}
	}
	return true
}
