package extract

import "seine/extract/charset"

// node is one open element inside svg or math: 13.2.6.5 needs to know what the
// current one is, and what an end tag closes.
type node struct {
	key   uint64
	space space
	flags tagFlags
	el    tagID
	host  bool // what it holds is HTML (integration point)
}

type space uint8

const (
	spaceHTML space = iota
	spaceSVG
	spaceMath
)

// maxDepth bounds the stack; elements opened deeper leave no trace. Browsers
// flatten trees at about this depth.
const maxDepth = 512

func (m *markup) push(n node) {
	if len(m.stack) < maxDepth {
		m.stack = append(m.stack, n)
	}
	m.quiet = false
}

func (m *markup) truncate(n int) {
	m.stack = m.stack[:n]
	m.updateQuiet()
}

// inForeign reports whether the current node is an svg or math element.
func (m *markup) inForeign() bool {
	return len(m.stack) > 0 && m.stack[len(m.stack)-1].space != spaceHTML
}

// foreignStart handles a start tag while svg or math is open. It returns false
// when the tag is to be read as HTML.
func (m *markup) foreignStart(t *tag) bool {
	top := &m.stack[len(m.stack)-1]
	switch {
	case top.space == spaceHTML, top.host && top.space == spaceSVG, top.host && top.el == tagAnnotation:
		return false
	case top.el == tagMathText && top.space == spaceMath && t.el != tagMathMark:
		return false
	case top.el == tagAnnotation && top.space == spaceMath && t.el == tagSVG:
		return false
	}
	if t.flags&flagBreak != 0 || t.el == tagFont && m.attrs.has(attrColor) {
		m.breakOut()
		return false
	}
	if !m.attrs.self {
		m.push(m.foreignNode(t, top.space))
	}
	return true
}

func (m *markup) foreignNode(t *tag, s space) node {
	n := node{key: t.key, space: s, el: t.el}
	switch {
	case s == spaceSVG:
		n.host = t.el == tagHost || t.el == tagTitle
	case t.el == tagAnnotation:
		v := m.attrs.bytes(t.b, attrEncoding)
		n.host = charset.EqualFold(v, "text/html") || charset.EqualFold(v, "application/xhtml+xml")
	}
	return n
}

// breakOut closes foreign elements up to one that holds HTML.
func (m *markup) breakOut() {
	i := len(m.stack)
	for i > 0 {
		n := &m.stack[i-1]
		if n.space == spaceHTML || n.host || n.el == tagMathText && n.space == spaceMath {
			break
		}
		i--
	}
	m.truncate(i)
}

// htmlStart keeps track of an HTML element inside an integration point, and of
// svg and math wherever they start.
func (m *markup) htmlStart(t *tag) {
	switch t.el {
	case tagSVG, tagMath:
		if !m.attrs.self {
			s := spaceSVG
			if t.el == tagMath {
				s = spaceMath
			}
			m.push(node{key: t.key, space: s, el: t.el})
		}
		return
	}
	if len(m.stack) == 0 || t.flags&flagVoid != 0 {
		return
	}
	if t.flags&flagCloseP != 0 {
		m.closeHTML(keyP, true)
	}
	m.push(node{key: t.key, flags: t.flags, el: t.el})
}

const keyP = 'p'

// foreignEnd handles an end tag while svg or math is open.
func (m *markup) foreignEnd(t *tag) {
	top := len(m.stack) - 1
	if m.stack[top].space == spaceHTML {
		m.closeHTML(t.key, t.flags&flagBlock != 0)
		return
	}
	if t.el == tagP || t.key == keyBR {
		m.breakOut()
		return
	}
	for i := top; i >= 0; i-- {
		switch {
		case m.stack[i].space == spaceHTML:
			m.truncate(i + 1)
			m.closeHTML(t.key, t.flags&flagBlock != 0)
			return
		case m.stack[i].key == t.key:
			m.truncate(i)
			return
		}
	}
	// What is open around the outermost svg is not kept, templates aside. The end
	// tag of what can be open there is taken to close it, and the svg with it.
	if t.el == tagTemplate && m.template+m.shadow == 0 {
		return
	}
	if t.flags&flagBlock != 0 || t.flags&flagInline != 0 && t.flags&flagVoid == 0 {
		m.truncate(0)
	}
}

const keyBR = 'b' | 'r'<<8

// closeHTML pops an HTML element of the integration point that is open.
// Through says that what is special does not stand in the way.
func (m *markup) closeHTML(key uint64, through bool) {
	for i := len(m.stack) - 1; i >= 0 && m.stack[i].space == spaceHTML; i-- {
		if m.stack[i].key == key {
			m.truncate(i)
			return
		}
		if !through && m.stack[i].flags&flagSpecial != 0 {
			return
		}
	}
}
