package extract

// listStart opens an element of a listing.
func (c *collector) listStart(tag listTag, a *listAttrs) {
	l := &c.list
	parent := listOther
	if n := len(l.path); n > 0 {
		parent = l.path[n-1]
	}
	if l.over > 0 || len(l.path) == maxPath {
		l.over++
		return
	}
	l.takeDirect(parent)
	l.path = append(l.path, tag)
	l.text, l.want = l.text[:0], tag != listOther
	switch tag {
	case listURL, listSitemap, listItemTag:
		l.item.reset()
	case listLink:
		c.listLink(parent, a)
	case listEnclosure:
		if a.url != nil {
			c.sendList(Enclosure, c.dec.text(a.url), a.typ)
		}
	case listLoc:
		if len(l.item.loc) > 0 && !l.item.sent { // a second location in one url
			c.listItem(itemKind(parent))
			l.item.reset()
		}
	}
}

// listLink takes a link that is an attribute: xhtml:link of a sitemap, link of Atom.
func (c *collector) listLink(parent listTag, a *listAttrs) {
	if a.href == nil {
		return
	}
	href := c.dec.text(a.href)
	r := rels(a.rel)
	switch {
	case parent == listURL:
		c.sendList(Alternate, href, a.typ)
	case parent == listItemTag && equalFold(a.rel, "enclosure"):
		c.sendList(Enclosure, href, a.typ)
	case len(a.rel) > 0 && r&relAlternate == 0:
		if parent == listChannel && r&(relNext|relPrev) != 0 {
			c.sendList(r.kind(nil), href, a.typ)
		}
	case parent == listItemTag:
		c.sendList(Entry, href, a.typ)
		c.list.item.sent = true
	case parent == listChannel:
		c.sendList(Home, href, a.typ)
	}
}

// listEnd closes an element of a listing, and those inside it that were not.
func (c *collector) listEnd(tag listTag) {
	l := &c.list
	if l.over > 0 {
		l.over--
		return
	}
	i := len(l.path) - 1
	for i >= 0 && l.path[i] != tag && tag != listOther {
		i--
	}
	if i < 0 || l.path[i] != tag { // closes nothing that is open
		return
	}
	l.path = l.path[:i]
	parent := listOther
	if i > 0 {
		parent = l.path[i-1]
	}
	c.listValue(tag, parent)
	l.text, l.want = l.text[:0], parent == listSitemap || parent == listURL
}

// listValue takes the text of the element that ends.
func (c *collector) listValue(tag, parent listTag) {
	l := &c.list
	text := trim(l.text)
	switch tag {
	case listLoc:
		if parent == listURL || parent == listSitemap || len(l.item.loc) == 0 {
			l.item.loc = append(l.item.loc[:0], text...)
		}
		if parent != listURL && parent != listSitemap { // no url around it
			c.listItem(Loc)
			l.item.reset()
		}
	case listLastMod, listDate:
		l.item.date = append(l.item.date[:0], text...)
	case listPriority:
		l.item.priority = priority(text)
	case listGUID:
		l.item.guid = append(l.item.guid[:0], text...)
	case listLink:
		switch {
		case len(text) == 0:
		case parent == listItemTag:
			l.item.loc = append(l.item.loc[:0], text...)
		case parent == listChannel:
			c.sendList(Home, text, nil)
		}
	case listURL, listSitemap, listItemTag:
		l.takeDirect(tag)
		if tag == listItemTag && len(l.item.loc) == 0 && isWeb(l.item.guid) {
			l.item.loc = append(l.item.loc[:0], l.item.guid...)
		}
		c.listItem(itemKind(tag))
		l.item.reset()
	}
}

// takeDirect keeps text that stands in a url or sitemap element itself: some
// leave the loc out.
func (l *listing) takeDirect(parent listTag) {
	if parent != listURL && parent != listSitemap || len(l.item.loc) > 0 {
		return
	}
	if t := trim(l.text); isWeb(t) {
		l.item.loc = append(l.item.loc[:0], t...)
	}
}

func itemKind(tag listTag) Kind {
	switch tag {
	case listSitemap:
		return Index
	case listItemTag:
		return Entry
	}
	return Loc
}

// listItem hands on the location of the item that was read.
func (c *collector) listItem(k Kind) {
	i := &c.list.item
	if len(i.loc) == 0 || i.sent {
		return
	}
	i.sent = true
	c.link = Link{Priority: i.priority}
	if len(i.date) > 0 {
		c.link.LastMod = i.date
	}
	c.sendCounted(k, i.loc)
}

func (c *collector) sendList(k Kind, raw, typ []byte) {
	c.link = Link{Type: typ, Priority: -1}
	c.sendCounted(k, raw)
	c.dec.release()
}

// sendCounted hands on a location, MaxLocs of them.
func (c *collector) sendCounted(k Kind, raw []byte) {
	if c.list.locs >= c.cfg.MaxLocs {
		c.listFull()
		return
	}
	c.list.locs++
	c.send(k, trim(raw))
}

// listText takes text, entities decoded unless it is CDATA.
func (c *collector) listText(b []byte, cdata bool) {
	l := &c.list
	if !l.want || l.over > 0 || len(l.text) > maxLoc {
		return
	}
	if cdata {
		b = c.dec.utf8(b)
	} else {
		b = c.dec.text(b)
	}
	l.text = append(l.text, b[:min(len(b), maxLoc+1-len(l.text))]...)
	c.dec.release()
}

// maxLoc bounds a location; the protocol allows 2,048 bytes.
const maxLoc = 8 << 10

// isWeb tells whether b starts like an address of the web.
func isWeb(b []byte) bool {
	return len(b) > 8 && (equalFold(b[:7], "http://") || equalFold(b[:8], "https://"))
}

// lines reads a text sitemap: one address a line.
func (c *collector) linesWrite(b []byte) {
	l := &c.list
	for _, ch := range b {
		if l.bytes++; l.bytes > c.cfg.MaxBytes {
			c.listFull()
		}
		if l.full {
			return
		}
		if ch != '\n' && ch != '\r' {
			if len(l.text) <= maxLoc {
				l.text = append(l.text, ch)
			}
			continue
		}
		c.line()
	}
}

// line hands on the line that was read.
func (c *collector) line() {
	t := trim(c.list.text)
	if len(t) > maxLoc {
		c.facts.Cut++
	} else if isWeb(t) {
		c.sendList(Loc, c.dec.utf8(t), nil)
	}
	c.list.text = c.list.text[:0]
}
