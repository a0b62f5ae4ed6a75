package extract

import (
	"bytes"
	"unicode/utf8"

	"seine/extract/charset"
	"seine/extract/simhash"
	"seine/frontier/canon"
)

// collector takes what the tokenizer finds: it decodes, keeps facts and passes
// links on.
type collector struct {
	cfg   *Config
	emit  func(*Link)
	met   func(raw []byte) bool // whether an anchor of this text, up to its fragment, repeats; nil: unknown
	dec   decoder
	facts Facts
	link  Link

	capture   tagID  // element whose raw text is kept
	titleText []byte // that text, as written
	titled    bool
	listed    bool   // anchors are locations: of Markdown that is read as a sitemap
	based     bool   // a base element with an address was met
	memory    []byte // of facts
	visible   []byte // text that is not decoded yet, as written
	gap       bool   // white space is due in it
	hasText   bool   // some text was met
	hash      simhash.Hash
	css       sheet
	list      listing
	attrBuf   []byte // a style attribute

	docBase      *canon.URL    // of the document
	parse        *canon.Parser // of xml:base attributes, nil before there is one
	outer, inner canon.URL

	headerCanonical string
}

func (c *collector) reset(emit func(*Link)) {
	c.emit = emit
	c.facts.reset()
	c.capture, c.titleText, c.titled, c.based, c.gap, c.headerCanonical = tagOther, c.titleText[:0], false, false, false, ""
	c.listed = false
	if cap(c.visible) > maxKeptText {
		c.visible = nil
	}
	c.memory, c.visible, c.hasText = c.memory[:0], c.visible[:0], false
	c.hash.Reset()
	c.css.reset(c.cfg.MaxTag)
	c.list.reset(c.cfg.MaxTag)
}

// keep copies b into memory that lives until the next document.
func (c *collector) keep(b []byte) []byte {
	from := len(c.memory)
	c.memory = append(c.memory, b...)
	return c.memory[from:len(c.memory):len(c.memory)]
}

// repeated reports whether the anchor whose text is b[from:to] was met before, as
// most are, without decoding it: false where it would have to be decoded.
func (c *collector) repeated(b []byte, from, to int) bool {
	if c.met == nil || c.listed {
		return false
	}
	for i := from; i+8 <= len(b); i += 8 {
		w := load(b, i)
		if stop := ((w - ones*('&'+1)) | w) & highs; stop != 0 { // up to '&', or beyond ASCII: the first one is right
			i += first(stop)
			return (i == to || i < to && b[i] == '#') && c.met(b[from:i])
		}
	}
	return false
}

// send passes a link on.
func (c *collector) send(k Kind, raw []byte) {
	if c.listed && k == Anchor {
		k = Loc
	}
	if !c.cfg.Kinds.Has(k) && k != Base {
		return
	}
	c.link.Kind, c.link.Raw = k, raw
	c.emit(&c.link)
}

// text takes text outside of tags.
func (c *collector) text(b []byte) {
	if c.cfg.wantsText() && len(b) > 0 && (c.cfg.SimHash || !c.facts.TextCut) {
		c.appendText(b)
	}
}

// space says that a tag separates words.
func (c *collector) space() { c.gap = true }

// beginRaw says that what follows is the raw text of an element.
func (c *collector) beginRaw(el tagID) {
	c.capture = tagOther
	switch {
	case el == tagTitle && !c.titled:
		c.titled = true
		c.capture, c.titleText = el, c.titleText[:0]
	case el == tagStyle && c.cfg.Kinds&Of(CSS, Import) != 0:
		c.capture = el
		c.link = Link{Priority: -1}
		c.css.reset(c.cfg.MaxTag)
	}
}

// raw takes a piece of raw text.
func (c *collector) raw(el tagID, b []byte) {
	if c.capture != el || el == tagOther {
		return
	}
	if el == tagStyle {
		c.sheetWrite(b)
		return
	}
	if room := 4*c.cfg.MaxTitle - len(c.titleText); room > 0 {
		c.titleText = append(c.titleText, b[:min(len(b), room)]...)
	}
}

// endRaw says that the raw text of an element is over.
func (c *collector) endRaw() {
	switch c.capture {
	case tagTitle:
		if len(c.titleText) >= 4*c.cfg.MaxTitle { // the bound may have cut a character
			c.titleText = charset.WholeRunes(c.titleText)
		}
		c.facts.Title = c.folded(c.dec.text(c.titleText))
	case tagStyle:
		c.sheetClose()
	}
	c.capture = tagOther
}

// folded keeps b with its white space folded, bounded by MaxTitle.
func (c *collector) folded(b []byte) []byte {
	from := len(c.memory)
	c.memory = fold(c.memory, b, c.cfg.MaxTitle)
	c.dec.release()
	return c.memory[from:len(c.memory):len(c.memory)]
}

// attr is an attribute's decoded value, nil when the tag has none of the name.
func (c *collector) attr(m *markup, t *tag, id attrID) []byte {
	if !m.attrs.has(id) {
		return nil
	}
	return c.dec.attribute(t.b[m.attrs.from[id]:m.attrs.to[id]])
}

// textPiece is how much text is decoded at once, about.
const textPiece = 32 << 10

// appendText adds to the visible text, white space folded. It is decoded in pieces.
func (c *collector) appendText(b []byte) {
	for _, ch := range b {
		switch {
		case charset.IsSpace(ch):
			c.gap = true
			continue
		case ch == 0:
			continue
		case c.gap:
			c.gap = false
			if len(c.visible) >= textPiece {
				c.decodeText()
			}
			if c.hasText {
				c.visible = append(c.visible, ' ')
			}
		case len(c.visible) >= longestWord:
			c.cutWord()
		}
		c.hasText = true
		c.visible = append(c.visible, ch)
	}
}

// longestWord is how much text may come without a space before it is cut.
const longestWord = 16 * textPiece

// cutWord decodes a text that no space parts: up to a byte below '0', which is no part
// of a longer character in any encoding, and of a reference only where that begins.
func (c *collector) cutWord() {
	end := len(charset.WholeRunes(c.visible))
	for i := len(c.visible) - 1; i > 0; i-- {
		if ch := c.visible[i]; ch < '0' && ch != '#' {
			end = i
			break
		}
	}
	rest := bytes.Clone(c.visible[end:])
	c.visible = c.visible[:end]
	c.decodeText()
	c.visible = append(c.visible, rest...)
}

// decodeText decodes the visible text that was met since it was called last.
func (c *collector) decodeText() {
	if len(c.visible) == 0 {
		return
	}
	text := c.dec.text(c.visible)
	if c.cfg.SimHash {
		c.hash.Write(text)
	}
	if f := &c.facts; c.cfg.Text && !f.TextCut {
		f.TextCut = len(f.Text)+len(text) > c.cfg.MaxText
		f.Text = append(f.Text, text[:min(len(text), c.cfg.MaxText-len(f.Text)+utf8.UTFMax)]...)
		if f.TextCut {
			f.Text = trimTo(f.Text, 0, c.cfg.MaxText)
		}
	}
	c.visible = c.visible[:0]
	c.dec.release()
}

// finishText ends the visible text.
func (c *collector) finishText() {
	c.decodeText()
	if c.cfg.SimHash {
		c.facts.SimHash = c.hash.Sum()
	}
}
