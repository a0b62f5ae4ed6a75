package extract

import "bytes"

// skipTags is the hot loop: it steps over tags that mean nothing to us, and the
// text behind them, while nothing but links is to be noticed. It starts at the
// '<' at b[i] and returns the offset of the first '<' that needs a closer
// look, len(b) when there is none.
func (m *markup) skipTags(b []byte, i int) int {
	if mapTags == nil {
		return m.skipTagsByBytes(b, i)
	}
	x := &m.bitmap
	if x.inside(i) { // what the bitmap has as a tag was none
		x.forget()
	}
	for x.reach(b, i, &m.names.patterns) {
		at, found := x.find(i)
		if i = at; !found {
			continue
		}
		if i+stepBytes > len(b) {
			return i
		}
		end := m.step(b, i)
		if end == 0 {
			return i
		}
		i = end
	}
	n := bytes.IndexByte(b[i:], '<')
	if n < 0 {
		return len(b)
	}
	return m.skipTagsByBytes(b, i+n)
}

// stepBytes is what step looks at without asking whether it is there.
const stepBytes = 24

// skipTagsByBytes is skipTags without a bitmap. It looks at eight bytes at a time.
func (m *markup) skipTagsByBytes(b []byte, i int) int {
	for i+stepBytes <= len(b) {
		// Where the next '<' is does not depend on where this tag ends, so the
		// processor looks for both at once. That the tag ends first is checked.
		next := bytes.IndexByte(b[i+2:], '<') + i + 2
		end := m.step(b, i)
		if end == 0 {
			return i
		}
		if next < end { // a '<' inside the tag, or none behind it
			n := bytes.IndexByte(b[end:], '<')
			if n < 0 {
				return len(b)
			}
			next = end + n
		}
		i = next
	}
	return i
}

// step returns the end of the tag at b[i], 0 when it needs a closer look.
func (m *markup) step(b []byte, i int) int {
	w := load(b, i+1)
	if byte(w) == '/' {
		stop := equal(w, '>')
		if stop == 0 || (stop&-stop-1)&equal(w, '=') != 0 { // without a '=' no quote hides a '>'
			return 0
		}
		return i + 2 + first(stop)
	}
	stop := below(w, '0') | equal(w, '>')
	if stop == 0 || !isLetter(byte(w)) {
		return 0
	}
	n := uint(first(stop))
	key := (w | ones*0x20) & (1<<(8*n&63) - 1)
	c := byte(w >> (8 * n & 63))
	if m.names.hot[key*hotFactor>>(64-hotBits)] == key {
		return m.link(b, i, key, n, c)
	}
	if c == '>' {
		return i + int(n) + 2
	}
	end := skipQuick(b, i+int(n)+1)
	if !endsName(c) || end < 0 || end-i > m.cfg.MaxTag {
		return 0
	}
	return end
}

// link reads the tag at b[i] when it changes nothing in how the rest is read,
// and returns its end, 0 when it needs a closer look. Its name is n bytes long
// and ends with c.
func (m *markup) link(b []byte, i int, key uint64, n uint, c byte) int {
	e := m.names.find(key)
	if e == nil || e.flags&flagRule != 0 || !endsName(c) {
		return 0
	}
	b = b[i:]
	end := m.attrs.parse(b, int(n)+1, m.cfg.MaxTag, &m.bitmap, i)
	if end < 0 || end > m.cfg.MaxTag {
		return 0
	}
	if a := &m.attrs; a.seen != 0 {
		if e.el == tagA && a.seen&(1<<attrHref|1<<attrRel) == 1<<attrHref && m.out.repeated(b, a.from[attrHref], a.to[attrHref]) {
			return i + end
		}
		m.out.links(m, &tag{element: *e, b: b})
	}
	return i + end
}

// skipQuick is skipTag, quick when the tag has one quoted attribute.
func skipQuick(b []byte, i int) int {
	if i+24 <= len(b) && b[i] == ' ' {
		w := load(b, i+1)
		stop := endOfAttr(w)
		n := first(stop)
		if q := i + n + 2; stop != 0 && n > 0 && b[q-1] == '=' && b[q] == '"' {
			if q = next(b, q+1, '"'); q < 0 {
				return -1
			}
			if i = q + 1; i < len(b) && b[i] == '>' {
				return i + 1
			}
		}
	}
	return skipTag(b, i)
}
