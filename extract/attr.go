package extract

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"

	"seine/extract/charset"
)

// attrID names the attributes that are ever read.
type attrID uint8

const (
	attrNone attrID = iota
	attrHref
	attrXLink // xlink:href
	attrSrc
	attrSrcset
	attrImageSrcset
	attrDataSrc    // what scripts of lazy images make src
	attrDataSrcset // and srcset
	attrRel
	attrType
	attrContent
	attrHTTPEquiv
	attrName
	attrCharset
	attrData
	attrCite
	attrBackground
	attrPoster
	attrLang
	attrTitle
	attrStyle
	attrEncoding
	attrColor  // color, face and size: a font that leaves foreign content
	attrShadow // shadowrootmode
	numAttrs
)

// attrOf recognizes an attribute's name.
func attrOf(name []byte) attrID {
	var fold [len("shadowrootmode")]byte
	if len(name) > len(fold) {
		return attrNone
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		fold[i] = c
	}
	switch string(fold[:len(name)]) {
	case "href":
		return attrHref
	case "xlink:href":
		return attrXLink
	case "src":
		return attrSrc
	case "srcset":
		return attrSrcset
	case "imagesrcset":
		return attrImageSrcset
	case "data-src":
		return attrDataSrc
	case "data-srcset":
		return attrDataSrcset
	case "rel":
		return attrRel
	case "type":
		return attrType
	case "content":
		return attrContent
	case "http-equiv":
		return attrHTTPEquiv
	case "name":
		return attrName
	case "charset":
		return attrCharset
	case "data":
		return attrData
	case "cite":
		return attrCite
	case "background":
		return attrBackground
	case "poster":
		return attrPoster
	case "lang":
		return attrLang
	case "title":
		return attrTitle
	case "style":
		return attrStyle
	case "encoding":
		return attrEncoding
	case "color", "face", "size":
		return attrColor
	case "shadowrootmode":
		return attrShadow
	}
	return attrNone
}

// attrs are the attributes of one tag that are ever read, as spans of its
// bytes. Of several attributes of one name the first counts (13.2.5.33).
type attrs struct {
	seen uint32 // bit per attrID
	self bool   // the tag ends in "/>"
	from [numAttrs]int
	to   [numAttrs]int
}

func (a *attrs) has(id attrID) bool { return a.seen>>id&1 != 0 }

func (a *attrs) keepAttr(name []byte, from, to int) {
	id := attrOf(name)
	if id == attrNone || a.seen>>id&1 != 0 {
		return
	}
	a.seen |= 1 << id
	a.from[id], a.to[id] = from, to
}

// parse reads the attributes of the tag that b starts with, from i, the end of
// its name, and returns where the tag ends; -1 when b ends first. An attribute
// that does not end before max is not kept. Where x is mapped, b starts at off of
// the chunk that they are of.
func (a *attrs) parse(b []byte, i, max int, x *bitmap, off int) int {
	a.seen, a.self = 0, false
	for {
		if n := a.quick(b, i, max, x, off); n != i {
			if n < 0 {
				return -1
			}
			i = n
			continue
		}
		for i < len(b) && (charset.IsSpace(b[i]) || b[i] == '/') {
			i++
		}
		if i == len(b) {
			return -1
		}
		if b[i] == '>' {
			a.self = b[i-1] == '/'
			return i + 1
		}
		name := i
		for i++; i < len(b) && !endsName(b[i]) && b[i] != '='; i++ {
		}
		end := i
		for i < len(b) && charset.IsSpace(b[i]) {
			i++
		}
		if i == len(b) {
			return -1
		}
		if b[i] != '=' {
			if i < max {
				a.keepAttr(b[name:end], end, end)
			}
			continue
		}
		from, to, after := value(b, i+1)
		if after < 0 {
			return -1
		}
		if after < max {
			a.keepAttr(b[name:end], from, to)
		}
		if i = after; to == after && b[i] == '>' { // an unquoted value's slash closes nothing
			return i + 1
		}
	}
}

