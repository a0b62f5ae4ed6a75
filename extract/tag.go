package extract

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"seine/extract/charset"
)

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
	if m.xhtml {
		m.local(&t)
	}
	if e := m.names.find(t.key); e != nil {
		t.element = *e
	}
	end := -1
	switch {
	case !start:
		end = skipTag(b, i)
	case t.flags&(flagLook|flagRule) != 0 || len(m.stack) > 0 || m.cfg.Kinds.Has(CSS) || m.xhtml:
		end = m.attrs.parse(b, i, m.cfg.MaxTag, &noBitmap, 0)
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
	if m.xhtml && start {
		m.bind(&t, b[i:min(end, len(b))])
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
		if m.template == 0 {
			m.out.foreignLinks(m, t)
		}
		return
	}
	m.htmlStart(t)
	if t.flags&flagRule != 0 && !(m.xhtml && (m.attrs.self || holdsElements(t.el))) {
		m.rule(t)
	}
	if m.cfg.wantsText() && t.flags&flagInline == 0 {
		m.out.space()
	}
	switch {
	case m.attrs.seen == 0 || m.template > 0:
	case t.el == tagSVG || t.el == tagMath:
		m.out.foreignLinks(m, t)
	default:
		m.out.links(m, t)
	}
}

// local leaves out a prefix that is bound to a namespace whose elements are known.
func (m *markup) local(t *tag) {
	prefix, name, ok := bytes.Cut(t.name, []byte{':'})
	if ok && slices.ContainsFunc(m.prefixes, func(p []byte) bool { return bytes.Equal(p, prefix) }) {
		t.key = nameKey(name)
	}
}

// maxPrefixes bounds those of a document.
const maxPrefixes = 16

// bind takes the prefixes that the attributes of a tag bind, for the rest of the
// document. The tag itself may have one of them.
func (m *markup) bind(t *tag, attrs []byte) {
	for {
		i := bytes.Index(attrs, []byte("xmlns:"))
		if i < 0 || len(m.prefixes) == maxPrefixes {
			break
		}
		attrs = attrs[i+len("xmlns:"):]
		prefix, value, ok := bytes.Cut(attrs, []byte{'='})
		value = bytes.TrimLeft(value, " \t\r\n")
		if !ok || len(value) == 0 {
			break
		}
		namespace, _, _ := bytes.Cut(value[1:], value[:1])
		switch string(namespace) {
		case xhtmlNamespace, "http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML":
			m.prefixes = append(m.prefixes, bytes.Clone(bytes.TrimRight(prefix, " \t\r\n")))
		}
	}
	if m.local(t); m.names.find(t.key) != nil {
		t.element = *m.names.find(t.key)
	}
}

const xhtmlNamespace = "http://www.w3.org/1999/xhtml"

// holdsElements reports whether an element that holds raw text in HTML holds elements in
// XML.
func holdsElements(el tagID) bool {
	return el == tagTextarea || el == tagIFrame || el == tagRaw || el == tagPlaintext
}

// rule changes how the rest is read.
func (m *markup) rule(t *tag) {
	switch t.el {
	case tagTemplate:
		if m.template == 0 && !m.xhtml && m.isShadow(t) {
			m.shadow++
			return
		}
		m.template++
		m.updateQuiet()
	case tagPlaintext:
		m.mode = inPlain
	case tagTitle, tagTextarea, tagStyle, tagScript, tagIFrame, tagRaw:
		if len(t.name) <= maxRaw {
			m.enterRaw(t.name, t.el)
		}
	}
}

// isShadow reports whether a template is a declarative shadow root, whose content
// is shown (HTML, 13.2.6.4.4; in XHTML there are none). Whether the element that it stands in may have
// one, and has none yet, only a tree would know.
func (m *markup) isShadow(t *tag) bool {
	mode := m.attrs.bytes(t.b, attrShadow)
	return charset.EqualFold(mode, "open") || charset.EqualFold(mode, "closed")
}

// end handles an end tag.
func (m *markup) end(t *tag) {
	if len(m.stack) > 0 {
		m.foreignEnd(t)
	}
	if m.cfg.wantsText() && t.flags&flagInline == 0 {
		m.out.space()
	}
	switch t.el {
	case tagTemplate:
		switch {
		case m.inForeign():
		case m.template > 0:
			m.template--
			m.updateQuiet()
		case m.shadow > 0:
			m.shadow--
		}
	}
}

// bytes is the value of an attribute of the tag b as written, nil when missing.
func (a *attrs) bytes(b []byte, id attrID) []byte {
	if !a.has(id) {
		return nil
	}
	return b[a.from[id]:a.to[id]]
}

// tables are the tables in use; a program wants few sets of kinds, and any number
// of scanners for each.
var tables sync.Map // of *names by Kinds

// namesOf returns the table of elements for the kinds of link that are wanted.
func namesOf(cfg *Config) *names {
	n, ok := tables.Load(cfg.Kinds)
	if !ok {
		n, _ = tables.LoadOrStore(cfg.Kinds, newNames(cfg))
	}
	return n.(*names)
}

