package fields

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"seine/frontier/canon"
)

const shop = `<!DOCTYPE html><html><head><title>T</title><base href="/shop/">
<meta name="Description" content=" A good lamp "><meta property="og:title" content="Lamp &amp; shade"><meta property="product:price" content="12.50">
<meta itemprop="sku" content="L1"><meta property="og:image" content="1.jpg"><meta property="og:image" content="http://u:p@img.example/2.jpg#x">
<script type="application/ld+json">{"@context":"https://schema.org","@graph":[{"@type":"BreadcrumbList","name":"no"},
 {"@type":["Thing","https://schema.org/Product"],"name":"Lamp","gtin":4006381333931,"offers":[{"price":"1,299.00","inStock":true},{"price":7.5}],"brand":{"@value":"Acme"}}]}</script>
<script type="application/ld+json">{broken</script><script type="Application/LD+JSON; charset=utf-8">{"@type":"Organization","name":"Shop Ltd"}</script></head>
<body><h1> The <b>Lamp</b>&nbsp;1<br>new</h1><script>no()</script><p class="price">Price: 1.299,95 €</p><p class=price>was 1 499</p>
<a class="more" HREF="lamp?x=1#y">more</a><a class="more" href="mailto:x">mail</a><a class=more href="../b">b</a>
<time datetime="2024-05-06T07:08:09+02:00">yesterday</time><i class="d">03/04/2024</i><div id=h><b>x</b> &amp; y</div><ul><li>one<li>two<li> <li>three</ul>
<template><p class="price">no</p></template><div><template shadowrootmode=Open><li>four</template></div></body></html>`

func pageOf(t testing.TB, body, encoding string) *Page {
	t.Helper()
	var u canon.URL
	if err := canon.NewParser(canon.Config{}).Parse(&u, []byte("https://www.shop.example/a/page.html")); err != nil {
		t.Fatal(err)
	}
	p, err := NewPage([]byte(body), encoding, &u)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		want string // JSON of the fields; or ! and part of an error
	}{
		{Rule{CSS: "h1"}, `"The Lamp\u00a01 new"`},
		{Rule{CSS: "h1, .price", All: true}, `["The Lamp\u00a01 new","Price: 1.299,95 €","was 1 499"]`},
		{Rule{CSS: "#h", HTML: true}, `"\u003cb\u003ex\u003c/b\u003e \u0026amp; y"`},
		{Rule{CSS: "li", All: true}, `["one","two","three","four"]`},
		{Rule{CSS: ".none"}, ``},
		{Rule{CSS: ".more", Attr: "href"}, `"lamp?x=1#y"`},
		{Rule{CSS: ".more", Attr: "HREF", Type: "url", All: true}, `["https://www.shop.example/shop/lamp?x=1","https://www.shop.example/b"]`},
		{Rule{CSS: ".more:contains(mail)", Attr: "href", Type: "url"}, `!no http or https URL`},
		{Rule{CSS: ".price", Type: "number", Decimal: ","}, `1299.95`},
		{Rule{CSS: ".price", Type: "number", All: true}, `[1499]`},
		{Rule{CSS: ".price", Regex: `([a-z]+) (\d)`}, `"was"`},
		{Rule{CSS: "body", Regex: `\d{4}`, All: true, Type: "number"}, `[2024]`},
		{Rule{CSS: "h1", Type: "number"}, `1`},
		{Rule{CSS: "#h", Type: "number"}, `!holds no number`},
		{Rule{Meta: "description"}, `"A good lamp"`},
		{Rule{Meta: "product:price", Type: "number"}, `12.50`},
		{Rule{Meta: "SKU"}, `"L1"`},
		{Rule{OpenGraph: "title"}, `"Lamp \u0026 shade"`},
		{Rule{OpenGraph: "og:image", Type: "url", All: true}, `["https://www.shop.example/shop/1.jpg","http://img.example/2.jpg"]`},
		{Rule{JSONLD: "name", All: true}, `["no","Lamp","Shop Ltd"]`},
		{Rule{JSONLD: "Product/name"}, `"Lamp"`},
		{Rule{JSONLD: "Product/gtin"}, `"4006381333931"`},
		{Rule{JSONLD: "Product/offers.price", Type: "number", All: true}, `[1299.00,7.5]`},
		{Rule{JSONLD: "Product/offers.1.price", Type: "number"}, `7.5`},
		{Rule{JSONLD: "Product/offers.2.price"}, ``},
		{Rule{JSONLD: "Product/offers.inStock", Type: "bool"}, `true`},
		{Rule{JSONLD: "Product/brand"}, `"Acme"`},
		{Rule{JSONLD: "Product/offers"}, ``},
		{Rule{JSONLD: "Nothing/name"}, ``},
		{Rule{CSS: "time", Attr: "datetime", Type: "time"}, `"2024-05-06T07:08:09+02:00"`},
		{Rule{CSS: "time", Type: "time"}, `!is no time`},
		{Rule{CSS: ".d", Type: "time"}, `!month and day`},
		{Rule{CSS: "h1", Type: "bool"}, `!none of true`},
		{Rule{Text: "whole", Regex: `The Lamp.*was`}, `"The Lamp\u00a01 new Price: 1.299,95 € was"`},
	} {
		c.rule.Name = "f"
		set, err := Compile([]Rule{c.rule})
		if err != nil {
			t.Errorf("%+v: %v", c.rule, err)
			continue
		}
		p := pageOf(t, shop, "")
		result := set.For("shop.example", "www.shop.example").Apply(p)
		got := strings.TrimSuffix(strings.TrimPrefix(string(result.AppendJSON(nil)), `{"f":`), "}")
		explained := set.For("shop.example", "").Explain(p)
		if why, bad := strings.CutPrefix(c.want, "!"); bad {
			if got != "" || len(explained.Tried) != 1 || !strings.Contains(explained.Tried[0].Error, why) || set.Counts()[0].Failed != 1 {
				t.Errorf("%s: got %s, %+v, %+v, want an error with %q", c.rule.fromTest(), got, explained.Tried, set.Counts(), why)
			}
		} else if got != strings.ReplaceAll(c.want, `\u00a0`, "\u00a0") {
			t.Errorf("%s: got %s, want %s", c.rule.fromTest(), got, c.want)
		}
	}
}

