package extract

import (
	"bytes"
	"strconv"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/xml"

	"seine/extract/charset"
	"seine/frontier/canon"
)

// listing reads sitemaps and their indexes (sitemaps.org), RSS and Atom (RFC
// 4287). An element means something by its name, its namespace and the element
// that it stands in.
type listing struct {
	win     window
	grammar grammar
	names   scope
	path    []listNode // open elements
	over    int        // open elements deeper than path goes
	item    listItem
	text    []byte // of the element that is being read
	want    bool   // text is wanted
	locs    int    // pages and sitemaps passed on
	others  int    // other links passed on
	bytes   int64
	full    bool   // a bound was reached
	bases   []byte // xml:base attributes in force, resolved, the last one from base on
	base    int
}

// listNode is an open element, with how much of names and bases is older.
type listNode struct {
	tag                listTag
	bound, bases, base int
}

// maxPath bounds the depth that is followed.
const maxPath = 64

// listItem is the url, sitemap, item or entry that is being read.
type listItem struct {
	loc, typ, base []byte // its location, the type of that, the xml:base around it
	guid, date     []byte
	freq           []byte
	priority       float32
	noPermalink    bool // the guid is no address
	sent           bool
}

func (i *listItem) reset() {
	*i = listItem{loc: i.loc[:0], typ: i.typ[:0], base: i.base[:0], guid: i.guid[:0], date: i.date[:0], freq: i.freq[:0], priority: -1}
}

// locate takes the location of the item.
func (l *listing) locate(loc, typ []byte) {
	i := &l.item
	i.loc, i.typ, i.base = append(i.loc[:0], loc...), append(i.typ[:0], typ...), append(i.base[:0], l.bases[l.base:]...)
}

func (l *listing) reset(max int) {
	l.win.reset(max)
	l.grammar, l.names = noList, scope{bound: l.names.bound[:0]}
	l.path, l.text, l.over, l.want = l.path[:0], l.text[:0], 0, false
	l.locs, l.others, l.bytes, l.full = 0, 0, 0, false
	l.bases, l.base = l.bases[:0], 0
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
	for _, n := range c.list.path {
		if n.tag == listSitemap || n.tag == listItemTag {
			kind = itemKind(n.tag)
		}
	}
	c.listItem(kind)
}

