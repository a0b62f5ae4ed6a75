package extract

import (
	"bytes"
	"strconv"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/xml"
)

// listing reads sitemaps (sitemaps.org), sitemap indexes, RSS and Atom. It goes
// by local names, whatever the namespace says, and by the element that a
// location stands in.
type listing struct {
	win   window
	path  []listTag // open elements
	over  int       // open elements deeper than path goes
	item  listItem
	text  []byte // of the element that is being read
	want  bool   // text is wanted
	locs  int    // handed on
	bytes int64
	full  bool // a bound was reached
}

// maxPath bounds the depth that is followed.
const maxPath = 64

// listTag names the elements that mean something.
type listTag uint8

const (
	listOther listTag = iota
	listURL           // url
	listSitemap
	listLoc
	listLastMod
	listPriority
	listItemTag // item of RSS, entry of Atom
	listChannel // channel of RSS, feed of Atom
	listLink
	listGUID
	listDate
	listEnclosure
)

// listTagOf recognizes an element by its local name. Those that sitemaps borrow
// from elsewhere for images, videos and news mean nothing here.
func listTagOf(name []byte) (tag listTag) {
	if i := bytes.IndexByte(name, ':'); i >= 0 {
		if p := name[:i]; equalFold(p, "image") || equalFold(p, "video") || equalFold(p, "news") {
			return listOther
		}
		name = name[i+1:]
	}
	var fold [10]byte
	if len(name) > len(fold) {
		return listOther
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		fold[i] = c
	}
	switch string(fold[:len(name)]) {
	case "url":
		tag = listURL
	case "sitemap":
		tag = listSitemap
	case "loc":
		tag = listLoc
	case "lastmod":
		tag = listLastMod
	case "priority":
		tag = listPriority
	case "item", "entry":
		tag = listItemTag
	case "channel", "feed":
		tag = listChannel
	case "link":
		tag = listLink
	case "guid":
		tag = listGUID
	case "pubdate", "updated", "published", "modified", "date":
		tag = listDate
	case "enclosure":
		tag = listEnclosure
	}
	return tag
}

// listItem is the url, sitemap, item or entry that is being read.
type listItem struct {
	loc, guid, date []byte
	priority        float32
	sent            bool
}

func (i *listItem) reset() {
	*i = listItem{loc: i.loc[:0], guid: i.guid[:0], date: i.date[:0], priority: -1}
}

func (l *listing) reset(max int) {
	l.win.reset(max)
	l.path, l.text, l.over, l.want, l.locs, l.bytes, l.full = l.path[:0], l.text[:0], 0, false, 0, 0, false
	l.item.reset()
}

// xmlOver names what ends a token of a sitemap too long to keep.
func xmlOver(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("<!--")):
		return "-->"
	case bytes.HasPrefix(b, []byte("<![CDATA[")):
		return "]]>"
	}
	return ">"
}

func (c *collector) listWrite(b []byte) {
	l := &c.list
	if l.full {
		return
	}
	if l.bytes += int64(len(b)); l.bytes > c.cfg.MaxBytes {
		b = b[:int64(len(b))-(l.bytes-c.cfg.MaxBytes)]
		l.win.write(b, c.lexList, xmlOver)
		l.win.close(c.lexList)
		c.listFull()
		return
	}
	l.win.write(b, c.lexList, xmlOver)
}

func (c *collector) listFull() { c.list.full, c.facts.Truncated = true, true }

// listClose ends a listing; one that was cut keeps what came before.
func (c *collector) listClose() {
	c.list.win.close(c.lexList)
	c.facts.Cut += c.list.win.cut
	if len(c.list.path) > 0 {
		c.facts.Truncated = true
	}
	kind := Loc
	for _, tag := range c.list.path {
		if tag == listSitemap || tag == listItemTag {
			kind = itemKind(tag)
		}
	}
	c.listItem(kind)
}

// lexList takes tokens up to the last that is surely whole. Attributes count
// when their tag is.
func (c *collector) lexList(b []byte, final bool) int {
	done, at := 0, 0
	tag := listTag(0)
	var a listAttrs
	in := parse.NewInputBytes(b)
	defer in.Restore()
	for lex := xml.NewLexer(in); !c.list.full; {
		tt, data := lex.Next()
		at = in.Offset()
		switch tt {
		case xml.ErrorToken:
			return done
		case xml.StartTagToken:
			tag = listTagOf(lex.Text())
			a = listAttrs{}
			continue
		case xml.StartTagPIToken, xml.AttributeToken:
			a.put(lex.Text(), lex.AttrVal())
			continue
		}
		if at == len(b) && !final && !closed(tt, data) && !(tt == xml.TextToken && len(data) > maxLoc) {
			return done
		}
		switch tt {
		case xml.StartTagCloseToken:
			c.listStart(tag, &a)
		case xml.StartTagCloseVoidToken:
			c.listStart(tag, &a)
			c.listEnd(tag)
		case xml.EndTagToken:
			if !final || closed(tt, data) {
				c.listEnd(listTagOf(trim(lex.Text())))
			}
		case xml.TextToken:
			c.listText(data, false)
		case xml.CDATAToken:
			c.listText(lex.Text(), true)
		}
		done = at
	}
	return len(b)
}

// closed tells whether a token that ends where the bytes do is whole.
func closed(tt xml.TokenType, b []byte) bool {
	switch tt {
	case xml.CommentToken:
		return len(b) >= 7 && bytes.HasSuffix(b, []byte("-->"))
	case xml.CDATAToken:
		return bytes.HasSuffix(b, []byte("]]>"))
	case xml.TextToken:
		return false
	}
	return b[len(b)-1] == '>'
}

// listAttrs are the attributes of one element that matter.
type listAttrs struct {
	href, rel, url, typ []byte
}

func (a *listAttrs) put(name, val []byte) {
	val = unquote(val)
	switch string(name) {
	case "href":
		a.href = val
	case "rel":
		a.rel = val
	case "url":
		a.url = val
	case "type":
		a.typ = val
	}
}

// priority reads a sitemap's priority, -1 when it is none.
func priority(b []byte) float32 {
	v, err := strconv.ParseFloat(string(trim(b)), 32)
	if err != nil || v < 0 || v > 1 {
		return -1
	}
	return float32(v)
}

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