func (r Rule) fromTest() string { return (&rule{Rule: r}).from() }

// TestWholeNumbers: a number is one as a whole, JSON's numbers stay what they are, and JSON-LD
// is read as the web writes it.
func TestWholeNumbers(t *testing.T) {
	page, err := os.ReadFile("../../../shared/testdata/webcases2/fields.html")
	if err != nil {
		t.Skip("SKIPPED: no shared test data: ", err)
	}
	for _, c := range []struct {
		body string
		rule Rule
		want string // "" for none
	}{
		{string(page), Rule{JSONLD: "Product/offers.price"}, "1200"},
		{string(page), Rule{JSONLD: "Product/offers.price", Decimal: ","}, "1200"},
		{string(page), Rule{CSS: ".a"}, "0.99"},
		{string(page), Rule{CSS: ".b"}, "-0.5"},
		{string(page), Rule{CSS: ".c", Decimal: ","}, "12.50"},
		{string(page), Rule{CSS: ".c"}, ""},
		{"<b>1,234,567.89 USD", Rule{CSS: "b"}, "1234567.89"},
		{"<b>12,34", Rule{CSS: "b"}, ""},
		{"<b>1.2.3", Rule{CSS: "b"}, ""},
		{"<b>about 007 of", Rule{CSS: "b"}, "7"},
		{"<b>1e3", Rule{CSS: "b"}, "1000"},
		{"<b>3 of 1'000", Rule{CSS: "b"}, "3"},
		{`<script type="application/ld+json">/*<![CDATA[*/ {"@type":"Product", // the price
			"url":"http://x/*no*/,]", "price":"5,5" /* euro */, "sizes":[1,2,],}
			/*]]>*/</script>`, Rule{JSONLD: "Product/price", Decimal: ","}, "5.5"},
		{`<script type="application/ld+json"><!-- {"@type":"Product","n":[7,],} --></script>`, Rule{JSONLD: "Product/n"}, "7"},
	} {
		c.rule.Name, c.rule.Type = "f", "number"
		set, err := Compile([]Rule{c.rule})
		if err != nil {
			t.Fatal(err)
		}
		r := set.For("", "").Apply(pageOf(t, c.body, "utf-8"))
		got := strings.TrimSuffix(strings.TrimPrefix(string(r.AppendJSON(nil)), `{"f":`), "}")
		if got != c.want {
			t.Errorf("%s of %.60q: %q, want %q", c.rule.fromTest(), c.body, got, c.want)
		}
		if failed := set.Counts()[0].Failed == 1; failed != (c.want == "") {
			t.Errorf("%s of %.60q: failed %v", c.rule.fromTest(), c.body, failed)
		}
	}
	set, _ := Compile([]Rule{{Name: "n", JSONLD: "Product/name"}})
	if r := set.For("", "").Apply(pageOf(t, string(page), "utf-8")); string(r.AppendJSON(nil)) != `{"n":"A\nB"}` {
		t.Errorf("name: %s", r.AppendJSON(nil))
	}
}