// quick reads an attribute of the plain form at i, a space, a name, '=' and a
// quoted value, and returns where it ends: i when it is not of that form, -1
// when b ends first.
func (a *attrs) quick(b []byte, i, max int, x *bitmap, off int) int {
	if i+24 > len(b) || b[i] != ' ' {
		return i
	}
	w := load(b, i+1)
	from, id := i+len(` class="`), attrNone
	switch {
	case w<<8 == classIs<<8: // of anchors, most are these two
	case w<<16 == hrefIs<<16:
		from, id = i+len(` href="`), attrHref
	default:
		stop := endOfAttr(w)
		n := first(stop)
		if stop == 0 || n == 0 || b[i+1+n] != '=' {
			return i
		}
		from = i + n + 3
		if quote := b[from-1]; quote != '"' && quote != '\'' {
			return i
		}
		id = shortAttr((w | ones*0x20) & (1<<(8*n&63) - 1))
	}
	to := from
	if n := x.quote(off + from); n >= 0 && b[from-1] == '"' {
		to += n
	} else if to = next(b, from, b[from-1]); to < 0 {
		return -1
	}
	if to+1 < max && id != attrNone && a.seen>>id&1 == 0 {
		a.seen |= 1 << id
		a.from[id], a.to[id] = from, to
	}
	return to + 1
}

// How the attributes begin that most tags have, as load has it.
const (
	classIs = 'c' | 'l'<<8 | 'a'<<16 | 's'<<24 | 's'<<32 | '='<<40 | '"'<<48
	hrefIs  = 'h' | 'r'<<8 | 'e'<<16 | 'f'<<24 | '='<<32 | '"'<<40
)

// endOfAttr marks the byte of w that ends a plain attribute's name, or the one at which it
// is no plain name.
func endOfAttr(w uint64) uint64 {
	return equal(w|ones*3, '?') | below(w, '0') // '?' of '<', '=', '>' and '?'
}

// shortAttr recognizes the name of an attribute of up to seven bytes by its key.
func shortAttr(key uint64) attrID {
	const (
		href, src, rel, typ = 'h' | 'r'<<8 | 'e'<<16 | 'f'<<24, 's' | 'r'<<8 | 'c'<<16, 'r' | 'e'<<8 | 'l'<<16, 't' | 'y'<<8 | 'p'<<16 | 'e'<<24
		class, id, title    = 'c' | 'l'<<8 | 'a'<<16 | 's'<<24 | 's'<<32, 'i' | 'd'<<8, 't' | 'i'<<8 | 't'<<16 | 'l'<<24 | 'e'<<32
	)
	switch key {
	case class, id:
		return attrNone
	case href:
		return attrHref
	case rel:
		return attrRel
	case src:
		return attrSrc
	case typ:
		return attrType
	case title:
		return attrTitle
	}
	var name [8]byte
	binary.LittleEndian.PutUint64(name[:], key)
	return attrOf(name[:(bits.Len64(key)+7)/8])
}

func endsName(c byte) bool { return c == '>' || c == '/' || charset.IsSpace(c) }

// value reads an attribute's value that starts at or after i: its span and
// where reading goes on, -1 when b ends first.
func value(b []byte, i int) (from, to, end int) {
	for i < len(b) && charset.IsSpace(b[i]) {
		i++
	}
	if i == len(b) {
		return 0, 0, -1
	}
	switch c := b[i]; c {
	case '"', '\'':
		n := next(b, i+1, c)
		if n < 0 {
			return 0, 0, -1
		}
		return i + 1, n, n + 1
	}
	for j := i; j < len(b); j++ {
		if c := b[j]; c == '>' || charset.IsSpace(c) {
			return i, j, j
		}
	}
	return 0, 0, -1
}

