package extract

import (
	"bytes"
	"sort"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/text/transform"

	"seine/extract/charset"
)

// elementKinds are the kinds that stand in attributes of elements.
const elementKinds = All &^ (1<<CSS | 1<<Import | 1<<Header)

// treeLinks collects "kind raw" of all links in attributes of the tree that
// golang.org/x/net/html builds with scripting off.
func treeLinks(t testing.TB, body []byte) map[string]bool {
	t.Helper()
	doc, err := html.ParseWithOptions(bytes.NewReader(body), html.ParseOptionEnableScripting(false))
	if err != nil {
		t.Fatal(err)
	}
	o := oracle{found: map[string]bool{}}
	o.walk(doc)
	return o.found
}

type oracle struct {
	found map[string]bool
	based bool
}

func (o *oracle) walk(n *html.Node) {
	if n.Type == html.ElementNode {
		if n.Namespace == "" && n.Data == "template" {
			return
		}
		o.element(n)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		o.walk(c)
	}
}

func attrOfNode(n *html.Node, space, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Namespace == space && a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

func (o *oracle) addLink(n *html.Node, k Kind, key string) {
	if v, ok := attrOfNode(n, "", key); ok {
		o.found[k.String()+" "+v] = true
	}
}

func (o *oracle) set(n *html.Node, key string) {
	v, _ := attrOfNode(n, "", key)
	for b := []byte(v); ; {
		var url []byte
		if url, b = srcset(b); url == nil {
			return
		}
		o.found["srcset "+string(url)] = true
	}
}

func (o *oracle) element(n *html.Node) {
	if n.Namespace != "" {
		k := SVG
		if n.Data == "a" {
			k = Anchor
		}
		o.addLink(n, k, "href")
		if v, ok := attrOfNode(n, "xlink", "href"); ok {
			o.found[k.String()+" "+v] = true
		}
		return
	}
	simple := map[string]struct {
		k   Kind
		key string
	}{
		"a": {Anchor, "href"}, "area": {Area, "href"}, "frame": {Frame, "src"}, "iframe": {IFrame, "src"},
		"img": {Image, "src"}, "source": {Source, "src"}, "video": {Video, "src"}, "audio": {Audio, "src"},
		"track": {Track, "src"}, "embed": {Embed, "src"}, "object": {Object, "data"}, "script": {Script, "src"},
		"blockquote": {Cite, "cite"}, "q": {Cite, "cite"}, "ins": {Cite, "cite"}, "del": {Cite, "cite"},
		"body": {Background, "background"}, "table": {Background, "background"}, "tbody": {Background, "background"},
		"thead": {Background, "background"}, "tfoot": {Background, "background"}, "tr": {Background, "background"},
		"td": {Background, "background"}, "th": {Background, "background"},
	}
	if s, ok := simple[n.Data]; ok {
		o.addLink(n, s.k, s.key)
	}
	switch n.Data {
	case "img", "source":
		o.addLink(n, simple[n.Data].k, "data-src")
		o.set(n, "srcset")
		o.set(n, "data-srcset")
	case "video":
		o.addLink(n, Video, "poster")
	case "input":
		if v, _ := attrOfNode(n, "", "type"); strings.EqualFold(v, "image") {
			o.addLink(n, Input, "src")
		}
	case "base":
		if _, ok := attrOfNode(n, "", "href"); ok && !o.based {
			o.based = true
			o.addLink(n, Base, "href")
		}
	case "link":
		rel, _ := attrOfNode(n, "", "rel")
		typ, _ := attrOfNode(n, "", "type")
		o.addLink(n, rels([]byte(rel)).kind([]byte(typ)), "href")
		o.set(n, "imagesrcset")
	case "meta":
		equiv, _ := attrOfNode(n, "", "http-equiv")
		if content, ok := attrOfNode(n, "", "content"); ok && strings.EqualFold(equiv, "refresh") {
			if url, ok := refresh([]byte(content)); ok {
				o.found["refresh "+string(url)] = true
			}
		}
	}
}

// difference names one link on which scanner and tree disagree; a comment
// beside each entry says why.
type difference struct{ corpus, page, link string }

// differences lists every single one that is known.
var differences = []difference{}

func known(corpus, page, link string) bool {
	for _, d := range differences {
		if d.corpus == corpus && d.page == page && d.link == link {
			return true
		}
	}
	return false
}

func TestOracle(t *testing.T) {
	for i := range corpora {
		t.Run(corpora[i].name, func(t *testing.T) {
			var both, missing, extra int
			for _, p := range corpus(t, i) {
				want, got := comparePage(t, p)
				for _, link := range sorted(want) {
					if got[link] {
						both++
						continue
					}
					missing++
					if !known(corpora[i].name, p.name, link) {
						t.Errorf("%s: not found: %q", p.name, link)
					}
				}
				for _, link := range sorted(got) {
					if !want[link] {
						extra++
						if !known(corpora[i].name, p.name, link) {
							t.Errorf("%s: found, not in the tree: %q", p.name, link)
						}
					}
				}
			}
			recall, precision := float64(both)/float64(both+missing), float64(both)/float64(both+extra)
			t.Logf("%d links, recall %.6f, precision %.6f", both+missing, recall, precision)
			if recall < 0.999 || precision < 0.999 {
				t.Errorf("recall %.6f, precision %.6f: want 0.999 each", recall, precision)
			}
		})
	}
}

// comparePage returns the links of the tree and of the scanner.
func comparePage(t testing.TB, p page) (want, got map[string]bool) {
	s := NewScanner(Config{Kinds: elementKinds})
	got = map[string]bool{}
	s.Reset(Doc{ContentType: "text/html"}, func(l *Link) { got[l.Kind.String()+" "+string(l.Raw)] = true })
	s.Write(p.body)
	s.Close()
	return treeLinks(t, utf8Of(t, p.body, s.Facts().Charset)), got
}

// utf8Of decodes a document by the encoding that the scanner read it in.
func utf8Of(t testing.TB, b []byte, label string) []byte {
	t.Helper()
	if _, n := charset.BOM(b); n > 0 {
		b = b[n:]
	}
	enc, _ := charset.Lookup(label)
	if enc == nil {
		t.Fatalf("unknown encoding %q", label)
	}
	out, _, err := transform.Bytes(enc.NewDecoder(), b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sorted(m map[string]bool) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