// Rules of one name are tried in order; what is required and not there is named
// and counted, by rule.
func TestOrder(t *testing.T) {
	set, err := Compile([]Rule{
		{Name: "price", CSS: "#h", Type: "number", Required: true},
		{Name: "price", JSONLD: "Product/offers.price", Type: "number"},
		{Name: "price", Meta: "product:price"},
		{Name: "author", Meta: "author", Required: true},
		{Name: "other", Site: "other.example", CSS: "h1"},
		{Name: "title", Site: "*.shop.example", CSS: "title"},
		{Name: "host", Site: "www.shop.example", CSS: "li"},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := pageOf(t, shop, "")
	result := set.For("shop.example", "www.shop.example").Apply(p)
	if got, want := string(result.AppendJSON(nil)), `{"price":1299.00,"title":"T","host":"one"}`; got != want || strings.Join(result.Missing, ",") != "author" {
		t.Errorf("got %s, missing %q, want %s", got, result.Missing, want)
	}
	for i, want := range []Count{{Failed: 1}, {Found: 1}, {}, {Missing: 1}, {}, {Found: 1}, {Found: 1}} {
		if c := set.Counts()[i]; c.Found != want.Found || c.Failed != want.Failed || c.Missing != want.Missing {
			t.Errorf("rule %d: %+v, want %+v", i, c, want)
		}
	}
	if tried := set.For("shop.example", "").Explain(p).Tried; len(tried) != 5 {
		t.Errorf("%d tried: %+v", len(tried), tried)
	}
	if got := set.For("a.example", "a.example").Apply(pageOf(t, "<p>", "")); got.Fields != nil || got.AppendJSON(nil) != nil {
		t.Errorf("of an empty page: %+v", got)
	}
}

func TestBadRules(t *testing.T) {
	for want, r := range map[string]Rule{
		"name must":         {CSS: "a"},
		"site is":           {Name: "x", CSS: "a", Site: "http://a/"},
		"say one of":        {Name: "x"},
		"say one of css":    {Name: "x", CSS: "a", Meta: "b"},
		"go with css":       {Name: "x", Meta: "a", Attr: "b"},
		"not both":          {Name: "x", CSS: "a", Attr: "b", HTML: true},
		"whole or main":     {Name: "x", Text: "all"},
		"type is":           {Name: "x", CSS: "a", Type: "int"},
		"decimal is":        {Name: "x", CSS: "a", Decimal: ","},
		`css "a["`:          {Name: "x", CSS: "a["},
		"jsonld must be":    {Name: "x", JSONLD: "a..b"},
		"missing closing )": {Name: "x", CSS: "a", Regex: "("},
	} {
		r.At = "f.yaml:3"
		_, err := Compile([]Rule{{Name: "ok", CSS: "a"}, r})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "fields: f.yaml:3: rule of ") {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"12": "12", "€ -3.50": "-3.50", "-€5": "-5", "1,234,567.8": "1234567.8", "1 234 567": "1234567", "1'234.50": "1234.50", "0012": "12", "0.50": "0.50", "00": "0",
		"3 for 5": "3", "v10": "10", "5-7": "5", "12.": "12", "\u22127": "-7", "99,-": "99",
	} {
		if got, err := number(text, false); err != nil || got != json.Number(want) {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{"1.299,00": "1299.00", "12,5": "12.5", "1 000": "1000"} {
		if got, err := number(text, true); err != nil || got != json.Number(want) {
			t.Errorf("%q with comma: %v, %v, want %s", text, got, err, want)
		}
	}
	for text, comma := range map[string]bool{"1,23": false, "1.2.3": false, "1,2345": false, "1.5": true, "1 23": false} {
		if got, err := number(text, comma); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

// Pages are read in their encoding, and values are bounded at whole characters.
func TestEncodingAndBounds(t *testing.T) {
	set, err := Compile([]Rule{{Name: "a", CSS: "b"}, {Name: "all", CSS: "i", All: true}})
	if err != nil {
		t.Fatal(err)
	}
	r := set.For("", "").Apply(pageOf(t, "<b>\xef\xf0\xe8\xe2\xe5\xf2", "windows-1251"))
	if got := string(r.AppendJSON(nil)); got != `{"a":"привет"}` {
		t.Error(got)
	}
	const most = 1 << 20 // bytes by default
	r = set.For("", "").Apply(pageOf(t, "<b>x"+strings.Repeat("ä", most)+"</b>"+strings.Repeat("<i>y</i>", MaxValues+1), "utf-8"))
	if long, all := r.Fields[0].Value.(string), r.Fields[1].Value.([]any); len(long) != most-1 || len(all) != MaxValues || !r.Truncated {
		t.Errorf("%d bytes, %d values, truncated %v", len(long), len(all), r.Truncated)
	}
	p := pageOf(t, strings.Repeat("<i>abc</i>", 3)+"<b>abcdefg", "utf-8")
	p.MaxText = 7
	if r = set.For("", "").Apply(p); string(r.AppendJSON(nil)) != `{"a":"abcdefg","all":["abc","abc","a"]}` || !r.Truncated {
		t.Errorf("%s, truncated %v", r.AppendJSON(nil), r.Truncated)
	}
	if r = set.For("", "").Apply(pageOf(t, strings.Repeat("<i>abc</i>", 3), "utf-8")); r.Truncated {
		t.Error("what is whole is called truncated")
	}
}

// TestLongText: the text of a page, and of its article, goes on to the bound that is
// given, and says when there is more.
func TestLongText(t *testing.T) {
	set, err := Compile([]Rule{{Name: "whole", Text: "whole"}, {Name: "main", Text: "main"}})
	if err != nil {
		t.Fatal(err)
	}
	body := "<article>" + strings.Repeat("<p>Words, and more of them, for some time.</p>", 5000) + "</article>"
	for most, cut := range map[int]bool{100 << 10: true, 1 << 20: false} {
		p := pageOf(t, body, "utf-8")
		p.MaxText = most
		r := set.For("", "").Apply(p)
		for i, want := range []int{min(most, 200_000), min(most, 200_000)} {
			if got := len(r.Fields[i].Value.(string)); got > most || got < want-100 {
				t.Errorf("%s has %d bytes, want about %d", r.Fields[i].Name, got, want)
			}
		}
		if r.Truncated != cut {
			t.Errorf("with %d bytes truncated is %v", most, r.Truncated)
		}
	}
}

// Sites without rules pay nothing.
func TestNoRulesNoCost(t *testing.T) {
	set, err := Compile([]Rule{{Name: "a", CSS: "b", Site: "a.example"}, {Name: "b", CSS: "b", Site: "*.b.example"}})
	if err != nil {
		t.Fatal(err)
	}
	var none *Set
	if n := testing.AllocsPerRun(100, func() {
		if set.For("c.example", "www.c.example") != nil || none.For("a.example", "") != nil {
			t.Error("rules of others")
		}
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkOtherSite(b *testing.B) {
	var rules []Rule
	for range 100 {
		rules = append(rules, Rule{Name: "a", CSS: "b", Site: "*.shop.example"})
	}
	set, err := Compile(rules)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		set.For("c.example", "www.c.example")
	}
}

func BenchmarkApply(b *testing.B) {
	set, err := Compile([]Rule{{Name: "title", CSS: "h1"}, {Name: "price", JSONLD: "Product/offers.price", Type: "number"}, {Name: "image", OpenGraph: "image", Type: "url"}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(shop)))
	b.ReportAllocs()
	for b.Loop() {
		r := set.For("", "").Apply(pageOf(b, shop, ""))
		r.AppendJSON(nil)
	}
}

// No page breaks the rules, or the library that finds the main text.
func FuzzApply(f *testing.F) {
	f.Add([]byte(shop))
	f.Add([]byte("<table><td><p><article><h1>x</h1><p>text, of some length, and more<template><script type=application/ld+json>[{\"@type\":[1]}]</script>"))
	set, err := Compile([]Rule{{Name: "a", CSS: "p, li:nth-child(2n) > a", All: true}, {Name: "b", JSONLD: "Product/offers.0.price"}, {Name: "c", Text: "main"}, {Name: "d", Meta: "x", Type: "time"},
		{Name: "e", CSS: "a", Attr: "href", Type: "url", All: true}, {Name: "f", Text: "whole", Type: "number", All: true, Regex: `\d+`}, {Name: "g", CSS: "time", Type: "time", All: true}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := set.For("", "").Apply(pageOf(t, string(body), ""))
		if out := r.AppendJSON(nil); out != nil && !json.Valid(out) {
			t.Errorf("%q", out)
		}
	})
}