// srcset takes the next candidate's URL off a srcset attribute (HTML,
// 4.8.4.2.3 "parse a srcset attribute"); nil when there is none. Candidates
// with descriptors that mean nothing are passed over, as the standard has it.
func srcset(b []byte) (url, rest []byte) {
	for {
		for len(b) > 0 && (charset.IsSpace(b[0]) || b[0] == ',') {
			b = b[1:]
		}
		if len(b) == 0 {
			return nil, nil
		}
		n := 0
		for n < len(b) && !charset.IsSpace(b[n]) {
			n++
		}
		url, b = b[:n], b[n:]
		if url[n-1] == ',' { // no descriptors
			return bytes.TrimRight(url, ","), b
		}
		var ok bool
		if b, ok = skipDescriptors(b); ok {
			return url, b
		}
	}
}

// skipDescriptors reads a candidate's descriptors up to the comma that ends
// it, and reports whether they are valid.
func skipDescriptors(b []byte) (rest []byte, ok bool) {
	var d descriptors
	start, parens := 0, false
	for i := 0; ; i++ {
		switch {
		case i == len(b):
			d.addDescriptor(b[start:])
			return nil, d.valid()
		case parens:
			parens = b[i] != ')'
		case b[i] == '(':
			parens = true
		case b[i] == ',':
			d.addDescriptor(b[start:i])
			return b[i+1:], d.valid()
		case charset.IsSpace(b[i]):
			d.addDescriptor(b[start:i])
			start = i + 1
		}
	}
}

// descriptors are those of one candidate.
type descriptors struct {
	width, density, height, bad bool
}

func (d *descriptors) addDescriptor(b []byte) {
	if len(b) == 0 {
		return
	}
	val, unit := b[:len(b)-1], b[len(b)-1]
	switch {
	case unit == 'w' && isPositive(val) && !d.width && !d.density:
		d.width = true
	case unit == 'h' && isPositive(val) && !d.height && !d.density:
		d.height = true
	case unit == 'x' && isFloat(val) && !d.width && !d.density && !d.height:
		d.density = true
	default:
		d.bad = true
	}
}

func (d *descriptors) valid() bool { return !d.bad && (!d.height || d.width) }

func isPositive(b []byte) bool {
	zero := true
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
		zero = zero && c == '0'
	}
	return !zero
}

// isFloat reports whether b is a valid floating-point number of at least 0 (HTML,
// 2.3.4.3).
func isFloat(b []byte) bool {
	if len(b) == 0 || len(b) > 64 || b[0] == '+' || b[len(b)-1] == '.' {
		return false
	}
	for _, c := range b {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c|0x20 != 'e' {
			return false
		}
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return err == nil && v >= 0
}

// refresh takes the URL out of a refresh directive (HTML, 4.2.5.3 "shared
// declarative refresh steps"); false when it names none.
func refresh(b []byte) ([]byte, bool) {
	b = trimLeft(b)
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	if n == 0 && (len(b) == 0 || b[0] != '.') {
		return nil, false
	}
	for n < len(b) && (b[n] >= '0' && b[n] <= '9' || b[n] == '.') {
		n++
	}
	if b = b[n:]; len(b) == 0 || b[0] != ';' && b[0] != ',' && !charset.IsSpace(b[0]) {
		return nil, false
	}
	b = trimLeft(b)
	if len(b) > 0 && (b[0] == ';' || b[0] == ',') {
		b = trimLeft(b[1:])
	}
	if len(b) == 0 {
		return nil, false
	}
	if len(b) >= 3 && charset.EqualFold(b[:3], "url") {
		if rest := trimLeft(b[3:]); len(rest) > 0 && rest[0] == '=' {
			b = trimLeft(rest[1:])
		} else {
			return b, true // "url" is how the URL itself starts
		}
	}
	if len(b) > 0 && (b[0] == '"' || b[0] == '\'') {
		q := b[0]
		b = b[1:]
		if i := bytes.IndexByte(b, q); i >= 0 {
			b = b[:i]
		}
	}
	return b, len(b) > 0
}

func trimLeft(b []byte) []byte {
	for len(b) > 0 && charset.IsSpace(b[0]) {
		b = b[1:]
	}
	return b
}
