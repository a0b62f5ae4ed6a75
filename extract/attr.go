package extract

import (
	"encoding/binary"
	"math/bits"
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
	attrColor // color, face and size: a font that leaves foreign content
	numAttrs
)

// attrOf recognizes an attribute's name.
func attrOf(name []byte) attrID {
	var fold [12]byte
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

func (a *attrs) put(name []byte, from, to int) {
	id := attrOf(name)
	if id == attrNone || a.seen>>id&1 != 0 {
		return
	}
	a.seen |= 1 << id
	a.from[id], a.to[id] = from, to
}

// parse reads the attributes of the tag that b starts with, from i, the end of
// its name, and returns where the tag ends; -1 when b ends first. An attribute
// that does not end before max is not kept.
func (a *attrs) parse(b []byte, i, max int) int {
	a.seen, a.self = 0, false
	for {
		if n := a.quick(b, i, max); n != i {
			if n < 0 {
				return -1
			}
			i = n
			continue
		}
		for i < len(b) && (isSpace(b[i]) || b[i] == '/') {
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
		for i < len(b) && isSpace(b[i]) {
			i++
		}
		if i == len(b) {
			return -1
		}
		if b[i] != '=' {
			if i < max {
				a.put(b[name:end], end, end)
			}
			continue
		}
		from, to, after := value(b, i+1)
		if after < 0 {
			return -1
		}
		if after < max {
			a.put(b[name:end], from, to)
		}
		if i = after; to == after && b[i] == '>' { // an unquoted value's slash closes nothing
			return i + 1
		}
	}
}

// quick reads an attribute of the plain form at i, a space, a name, '=' and a
// quoted value, and returns where it ends: i when it is not of that form, -1
// when b ends first.
func (a *attrs) quick(b []byte, i, max int) int {
	if i+24 > len(b) || b[i] != ' ' {
		return i
	}
	w := load(b, i+1)
	stop := equal(w, '=') | equal(w, '>') | below(w, '0')
	n := first(stop)
	if stop == 0 || n == 0 || b[i+1+n] != '=' {
		return i
	}
	from := i + n + 3
	quote := b[from-1]
	if quote != '"' && quote != '\'' {
		return i
	}
	to := next(b, from, quote)
	if to < 0 {
		return -1
	}
	if to+1 < max {
		if id := shortAttr((w | ones*0x20) & (1<<(8*n&63) - 1)); id != attrNone && a.seen>>id&1 == 0 {
			a.seen |= 1 << id
			a.from[id], a.to[id] = from, to
		}
	}
	return to + 1
}

// shortAttr recognizes the name of an attribute of up to seven bytes by its key.
func shortAttr(key uint64) attrID {
	const (
		href, src, rel, typ = 'h' | 'r'<<8 | 'e'<<16 | 'f'<<24, 's' | 'r'<<8 | 'c'<<16, 'r' | 'e'<<8 | 'l'<<16, 't' | 'y'<<8 | 'p'<<16 | 'e'<<24
		class, id           = 'c' | 'l'<<8 | 'a'<<16 | 's'<<24 | 's'<<32, 'i' | 'd'<<8
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
	}
	var name [8]byte
	binary.LittleEndian.PutUint64(name[:], key)
	return attrOf(name[:(bits.Len64(key)+7)/8])
}

func endsName(c byte) bool { return c == '>' || c == '/' || isSpace(c) }

// value reads an attribute's value that starts at or after i: its span and
// where reading goes on, -1 when b ends first.
func value(b []byte, i int) (from, to, end int) {
	for i < len(b) && isSpace(b[i]) {
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
		if c := b[j]; c == '>' || isSpace(c) {
			return i, j, j
		}
	}
	return 0, 0, -1
}
