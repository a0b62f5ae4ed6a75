package fields

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"seine/extract/charset"
	"seine/frontier/canon"
)

// Page is a page as rules see it.
type Page struct {
	Tree    *html.Node
	MaxText int // bytes of the values of one rule, default 1 MB

	truncated bool       // a value was longer
	url       *canon.URL // of the document
	base      *canon.URL // what links on it are resolved with

	parser *canon.Parser
	linked []any // its JSON-LD
	read   bool  // linked is there
	whole  string
	main   *string
}

// NewPage parses the decoded body of a page in the encoding of a WHATWG name,
// "" for UTF-8. url is the page's own. Its cost is that of a tree: ten to twenty
// times the memory of the body.
func NewPage(body []byte, encoding string, url *canon.URL) (*Page, error) {
	if enc, name := charset.Lookup(encoding); enc != nil && name != "utf-8" {
		decoded, err := enc.NewDecoder().Bytes(body)
		if err != nil {
			return nil, err
		}
		body = decoded
	}
	tree, err := html.ParseWithOptions(bytes.NewReader(body), html.ParseOptionEnableScripting(false))
	if err != nil {
		return nil, err
	}
	for _, n := range cascadia.QueryAll(tree, templateSelector) { // inert, as for querySelector
		for n.FirstChild != nil {
			n.RemoveChild(n.FirstChild)
		}
	}
	return &Page{Tree: tree, MaxText: 1 << 20, url: url}, nil
}

// resolve makes a link of the page absolute, "" when it is none to crawl.
func (p *Page) resolve(link string) string {
	if p.parser == nil {
		p.parser = canon.NewParser(canon.Config{})
		p.base = p.url
		if n := cascadia.Query(p.Tree, baseSelector); n != nil {
			base := new(canon.URL)
			if p.parser.Resolve(base, p.url, []byte(attr(n, "href")), nil) == nil {
				p.base = base
			}
		}
	}
	var u canon.URL
	if p.parser.Resolve(&u, p.base, []byte(link), nil) != nil {
		return ""
	}
	return string(u.AppendRedacted(nil))
}

var (
	baseSelector = cascadia.MustCompile("base[href]")
	metaSelector = cascadia.MustCompile("meta[content]")
	dataSelector = cascadia.MustCompile("script[type]")

	// Shadow roots are visible.
	templateSelector = cascadia.MustCompile("template:not([shadowrootmode=open i]):not([shadowrootmode=closed i])")
)

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

// metas are the contents of the meta elements with a name.
func (p *Page) metas(name string, keys ...string) []string {
	var found []string
	for _, n := range cascadia.QueryAll(p.Tree, metaSelector) {
		for _, key := range keys {
			if strings.EqualFold(strings.TrimSpace(attr(n, key)), name) {
				found = append(found, attr(n, "content"))
				break
			}
		}
	}
	return found
}

// linkedData reads the page's JSON-LD, once. What is no JSON is not there.
func (p *Page) linkedData() []any {
	if p.read {
		return p.linked
	}
	p.read = true
	for _, n := range cascadia.QueryAll(p.Tree, dataSelector) {
		typ, _, _ := strings.Cut(attr(n, "type"), ";")
		if n.FirstChild == nil || !strings.EqualFold(strings.TrimSpace(typ), "application/ld+json") {
			continue
		}
		v, ok := readJSON(n.FirstChild.Data)
		if !ok {
			v, ok = readJSON(lenientJSON(n.FirstChild.Data))
		}
		if ok {
			p.linked = append(p.linked, v)
		}
	}
	return p.linked
}

