package extract

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// element is what the scanner knows of an element by its name.
type element struct {
	key   uint64 // nameKey
	el    tagID
	flags tagFlags
}

// tagID names the elements that have a rule of their own.
type tagID uint8

const (
	tagOther tagID = iota
	tagA
	tagArea
	tagAudio
	tagBase
	tagBody
	tagCell // what may bear a background, body aside
	tagCite // blockquote, q, ins, del
	tagEmbed
	tagFont
	tagFrame
	tagHead
	tagHTML
	tagIFrame
	tagImg
	tagInput
	tagLink
	tagMath
	tagMeta
	tagObject
	tagP
	tagPlaintext
	tagRaw // raw text without links: xmp, noembed, noframes
	tagScript
	tagSource
	tagStyle
	tagSVG
	tagTemplate
	tagTextarea
	tagTitle
	tagTrack
	tagVideo
	tagAnnotation // annotation-xml
	tagHost       // foreignObject and desc: svg's HTML integration points, title aside
	tagMathText   // mi, mo, mn, ms, mtext
	tagMathMark   // mglyph, malignmark: MathML even inside those
)

type tagFlags uint16

const (
	flagLook    tagFlags = 1 << iota // its attributes may hold what we look for
	flagRule                         // changes how what follows is tokenized, or the tree
	flagVoid                         // has no content
	flagHead                         // may stand in the head
	flagBreak                        // ends foreign content (13.2.6.5)
	flagSpecial                      // "special" category (13.2.4.2)
	flagBlock                        // its end tag closes what is open inside it
	flagCloseP                       // its start tag closes an open p
	flagInline                       // separates no words of visible text
)

// names is an open-addressed table of elements, one per Scanner because which
// of them are worth a look depends on the kinds of link wanted.
type names struct {
	slots [512]element
	hot   [1 << hotBits]uint64 // keys of those that must not be leapt over, without collisions
}

// hotBits and hotFactor spread the short names of all elements that may be hot
// over a table without two in one place; a test holds that.
const (
	hotBits   = 8
	hotFactor = 0x94d43eded5b48ad1
)

// heat fills the table of hot names.
func (n *names) heat() {
	for _, e := range n.slots {
		if e.flags&(flagLook|flagRule) != 0 && e.key < 1<<56 {
			n.hot[e.key*hotFactor>>(64-hotBits)] = e.key
		}
	}
}

// nameKey folds the case of an element's or attribute's name into 64 bits:
// itself up to 8 bytes, else a hash with the top bit set. Only the first 64
// bytes count.
func nameKey(name []byte) uint64 {
	if len(name) <= 8 {
		var k uint64
		for i, c := range name {
			k |= uint64(c|0x20) << (8 * i)
		}
		return k
	}
	h := uint64(14695981039346656037) // FNV-1a
	for _, c := range name[:min(len(name), 64)] {
		h = (h ^ uint64(c|0x20)) * 1099511628211
	}
	return h | 1<<63
}

func slotOf(key uint64) uint64 { return key * 0x9E3779B97F4A7C15 >> 55 }

// find returns the element of a key, nil for one that means nothing to us.
func (n *names) find(key uint64) *element {
	for i := slotOf(key); ; i++ {
		e := &n.slots[i%512]
		if e.key == key {
			return e
		}
		if e.key == 0 {
			return nil
		}
	}
}

func (n *names) add(name string, el tagID, flags tagFlags) {
	key := nameKey([]byte(name))
	i := slotOf(key)
	for n.slots[i%512].key != 0 && n.slots[i%512].key != key {
		i++
	}
	e := &n.slots[i%512]
	e.key, e.flags = key, e.flags|flags
	if el != tagOther {
		e.el = el
	}
}

// Bytes that end a tag's name, and eight of them at a time.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// zeroBytes marks the lowest zero byte of w exactly (higher marks may be false).
func zeroBytes(w uint64) uint64 { return (w - ones) &^ w & highs }

// below marks the lowest byte of w that is less than c.
func below(w uint64, c byte) uint64 { return (w - ones*uint64(c)) &^ w & highs }

func equal(w uint64, c byte) uint64 { return zeroBytes(w ^ ones*uint64(c)) }

func first(mask uint64) int { return bits.TrailingZeros64(mask) >> 3 }

func load(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i : i+8]) }

// next returns the offset of the first c in b from i on, -1 when there is
// none. Most are near, so eight bytes are looked at before the call that is
// faster from there on.
func next(b []byte, i int, c byte) int {
	if i+8 <= len(b) {
		if hit := equal(load(b, i), c); hit != 0 {
			return i + first(hit)
		}
		i += 8
	}
	if n := bytes.IndexByte(b[i:], c); n >= 0 {
		return i + n
	}
	return -1
}