// newNames builds the table of elements for the kinds of link that are wanted.
func newNames(cfg *Config) *names {
	n := &names{patterns: newPatterns()}
	addAll := func(list string, flags tagFlags) {
		for name := range strings.FieldsSeq(list) {
			n.addElement(name, tagOther, flags)
		}
	}
	addAll(`b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta
		nobr ol p pre ruby s small span strong strike sub sup table tt u ul var`, flagBreak)
	addAll(`address applet area article aside base basefont bgsound blockquote body br button caption center col colgroup
		dd details dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header
		hgroup hr html iframe img input keygen li link listing main marquee menu meta nav noembed noframes noscript object
		ol p param plaintext pre script search section select source style summary table tbody td template textarea tfoot
		th thead title tr track ul wbr xmp`, flagSpecial)
	addAll(`area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr`, flagVoid)
	addAll(`address applet article aside blockquote button center dd details dialog dir div dl dt fieldset figcaption figure
		footer form h1 h2 h3 h4 h5 h6 header hgroup li listing main marquee menu nav object ol p pre search section summary
		table tbody td template tfoot th thead tr ul body html`, flagBlock)
	addAll(`address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form
		h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search section summary table ul xmp`, flagCloseP)
	addAll(`a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q rp rt ruby s samp small span
		strike strong sub sup time tt u var wbr`, flagInline)
	n.addRules()
	n.addLinks(cfg)
	n.heat()
	return n
}

// addRules names the elements that change how the rest is read.
func (n *names) addRules() {
	for _, r := range []struct {
		names string
		el    tagID
	}{
		{"base", tagBase}, {"html", tagHTML}, {"iframe", tagIFrame}, {"math", tagMath}, {"meta", tagMeta},
		{"plaintext", tagPlaintext}, {"xmp noembed noframes", tagRaw}, {"script", tagScript}, {"style", tagStyle},
		{"svg", tagSVG}, {"template", tagTemplate}, {"textarea", tagTextarea}, {"title", tagTitle}, {"link", tagLink},
		{"body", tagBody},
	} {
		for name := range strings.FieldsSeq(r.names) {
			n.addElement(name, r.el, flagRule)
		}
	}
	// Known by name, without a rule outside foreign content.
	for _, r := range []struct {
		names string
		el    tagID
	}{
		{"font", tagFont}, {"p", tagP}, {"annotation-xml", tagAnnotation}, {"foreignobject desc", tagHost},
		{"mi mo mn ms mtext", tagMathText}, {"mglyph malignmark", tagMathMark},
	} {
		for name := range strings.FieldsSeq(r.names) {
			n.addElement(name, r.el, 0)
		}
	}
}

// addLinks flags the elements whose attributes are worth a look.
func (n *names) addLinks(cfg *Config) {
	for _, r := range []struct {
		names string
		el    tagID
		kinds Kinds
	}{
		{"a", tagA, Of(Anchor)}, {"area", tagArea, Of(Area)}, {"audio", tagAudio, Of(Audio)},
		{"body", tagBody, Of(Background)}, {"table tbody thead tfoot tr td th", tagCell, Of(Background)},
		{"blockquote q ins del", tagCite, Of(Cite)}, {"embed", tagEmbed, Of(Embed)}, {"frame", tagFrame, Of(Frame)},
		{"iframe", tagIFrame, Of(IFrame)}, {"img image", tagImg, Of(Image, Srcset)}, {"input", tagInput, Of(Input)},
		{"object", tagObject, Of(Object)}, {"script", tagScript, Of(Script)}, {"source", tagSource, Of(Source, Srcset)},
		{"track", tagTrack, Of(Track)}, {"video", tagVideo, Of(Video)},
		// Facts and tree rules need the attributes of these whatever the kinds.
		{"base", tagBase, All}, {"html", tagHTML, All}, {"link", tagLink, All}, {"meta", tagMeta, All},
	} {
		if cfg.Kinds&r.kinds == 0 {
			continue
		}
		for name := range strings.FieldsSeq(r.names) {
			n.addElement(name, r.el, flagLook)
		}
	}
}

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
	flagBreak                        // ends foreign content (13.2.6.5)
	flagSpecial                      // "special" category (13.2.4.2)
	flagBlock                        // its end tag closes what is open inside it
	flagCloseP                       // its start tag closes an open p
	flagInline                       // separates no words of visible text
)

// names is an open-addressed table of elements. Which of them are worth a look
// depends on the kinds of link wanted. Once made it is only read.
type names struct {
	slots [512]element
	hot   [1 << hotBits]uint64 // keys of those that must not be skipped, without collisions

	patterns patterns // that find those
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

func (n *names) addElement(name string, el tagID, flags tagFlags) {
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
	if flags&(flagLook|flagRule) != 0 {
		n.patterns.addName(name)
	}
}

// Bytes that end a tag's name, and eight of them at a time.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

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
