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
	direct          []byte // text that stands in the element itself
	priority        float32
	sent            bool
}

func (i *listItem) reset() {
	*i = listItem{loc: i.loc[:0], guid: i.guid[:0], date: i.date[:0], direct: i.direct[:0], priority: -1}
}

func (l *listing) reset(max int) {
	l.win.reset(max)
	l.path, l.over, l.want, l.locs, l.bytes, l.full = l.path[:0], 0, false, 0, 0, false
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