// lexList takes tokens up to the last that is surely whole. Attributes count
// when their tag is.
func (c *collector) lexList(b []byte, final bool) int {
	done, at := 0, 0
	var name []byte
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
			name = lex.Text()
			a.listValues, a.n = listValues{}, 0
			continue
		case xml.StartTagPIToken, xml.AttributeToken:
			a.setAttr(lex.Text(), lex.AttrVal())
			continue
		}
		if at == len(b) && !final && !closed(tt, data) && !(tt == xml.TextToken && len(data) > maxLoc) {
			return done
		}
		switch tt {
		case xml.StartTagCloseToken:
			c.listStart(name, &a)
		case xml.StartTagCloseVoidToken:
			c.listStart(name, &a)
			c.listEnd(name)
		case xml.EndTagToken:
			if !final || closed(tt, data) {
				c.listEnd(trim(lex.Text()))
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

// closed reports whether a token that ends where the bytes do is whole.
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

// listAttrs are the attributes of one element that matter, as written.
type listAttrs struct {
	listValues
	bound [maxDeclared]struct{ prefix, uri []byte } // namespaces declared
	n     int                                       // how many of them
}

type listValues struct{ href, rel, url, typ, base, about, permalink []byte }

// maxDeclared bounds the namespaces that one element may declare.
const maxDeclared = 32

func (a *listAttrs) setAttr(name, val []byte) {
	val = unquote(val)
	switch string(name) {
	case "href":
		a.href = val
	case "rel": // its values have names as addresses too (RFC 4287, 4.2.7.2)
		a.rel = bytes.TrimPrefix(trim(val), []byte("http://www.iana.org/assignments/relation/"))
	case "url":
		a.url = val
	case "type":
		a.typ = val
	case "xml:base":
		a.base = val
	case "rdf:about":
		a.about = val
	case "isPermaLink":
		a.permalink = trim(val)
	default:
		prefix, ok := bytes.CutPrefix(name, []byte("xmlns"))
		if ok && (len(prefix) == 0 || prefix[0] == ':') && a.n < maxDeclared {
			a.bound[a.n].prefix, a.bound[a.n].uri = bytes.TrimPrefix(prefix, []byte{':'}), trim(val)
			a.n++
		}
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
func (c *collector) listStart(name []byte, a *listAttrs) {
	l := &c.list
	if l.over > 0 || len(l.path) == maxPath {
		l.over++
		return
	}
	parent := l.parent(len(l.path))
	l.keepDirectText(parent)
	node := listNode{bound: len(l.names.bound), bases: len(l.bases), base: l.base}
	for _, d := range a.bound[:a.n] {
		l.names.bind(d.prefix, d.uri)
	}
	if len(a.base) > 0 {
		c.listBase(c.dec.text(a.base))
	}
	node.tag = l.tagOf(name)
	l.path = append(l.path, node)
	l.text, l.want = l.text[:0], node.tag != listOther
	switch node.tag {
	case listURL, listSitemap, listItemTag:
		l.item.reset()
		if isWeb(a.about) { // the address of an item in RSS 1.0
			l.item.guid = append(l.item.guid, c.dec.text(a.about)...)
		}
	case listGUID:
		l.item.noPermalink = charset.EqualFold(a.permalink, "false")
	case listLink:
		c.listLink(parent, a)
	case listEnclosure:
		if parent == listItemTag && a.url != nil {
			c.sendList(Enclosure, c.dec.text(a.url), a.typ)
		}
	case listLoc:
		if len(l.item.loc) > 0 && !l.item.sent { // a second location in one url
			c.listItem(itemKind(parent))
			l.item.reset()
		}
	}
	c.dec.release()
}

// parent is what the element at n of the path stands in.
func (l *listing) parent(n int) listTag {
	if n == 0 {
		return listRoot
	}
	return l.path[n-1].tag
}

// listBase puts an xml:base attribute in force. One that is no address changes
// nothing.
func (c *collector) listBase(raw []byte) {
	if c.parse == nil {
		c.parse = canon.NewParser(canon.Config{})
	}
	l, outer := &c.list, c.docBase
	if in := l.bases[l.base:]; len(in) > 0 && c.parse.Parse(&c.outer, in) == nil {
		outer = &c.outer
	}
	if c.parse.Resolve(&c.inner, outer, raw, nil) == nil {
		l.base = len(l.bases)
		l.bases = append(l.bases, c.inner.Fetch()...)
	}
}

// listLink takes a link that is an attribute: xhtml:link of a sitemap, link of
// Atom, in RSS too. The first alternate of an entry is its location.
func (c *collector) listLink(parent listTag, a *listAttrs) {
	if a.href == nil {
		return
	}
	href := c.dec.text(a.href)
	r := rels(a.rel)
	alternate := len(a.rel) == 0 || r&relAlternate != 0
	switch {
	case parent == listURL:
		c.sendList(Alternate, href, a.typ)
	case parent == listItemTag && charset.EqualFold(a.rel, "enclosure"):
		c.sendList(Enclosure, href, a.typ)
	case parent == listItemTag && alternate:
		c.entry(href, a.typ)
	case parent == listChannel && alternate:
		c.sendList(Home, href, a.typ)
	case parent == listChannel && r&(relNext|relPrev) != 0:
		c.sendList(r.kind(nil), href, a.typ)
	}
}

// entry takes a location of the item; further ones are passed on at once.
func (c *collector) entry(loc, typ []byte) {
	if len(c.list.item.loc) > 0 {
		c.sendList(Entry, loc, typ)
		return
	}
	c.list.locate(loc, typ)
}

// listEnd closes an element of a listing, and those inside it that were not.
func (c *collector) listEnd(name []byte) {
	l := &c.list
	if l.over > 0 {
		l.over--
		return
	}
	tag := l.tagOf(name)
	i := len(l.path) - 1
	for i >= 0 && l.path[i].tag != tag && tag != listOther {
		i--
	}
	if i < 0 || l.path[i].tag != tag { // closes nothing that is open
		return
	}
	parent := l.parent(i)
	c.listValue(tag, parent)
	node := l.path[i]
	l.path, l.names.bound, l.bases, l.base = l.path[:i], l.names.bound[:node.bound], l.bases[:node.bases], node.base
	l.text, l.want = l.text[:0], parent == listSitemap || parent == listURL
}

// listValue takes the text of the element that ends.
func (c *collector) listValue(tag, parent listTag) {
	l := &c.list
	text := trim(l.text)
	inItem := parent == listURL || parent == listSitemap || parent == listItemTag
	switch tag {
	case listLoc:
		switch {
		case inItem:
			l.locate(text, nil)
		case parent == listRoot: // no url around it
			l.locate(text, nil)
			c.listItem(Loc)
			l.item.reset()
		}
	case listLastMod, listDate:
		if inItem {
			l.item.date = append(l.item.date[:0], text...)
		}
	case listChangeFreq:
		if inItem {
			l.item.freq = append(l.item.freq[:0], text...)
		}
	case listPriority:
		if inItem {
			l.item.priority = priority(text)
		}
	case listGUID:
		if inItem && !l.item.noPermalink {
			l.item.guid = append(l.item.guid[:0], text...)
		}
	case listLink:
		switch {
		case len(text) == 0:
		case parent == listItemTag:
			c.entry(text, nil)
		case parent == listChannel:
			c.sendList(Home, text, nil)
		}
	case listURL, listSitemap, listItemTag:
		l.keepDirectText(tag)
		if tag == listItemTag && len(l.item.loc) == 0 && isWeb(l.item.guid) {
			l.locate(l.item.guid, nil)
		}
		c.listItem(itemKind(tag))
		l.item.reset()
	}
}

// keepDirectText keeps text that stands in a url or sitemap element itself: some
// leave the loc out.
func (l *listing) keepDirectText(parent listTag) {
	if parent != listURL && parent != listSitemap || len(l.item.loc) > 0 {
		return
	}
	if t := trim(l.text); isWeb(t) {
		l.locate(t, nil)
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

// listItem passes on the location of the item that was read.
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
	if len(i.freq) > 0 {
		c.link.ChangeFreq = i.freq
	}
	if len(i.typ) > 0 {
		c.link.Type = i.typ
	}
	if len(i.base) > 0 {
		c.link.Base = i.base
	}
	c.sendCounted(k, i.loc)
}

func (c *collector) sendList(k Kind, raw, typ []byte) {
	c.link = Link{Type: typ, Priority: -1}
	if base := c.list.bases[c.list.base:]; len(base) > 0 {
		c.link.Base = base
	}
	c.sendCounted(k, raw)
}

// sendCounted passes on a location: MaxLocs pages and sitemaps, and as many other
// links.
func (c *collector) sendCounted(k Kind, raw []byte) {
	n := &c.list.others
	if Of(Loc, Index, Entry).Has(k) {
		n = &c.list.locs
	}
	if *n >= c.cfg.MaxLocs {
		c.facts.Truncated = true
		c.list.full = c.list.full || n == &c.list.locs
		return
	}
	*n++
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

// maxLoc bounds a location: the protocol allows 2,048 bytes, crawls allow more.
const maxLoc = canon.DefaultMaxLength

// isWeb reports whether b starts like an address of the web.
func isWeb(b []byte) bool {
	return len(b) > 8 && (charset.EqualFold(b[:7], "http://") || charset.EqualFold(b[:8], "https://"))
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

// line passes on the line that was read.
func (c *collector) line() {
	t := trim(c.list.text)
	if len(t) > maxLoc {
		c.facts.Cut++
	} else if isWeb(t) {
		c.sendList(Loc, c.dec.utf8(t), nil)
		c.dec.release()
	}
	c.list.text = c.list.text[:0]
}
