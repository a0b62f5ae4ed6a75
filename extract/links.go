package extract

import "seine/extract/charset"

// links hands on what the attributes of an HTML tag hold.
func (c *collector) links(m *markup, t *tag) {
	c.dec.release()
	c.link.Rel, c.link.Type, c.link.NoFollow, c.link.LastMod, c.link.Priority = nil, nil, false, nil, -1
	if m.attrs.has(attrStyle) && c.cfg.Kinds.Has(CSS) {
		c.styleAttr(c.attr(m, t, attrStyle))
	}
	switch t.el {
	case tagA:
		c.anchor(m, t, Anchor)
	case tagArea:
		c.anchor(m, t, Area)
	case tagFrame:
		c.one(m, t, Frame, attrSrc)
	case tagIFrame:
		c.one(m, t, IFrame, attrSrc)
	case tagLink:
		c.linkElement(m, t)
	case tagMeta:
		c.meta(m, t)
	case tagBase:
		c.base(m, t)
	case tagHTML:
		if v := c.attr(m, t, attrLang); v != nil && c.facts.Lang == nil {
			c.facts.Lang = c.folded(v)
		}
	case tagBody, tagCell:
		c.one(m, t, Background, attrBackground)
	case tagCite:
		c.one(m, t, Cite, attrCite)
	case tagImg:
		c.one(m, t, Image, attrSrc)
		c.one(m, t, Image, attrDataSrc)
		c.candidates(m, t, attrSrcset)
		c.candidates(m, t, attrDataSrcset)
	case tagSource:
		c.one(m, t, Source, attrSrc)
		c.one(m, t, Source, attrDataSrc)
		c.candidates(m, t, attrSrcset)
		c.candidates(m, t, attrDataSrcset)
	case tagVideo:
		c.one(m, t, Video, attrSrc)
		c.one(m, t, Video, attrPoster)
	case tagAudio:
		c.one(m, t, Audio, attrSrc)
	case tagTrack:
		c.one(m, t, Track, attrSrc)
	case tagEmbed:
		c.one(m, t, Embed, attrSrc)
	case tagObject:
		c.one(m, t, Object, attrData)
	case tagScript:
		c.one(m, t, Script, attrSrc)
	case tagInput:
		if charset.EqualFold(m.attrs.bytes(t.b, attrType), "image") {
			c.one(m, t, Input, attrSrc)
		}
	}
}

// one hands on the link that is the whole of an attribute.
func (c *collector) one(m *markup, t *tag, k Kind, id attrID) {
	if m.attrs.has(id) && c.cfg.Kinds.Has(k) {
		c.send(k, c.attr(m, t, id))
	}
}

// anchor hands on the link of an a or area with its rel.
func (c *collector) anchor(m *markup, t *tag, k Kind) {
	if !m.attrs.has(attrHref) {
		return
	}
	if m.attrs.has(attrRel) {
		c.link.Rel = c.attr(m, t, attrRel)
		c.link.NoFollow = rels(c.link.Rel)&relNoFollow != 0
	}
	c.send(k, c.attr(m, t, attrHref))
}

// candidates hands on each image of a srcset.
func (c *collector) candidates(m *markup, t *tag, id attrID) {
	if !m.attrs.has(id) || !c.cfg.Kinds.Has(Srcset) {
		return
	}
	for v := c.attr(m, t, id); ; {
		var url []byte
		if url, v = srcset(v); url == nil {
			return
		}
		c.send(Srcset, url)
	}
}

// linkElement hands on a link element's links by its rel.
func (c *collector) linkElement(m *markup, t *tag) {
	c.link.Rel = c.attr(m, t, attrRel)
	r := rels(c.link.Rel)
	c.link.NoFollow = r&relNoFollow != 0
	c.link.Type = c.attr(m, t, attrType)
	if m.attrs.has(attrHref) {
		href := c.attr(m, t, attrHref)
		k := r.kind(c.link.Type)
		if r&relLicense != 0 {
			c.facts.Said.AddLicense(string(href), string(c.link.Type))
		}
		switch {
		case k == Canonical && c.facts.Canonical == nil:
			c.facts.Canonical = c.keep(href)
		case k == Feed && len(c.facts.Feeds) < maxFeeds:
			c.facts.Feeds = append(c.facts.Feeds, FeedLink{c.keep(href), c.keep(c.link.Type), c.keep(c.attr(m, t, attrTitle))})
		}
		c.send(k, href)
	}
	c.candidates(m, t, attrImageSrcset)
}

// base hands on the document's base address; the first one counts.
func (c *collector) base(m *markup, t *tag) {
	if c.based || !m.attrs.has(attrHref) {
		return
	}
	c.based = true
	c.facts.Base = c.keep(c.attr(m, t, attrHref))
	c.send(Base, c.facts.Base)
}

// meta takes what a meta element says: refresh, description, charset, and what is to be
// done with the page.
func (c *collector) meta(m *markup, t *tag) {
	if m.attrs.has(attrCharset) {
		c.declared(c.attr(m, t, attrCharset))
	}
	if !m.attrs.has(attrContent) {
		return
	}
	content := c.attr(m, t, attrContent)
	switch equiv := c.attr(m, t, attrHTTPEquiv); {
	case charset.EqualFold(equiv, "refresh"):
		if url, ok := refresh(content); ok {
			c.send(Refresh, url)
		}
	case charset.EqualFold(equiv, "content-type"):
		c.declared(charset.Meta(content))
	}
	name := trim(c.attr(m, t, attrName))
	if charset.EqualFold(name, "description") && c.facts.Description == nil {
		c.facts.Description = c.folded(content)
	}
	c.facts.Said.AddMeta(name, content, c.cfg.Robots)
}

// declared takes a charset that a meta element names. One that stands too far
// down for the first look counts from there on (HTML, 13.2.3.4 "changing the
// encoding while parsing" would reread the page).
func (c *collector) declared(label []byte) {
	if c.facts.Declared != "" || len(label) == 0 || len(label) > 64 {
		return
	}
	_, name := charset.Lookup(string(label))
	if name == "" {
		return
	}
	c.facts.Declared = name
	if c.facts.CharsetBy > charset.ByDetector {
		return
	}
	name = charset.Inside(name)
	switch enc, _ := charset.Lookup(name); name {
	case "utf-8":
		c.dec.Use(nil, false)
	case "iso-2022-jp", "replacement": // too late
		return
	default:
		c.dec.Use(enc, false)
	}
	c.facts.Charset, c.facts.CharsetBy = name, charset.ByMeta
}

// foreignLinks hands on the links of an svg or math element.
func (c *collector) foreignLinks(m *markup, t *tag) {
	c.dec.release()
	c.link.Rel, c.link.Type, c.link.NoFollow, c.link.LastMod, c.link.Priority = nil, nil, false, nil, -1
	if m.attrs.has(attrStyle) && c.cfg.Kinds.Has(CSS) {
		c.styleAttr(c.attr(m, t, attrStyle))
	}
	k := SVG
	if t.el == tagA {
		k = Anchor
		c.link.Rel = c.attr(m, t, attrRel)
		c.link.NoFollow = rels(c.link.Rel)&relNoFollow != 0
	}
	c.one(m, t, k, attrHref)
	if !m.attrs.has(attrHref) || string(m.attrs.bytes(t.b, attrHref)) != string(m.attrs.bytes(t.b, attrXLink)) {
		c.one(m, t, k, attrXLink)
	}
}