// readJSON reads the first value of a text.
func readJSON(text string) (v any, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// lenientJSON is a text with what JSON-LD of the web has beside JSON taken out, as
// extruct does: comments, CDATA and its comments, commas behind the last value. Control
// characters in strings are escaped.
func lenientJSON(text string) string {
	var b strings.Builder
	comma := false // one waits for the next value
	put := func(s string) {
		if comma && s[0] != '}' && s[0] != ']' {
			b.WriteByte(',')
		}
		comma = false
		b.WriteString(s)
	}
next:
	for i := 0; i < len(text); i++ {
		rest := text[i:]
		for _, c := range [...][2]string{{"<![CDATA[", ""}, {"]]>", ""}, {"<!--", ""}, {"-->", ""}, {"/*", "*/"}, {"//", "\n"}} {
			if !strings.HasPrefix(rest, c[0]) {
				continue
			}
			end := len(c[0])
			if c[1] != "" {
				if at := strings.Index(rest[end:], c[1]); at >= 0 {
					end += at + len(c[1])
				} else {
					end = len(rest)
				}
			}
			i += end - 1
			continue next
		}
		switch c := text[i]; c {
		case ' ', '\t', '\r', '\n':
		case ',':
			comma = true
		case '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(text))
			put(escapeControls(text[i:end]))
			i = end - 1
		default:
			put(text[i : i+1])
		}
	}
	return b.String()
}

// escapeControls escapes the control characters of a JSON string.
func escapeControls(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r < ' ' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// text is what a rule found: a number of JSON stays one.
type text struct {
	string
	number bool
}

// path is where a value stands in JSON-LD.
type path struct {
	typ  string // of the object that it starts at, "" for those at the top and in a graph
	keys []string
}

func parsePath(text string) (path, error) {
	typ, keys, ok := strings.Cut(text, "/")
	if !ok {
		typ, keys = "", text
	}
	p := path{typ, strings.Split(keys, ".")}
	for _, k := range p.keys {
		if k == "" {
			return p, errPath
		}
	}
	return p, nil
}

// find appends the values at the path from v on, which is at the top.
func (p *path) find(dst []text, v any) []text {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			dst = p.find(dst, e)
		}
	case map[string]any:
		if p.typ == "" || hasType(v["@type"], p.typ) {
			dst = follow(dst, v, p.keys)
		}
		if p.typ == "" {
			if graph, ok := v["@graph"]; ok {
				dst = p.find(dst, graph)
			}
			return dst
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			dst = p.find(dst, v[k])
		}
	}
	return dst
}

// hasType reports whether an @type names typ, with or without its vocabulary.
func hasType(v any, typ string) bool {
	switch v := v.(type) {
	case string:
		return v == typ || strings.HasSuffix(v, "/"+typ) || strings.HasSuffix(v, ":"+typ)
	case []any:
		for _, e := range v {
			if hasType(e, typ) {
				return true
			}
		}
	}
	return false
}

// follow appends the values that keys lead to from v; lists are looked into.
func follow(dst []text, v any, keys []string) []text {
	if list, ok := v.([]any); ok {
		if len(keys) > 0 {
			if i, err := strconv.Atoi(keys[0]); err == nil {
				if i >= 0 && i < len(list) {
					dst = follow(dst, list[i], keys[1:])
				}
				return dst
			}
		}
		for _, e := range list {
			dst = follow(dst, e, keys)
		}
		return dst
	}
	if object, ok := v.(map[string]any); ok {
		if len(keys) == 0 {
			if value, ok := object["@value"]; ok {
				return follow(dst, value, nil)
			}
			return dst
		}
		return follow(dst, object[keys[0]], keys[1:])
	}
	if len(keys) > 0 {
		return dst
	}
	switch v := v.(type) {
	case string:
		return append(dst, text{string: v})
	case json.Number:
		return append(dst, text{v.String(), true})
	case bool:
		return append(dst, text{string: strconv.FormatBool(v)})
	}
	return dst
}

// hidden names the elements whose text nobody reads.
func hidden(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Head, atom.Iframe, atom.Noembed, atom.Noframes:
		return true
	}
	return false
}

// inline names the elements that separate no words.
func inline(n *html.Node) bool {
	switch n.DataAtom {
	case atom.A, atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Cite, atom.Code, atom.Data, atom.Del, atom.Dfn, atom.Em, atom.Font,
		atom.I, atom.Ins, atom.Kbd, atom.Mark, atom.Nobr, atom.Q, atom.Rp, atom.Rt, atom.Ruby, atom.S, atom.Samp, atom.Small, atom.Span,
		atom.Strike, atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var, atom.Wbr:
		return true
	}
	return false
}

// textOf is the text inside a node, white space folded, up to a little more than so
// many bytes.
func textOf(n *html.Node, most int) string {
	var b strings.Builder
	gap := false
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			for _, r := range n.Data {
				if r == ' ' || r == '\n' || r == '\t' || r == '\r' || r == '\f' {
					gap = true
					continue
				}
				if gap && b.Len() > 0 {
					b.WriteByte(' ')
				}
				gap = false
				b.WriteRune(r)
			}
			return
		}
		for c := n.FirstChild; c != nil && b.Len() <= most; c = c.NextSibling {
			if c.Type == html.ElementNode && hidden(c) {
				continue
			}
			gap = gap || c.Type == html.ElementNode && !inline(c)
			walk(c)
			gap = gap || c.Type == html.ElementNode && !inline(c)
		}
	}
	walk(n)
	return b.String()
}
