package extract

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seine/frontier/canon"
)

func mustURL(t testing.TB, raw string) *canon.URL {
	t.Helper()
	var u canon.URL
	if err := canon.NewParser(canon.Config{}).Parse(&u, []byte(raw)); err != nil {
		t.Fatal(err)
	}
	return &u
}

// pageLinks returns "kind url" of each URL found, with "-" in front when it is
// not to be followed.
func pageLinks(t testing.TB, cfg PageConfig, doc Doc, body string) ([]string, *Page) {
	t.Helper()
	p := NewPage(cfg)
	if doc.Base == nil {
		doc.Base = mustURL(t, "http://a.example/d/doc")
	}
	var got []string
	p.Reset(doc, func(f *Found) {
		line := f.Kind.String() + " " + string(f.URL.Fetch())
		if !f.Follow {
			line = "-" + line
		}
		got = append(got, line)
	})
	p.Write([]byte(body))
	p.Close()
	return got, p
}

func TestPage(t *testing.T) {
	for _, c := range []struct {
		name, body string
		doc        Doc
		want       []string
	}{
		{"resolve", `<a href=x>`, Doc{}, []string{"a http://a.example/d/x"}},
		{"once", `<a href=x><a href=./x><a href=x#y>`, Doc{}, []string{"a http://a.example/d/x"}},
		{"base first wins", `<base href=/b/><base href=/c/><a href=x>`, Doc{}, []string{"a http://a.example/b/x"}},
		{"base without href", `<base target=x><base href=/c/><a href=x>`, Doc{}, []string{"a http://a.example/c/x"}},
		{"links before base", `<head><link rel=next href=n><base href=/b/></head><a href=x>`, Doc{},
			[]string{"next http://a.example/b/n", "a http://a.example/b/x"}},
		{"unusable base", `<base href="data:,x"><a href=x>`, Doc{}, []string{"a http://a.example/d/x"}},
		{"unusable base wins", `<base href="javascript:x"><base href=/b/><a href=x>`, Doc{}, []string{"a http://a.example/d/x"}},
		{"nofollow link", `<a rel=nofollow href=x><a href=y>`, Doc{}, []string{"-a http://a.example/d/x", "a http://a.example/d/y"}},
		{"followed after all", `<a rel=nofollow href=x><a href=x>`, Doc{}, []string{"-a http://a.example/d/x", "a http://a.example/d/x"}},
		{"nofollow page", `<link rel=next href=n><meta name=ROBOTS content="index, NOFOLLOW"><a href=x>`, Doc{},
			[]string{"-next http://a.example/d/n", "-a http://a.example/d/x"}},
		{"nofollow header", `<a href=x>`, Doc{Said: saidBy("none")}, []string{"-a http://a.example/d/x"}},
		{"nofollow of others", `<a href=x>`, Doc{Said: saidBy("otherbot: none")}, []string{"a http://a.example/d/x"}},
		{"headers", ``, Doc{Link: []string{`<n>; rel="next", <s.css>; rel=stylesheet`}, Refresh: []string{"5; url=r"}},
			[]string{"header http://a.example/d/n", "refresh http://a.example/d/r"}},
		{"other schemes", `<a href="mailto:x"><a href="javascript:void(0)"><a href="http://[">`, Doc{}, nil},
	} {
		if got, _ := pageLinks(t, PageConfig{}, c.doc, c.body); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestForeignLocations(t *testing.T) {
	body := `<urlset><url><loc>http://a.example/1</loc></url><url><loc>http://b.example/2</loc></url></urlset>`
	got, p := pageLinks(t, PageConfig{}, Doc{Sitemap: true}, body)
	if want := "loc http://a.example/1,-loc http://b.example/2"; strings.Join(got, ",") != want || p.Counts().Foreign != 1 {
		t.Errorf("got %q, %+v", got, p.Counts())
	}
}

// xml:base counts where it stands, relative ones too, and for links of its own
// element.
func TestXMLBase(t *testing.T) {
	body := `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/f/"><link href="h"/><entry xml:base="e/"><link href="1"/></entry><entry><link xml:base="http://a.example/x/" href="2"/>` +
		`</entry><entry xml:base="data:,"><link href="1"/><link rel="enclosure" href="../3"/></entry></feed>`
	want := "home http://a.example/f/h,entry http://a.example/f/e/1,entry http://a.example/x/2,enclosure http://a.example/3,entry http://a.example/f/1"
	for _, doc := range []Doc{{Sitemap: true}, {ContentType: "application/atom+xml"}} {
		got, _ := pageLinks(t, PageConfig{Config: Config{Kinds: All}, Follow: All}, doc, body)
		if s := strings.Join(got, ","); s != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
}

// A sitemap is bounded by itself, whatever else it holds and a page may.
func TestLargeSitemap(t *testing.T) {
	var body strings.Builder
	body.WriteString("<urlset>")
	for i := range 50_001 {
		fmt.Fprintf(&body, "<url><loc>http://a.example/%d</loc><xhtml:link rel='alternate' href='http://a.example/de/%d'/></url>", i, i)
	}
	body.WriteString("</urlset>")
	got, p := pageLinks(t, PageConfig{}, Doc{Sitemap: true}, body.String())
	if len(got) != 50_000 || !p.Facts().Truncated {
		t.Errorf("%d links, truncated %t", len(got), p.Facts().Truncated)
	}
}

func TestMaxLinks(t *testing.T) {
	body := "<base href=/b/><p>" + strings.Repeat("<a href=1><a href=2><a href=3><a href='http://['><a href=x:y>", 3)
	got, p := pageLinks(t, PageConfig{MaxLinks: 2}, Doc{}, body)
	if len(got) != 2 || p.Counts() != (Counts{Links: 15, Found: 2, Over: 13}) {
		t.Errorf("got %q, %+v", got, p.Counts())
	}
	got, p = pageLinks(t, PageConfig{}, Doc{}, body)
	if len(got) != 3 || p.Counts() != (Counts{Links: 15, Found: 3, Repeated: 10, Invalid: 1, Other: 1}) {
		t.Errorf("got %q, %+v", got, p.Counts())
	}
}

func TestValidate(t *testing.T) {
	if err := (PageConfig{}).Validate(); err != nil {
		t.Error(err)
	}
	err := PageConfig{Config: Config{MaxTag: 1, MaxText: -1, Kinds: 1 << 63}, Follow: 1 << 63, MaxLinks: -1, LimitBy: "x"}.Validate()
	for _, word := range []string{"MaxTag", "MaxText", "Kinds", "Follow", "MaxLinks", "site rule"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not speak of %s", err, word)
		}
	}
}

// TestXML: documents of XML media types are read as XML where it differs from HTML,
// and go on after a fault without losing a link.
func TestXML(t *testing.T) {
	shared, err := os.ReadFile(filepath.Join("..", "..", "shared", "testdata", "webcases2", "script-empty.xhtml"))
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	const head, one = `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">`, "a http://a.example/one"
	for name, c := range map[string][2]string{
		"empty script":        {head + `<head><script src="a.js"/></head><body><a href="/one">1</a></body></html>`, one},
		"empty style":         {head + `<head><style /></head><body><a href="/one"/></body></html>`, one},
		"empty title":         {head + `<title/><a href="/one"/>`, one},
		"empty iframe":        {head + `<iframe src="f"/><a href="/one"/>`, "iframe http://a.example/d/f," + one},
		"script":              {head + `<script>"<a href='/no'/>"</script><a href="/one"/>`, one},
		"textarea":            {head + `<textarea><a href="/one"/></textarea>`, one},
		"CDATA":               {head + `<p><![CDATA[<a href="/no">]]></p><a href="/one"/>`, one},
		"entities":            {head + `<a href="?a&amp;b&#x3d;1&apos;"/>`, "a http://a.example/d/doc?a&b=1%27"},
		"prefix":              {`<?xml version="1.0"?><h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:script>"<h:a href='/no'/>"</h:script><h:script/><h:a href="/one"/></h:html>`, one},
		"prefix of its own":   {`<?xml version="1.0"?><body><x:a xmlns:x = 'http://www.w3.org/1999/xhtml' href="/one"/></body>`, one},
		"prefix of SVG":       {head + `<s:svg xmlns:s="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink"><s:script/><s:a xlink:href="/one"/></s:svg><a href="/two"/>`, one + ",a http://a.example/two"},
		"prefix of others":    {head + `<x:template xmlns:x="http://www.w3.org/1999/XSL/Transform"><x:script><a href="/one"/></x:script>`, one},
		"long prefix":         {head + `<p xmlns:` + strings.Repeat("p", 40) + `="http://www.w3.org/1999/xhtml"><` + strings.Repeat("p", 40) + `:script/><a href="/one"/>`, one},
		"no html element":     {`<?xml version="1.0"?><div xmlns="http://www.w3.org/1999/xhtml">` + strings.Repeat("<p/>", 400) + `<a href="/one"/></div>`, one},
		"unclosed element":    {head + `<br><p><a href="/one">`, one},
		"unquoted value":      {head + `<a href=/one>x</p><script/><a href="/two"/>`, one + ",a http://a.example/two"},
		"unknown entity":      {head + `&nope;&<a href="/one"/>`, one},
		"two of an attribute": {head + `<a href="/one" href="/no"/>`, one},
		"a bare <":            {head + `1 < 2 <a href="/one"/>`, one},
	} {
		for _, typ := range []string{"application/xml", "text/xml", "application/xhtml+xml", "application/x+xml"} {
			got, _ := pageLinks(t, PageConfig{}, Doc{ContentType: typ}, c[0])
			if strings.Join(got, ",") != c[1] {
				t.Errorf("%s as %s: %q, want %s", name, typ, got, c[1])
			}
			for _, size := range []int{1, 7} {
				want, _ := scanLinks(t, Config{}, Doc{ContentType: typ}, c[0], 0)
				if pieces, _ := scanLinks(t, Config{}, Doc{ContentType: typ}, c[0], size); strings.Join(pieces, ",") != strings.Join(want, ",") {
					t.Errorf("%s in pieces of %d: %q, whole %q", name, size, pieces, want)
				}
			}
		}
	}
	if got, _ := pageLinks(t, PageConfig{}, Doc{ContentType: "text/xml"}, string(shared)); err == nil && strings.Join(got, ",") != one {
		t.Errorf("%q", got)
	}
	if got, _ := charsetOf(Doc{ContentType: "text/xml"}, `<?xml version="1.0" encoding="koi8-r"?><html><meta charset="big5"/>`); got != "koi8-r" {
		t.Errorf("%s, want what the XML declaration says", got)
	}
}

func TestKinds(t *testing.T) {
	for k := range numKinds {
		if got, err := ParseKinds([]string{k.String()}); err != nil || got != Of(k) {
			t.Errorf("%s: %x, %v", k, got, err)
		}
	}
	if got, err := ParseKinds(nil); err != nil || got != Navigation {
		t.Errorf("none: %x, %v", got, err)
	}
	if got, err := ParseKinds([]string{"requisites", " A "}); err != nil || got != Requisites|Of(Anchor) {
		t.Errorf("requisites and a: %x, %v", got, err)
	}
	if _, err := ParseKinds([]string{"no-such"}); err == nil {
		t.Error("no error for an unknown kind")
	}
}

// Links wait for the first base wherever it stands, as many as there is room
// for; the rest is counted.
func TestLateBase(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		late             int
	}{
		{"in the body", "<p><a href=1>1</a><p><base href=/b/><a href=2>2</a><base href=/c/>", "a http://a.example/b/1,a http://a.example/b/2", 0},
		{"empty base rules", "<a href=1><base href><base href=/b/>", "a http://a.example/d/1", 0},
		{"base in an inert template", "<a href=1><template><base href=/b/></template>", "a http://a.example/d/1", 0},
		{"base in a comment, a script and svg", "<a href=1><!--<base href=/b/>--><script><base href=/b/></script><svg><base href=/b/></svg>", "a http://a.example/d/1", 0},
		{"on another host", "<a href=1><a href=//c.example/2><base href=https://b.example>", "a https://b.example/1,a https://c.example/2", 0},
		{"unusable", "<a href=1><base href=data:,x><base href=/b/>", "a http://a.example/d/1", 0},
		{"headers", "", "header http://a.example/d/h", 0},
		{"no room", strings.Repeat("<!-- -->", 99) + "<a href=1><a href=2" + strings.Repeat("x", maxQueue) + "><a href=3><base href=/b/><a href=1>",
			"a http://a.example/d/1,a http://a.example/b/3,a http://a.example/b/1", 2},
	} {
		doc := Doc{}
		if c.name == "headers" {
			doc.Link, c.body = []string{"<h>; rel=next"}, "<base href=/b/>"
		}
		got, p := pageLinks(t, PageConfig{Config: Config{MaxTag: 2 * maxQueue}}, doc, c.body)
		if s := strings.Join(got, ","); s != c.want || p.Facts().LateBase != c.late {
			t.Errorf("%s: got %.300q, late %d, want %q, %d", c.name, s, p.Facts().LateBase, c.want, c.late)
		}
	}
	for n, late := range map[int]bool{100: false, 10_000: true} {
		var body strings.Builder
		for i := range n {
			fmt.Fprintf(&body, "<a href=%d>", i)
		}
		got, p := pageLinks(t, PageConfig{}, Doc{}, body.String()+"<base href=/b/>")
		based := 0
		for _, l := range got {
			if strings.HasPrefix(l, "a http://a.example/b/") {
				based++
			}
		}
		if f := p.Facts(); len(got) != n || based+f.LateBase != n || f.LateBase > 0 != late {
			t.Errorf("%d links in front of the base: got %d, %d of them with it, late %d", n, len(got), based, f.LateBase)
		}
	}
}

// What a page makes the worker remember is bounded, whatever it links to.
func TestMemoryOfLinksThatAreNone(t *testing.T) {
	p := NewPage(PageConfig{})
	p.Reset(Doc{Base: mustURL(t, "http://a.example/")}, func(*Found) {})
	p.Write([]byte("<p>"))
	var b []byte
	for i := range 200_000 {
		b = fmt.Appendf(b[:0], "<a href=x:%d>", i)
		p.Write(b)
	}
	p.Close()
	if n := cap(p.raws.slots) + cap(p.raws.spare); n > 8*maxRaws || p.Counts().Other != 200_000 {
		t.Errorf("%d slots, %+v", n, p.Counts())
	}
}
