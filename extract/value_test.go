package extract

import (
	"net/http"
	"strings"
	"testing"

	"seine/extract/preference"
)

func TestSrcset(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {" , ,", ""}, {"a", "a"}, {"a,b", "a,b"}, {"a, b", "a|b"}, {"a,, b", "a|b"}, {"a 1x,b 2x", "a|b"}, {"a 1x, b 2x", "a|b"},
		{"a 100w, b 200w", "a|b"}, {"a 100w 50h,b", "a|b"}, {"a 50h, b", "b"}, {"a 1x 2x, b", "b"}, {"a 1w 1x, b", "b"}, {"a 0w, b 0x", "b"},
		{"a -1x, b", "b"}, {"a 1.5e1x, b .5x", "a|b"}, {"a (x, y), b", "b"}, {"a (x", ""}, {"data:,a 1x, b", "data:,a|b"}, {"a 1q", ""},
		{"a\t1x\n,\fb", "a|b"}, {"a 1x , b", "a|b"}, {"a +1x", ""}, {"a 1.x", ""},
	} {
		var got []string
		for b := []byte(c.in); ; {
			var url []byte
			if url, b = srcset(b); url == nil {
				break
			}
			got = append(got, string(url))
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%q: got %q, want %q", c.in, s, c.want)
		}
	}
}

func TestRefresh(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"0; url=x", "x"}, {"0;URL='x y'z", "x y"}, {"5", "-"}, {"", "-"}, {"x; url=y", "-"}, {" 1 , x", "x"}, {"1 x", "x"}, {"1.5;x", "x"},
		{".5;x", "x"}, {"1;url x", "url x"}, {"1;url", "url"}, {"1; url = \"x", "x"}, {"1;ur=x", "ur=x"}, {"1;'x'", "x"}, {"-1;x", "-"},
		{"1x", "-"}, {"1;", "-"}, {"1; url=", "-"}, {"0;url=a;b", "a;b"},
	} {
		url, ok := refresh([]byte(c.in))
		got := string(url)
		if !ok {
			got = "-"
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

func TestLinkHeader(t *testing.T) {
	for _, c := range []struct {
		in   []string
		want string
	}{
		{[]string{`<a>; rel=next`, `<b>`}, "header a|header b"},
		{[]string{`<a,b>; rel="x, y"; title="<no>", <c>;rel=nofollow`}, "header a,b|header c nofollow"},
		{[]string{`<a>; rel=preload; as=style, <b>; rel="stylesheet", <c>; rel=icon, <d>; rel=preconnect`}, "preload a|stylesheet b|icon c|link d"},
		{[]string{`<a>; anchor="#x"; rel=next`, `x`, `<`, `<y`, `<z>; a="\"; rel=no", <w>`}, "header z|header w"},
	} {
		got, _ := scanLinks(t, Config{Kinds: All}, Doc{Link: c.in}, "", 0)
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%q: got %q, want %q", c.in, s, c.want)
		}
	}
}

// saidBy is what X-Robots-Tag headers say to seine.
func saidBy(values ...string) (s preference.Set) {
	s.AddHeader(http.Header{"X-Robots-Tag": values}, "seine", "text/html")
	return s
}

func TestRobots(t *testing.T) {
	const noIndex, noFollow = 1, 2
	for _, c := range []struct {
		meta   string
		header []string
		want   int
	}{
		{"", nil, 0}, {"<meta name=robots content=NoIndex>", nil, noIndex}, {"<meta name=robots content='none'>", nil, noIndex | noFollow},
		{"<meta name=robots content='index, follow'><meta name=robots content=nofollow>", nil, noFollow},
		{"<meta name=robots content='noindex'><meta name=robots content=all>", nil, noIndex},
		{"<meta name=Seine content=noindex>", nil, noIndex}, {"<meta name=other content=noindex>", nil, 0},
		{"<!-- <meta name=robots content=noindex> -->", nil, 0}, {"<meta name=robots content='noindexx'>", nil, 0},
		{"<template><meta name=robots content=noindex></template>", nil, 0},
		{"", []string{"noindex"}, noIndex}, {"", []string{"other: noindex", "nofollow"}, noFollow}, {"", []string{"seine: none"}, noIndex | noFollow},
		{"", []string{"other: noindex, nofollow"}, 0}, {"", []string{"other: noindex, seine: nofollow"}, noFollow},
		{"", []string{"unavailable_after: Fri, 25 Jun 2010 15:00:00 PST, noindex"}, noIndex},
		{"", []string{"unavailable_after: Friday, 25-Jun-10 15:00:00 UTC, nofollow, other: noindex"}, noFollow},
		{"<meta name=robots content='max-image-preview: none, max-snippet : 0'>", nil, 0}, {"", []string{"max-image-preview: none"}, 0},
		{"", []string{"max-image-preview : none"}, 0}, {"", []string{"seine: max-image-preview:none, max-video-preview: -1 nofollow"}, noFollow},
		{"", []string{"unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"}, noIndex}, {"", []string{"max-snippet:-1, nofollow"}, noFollow},
	} {
		_, s := scanLinks(t, Config{Robots: "seine"}, Doc{Said: saidBy(c.header...)}, c.meta, 0)
		var got int
		if s.Facts().Said.NoIndex {
			got |= noIndex
		}
		if s.Facts().Said.NoFollow {
			got |= noFollow
		}
		if got != c.want {
			t.Errorf("%q, %q: got %b, want %b", c.meta, c.header, got, c.want)
		}
	}
}

func TestCSS(t *testing.T) {
	for _, c := range []struct{ typ, body, want string }{
		{"text/css", `@import "a.css"; @import url(b.css) screen; a{b:url( 'c.png' ) url("d\20 .png") URL(e.png)}`,
			"import a.css|import b.css|css c.png|css d .png|css e.png"},
		{"text/css", `/* url(no) */ a{content:"url(no)"} @namespace url(no); @namespace x "no"; b{c:url()} d{e:url(x`, "css x"},
		{"text/html", `<style>a{b:url(c)}</style><p style="d:url(e)"><a style='f:url("g")' href=h><style>@import '<i>'</style>`,
			"css c|css e|css g|a h|import <i>"},
		{"text/html", `<style>a{b:url(c`, "css c"},
		{"text/css", `a{b:image-set("a.png" 1x, url(b.png) 2x, 'c.avif' type("image/avif") 3x, (calc(1) "no")) c:"no"; d:-WEBKIT-Image-Set("e\66 .png" 1x)}`,
			"css a.png|css b.png|css c.avif|css ef.png"},
		{"text/css", `a{b:image-set("a" ; c:"no"} d{e:cross-fade(image-set("f"), "no")} @import url(g) supports(x:image-set("h"));`, "css a|css f|import g|css h"},
		{"text/html", `<p style="b:image-set('a' 1x)">`, "css a"},
		{"text/html", `<svg style="a:url(#b)"><path style="c:url(&quot;d&quot;)"></svg>`, "css #b|css d"},
	} {
		for size := range 6 {
			got, _ := scanLinks(t, Config{Kinds: All}, Doc{ContentType: c.typ}, c.body, size)
			if s := strings.Join(got, "|"); s != c.want {
				t.Errorf("%q in pieces of %d: got %q, want %q", c.body, size, s, c.want)
			}
		}
	}
	for _, filler := range []string{" ", "a", "1"} { // a long token that ends by itself hides nothing
		body := "x{y:url(a)}" + strings.Repeat(filler, 9000) + " b{c:url(d)}"
		got, _ := scanLinks(t, Config{Kinds: All, MaxTag: 256}, Doc{ContentType: "text/css"}, body, 0)
		if s := strings.Join(got, "|"); s != "css a|css d" {
			t.Errorf("behind 9000 %q: got %q", filler, s)
		}
	}
	long := `a{b:url(data:` + strings.Repeat("x", 1000) + `)} c{d:url(e)}` + "/*" + strings.Repeat("y", 1000) + `*/ f{g:url(h)}`
	for _, size := range []int{0, 1, 7} {
		got, s := scanLinks(t, Config{Kinds: All, MaxTag: 256}, Doc{ContentType: "text/css"}, strings.Repeat(" ", 8000)+strings.Repeat(long, 20), size)
		if n := len(got); n < 40 {
			t.Errorf("long tokens in pieces of %d: %d links, cut %d", size, n, s.Facts().Cut)
		}
	}
}

func TestAllKinds(t *testing.T) {
	body := `<link rel="Canonical" href=1><link rel=prev href=2><link rel=alternate href=3><link rel=alternate type="application/rss+xml" href=4 title=F>
<link rel="alternate stylesheet" href=5><link rel="shortcut icon" href=6><link rel=preload imagesrcset="7 1x, 8 2x" href=9><link rel=sitemap href=10>
<link rel=amphtml href=11><link rel=author href=12><img src=13 srcset="14, 15 2x"><picture><source srcset=16></picture><video src=17 poster=18>
<source src=19><track src=20></video><audio src=21></audio><embed src=22><object data=23></object><iframe src=24></iframe><frame src=25>
<input type=IMAGE src=26><input src=no><blockquote cite=27><q cite=28></q><ins cite=29></ins><del cite=30></del></blockquote>
<body background=31><table background=32><tr><td background=33></table><script src=34></script><svg><image href=35 xlink:href=36 /><use xlink:href=37 /></svg>
<image src=38><img src=data:, data-src=41 Data-Srcset="42 1x, 43 2x"><source data-src=44 data-srcset=45><p data-src=no><area href=39><meta http-equiv=refresh content="1;40">`
	want := `canonical 1|prev 2|alternate 3|feed 4|stylesheet 5|icon 6|preload 9|srcset 7|srcset 8|sitemap 10|amphtml 11|link 12|img 13|srcset 14|srcset 15|srcset 16|` +
		`video 17|video 18|source 19|track 20|audio 21|embed 22|object 23|iframe 24|frame 25|input 26|cite 27|cite 28|cite 29|cite 30|background 31|background 32|` +
		`background 33|script 34|svg 35|svg 36|svg 37|img 38|img data:,|img 41|srcset 42|srcset 43|source 44|srcset 45|area 39|refresh 40`
	got, s := scanLinks(t, Config{Kinds: All}, Doc{}, body, 0)
	if strings.Join(got, "|") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "|"), want)
	}
	if f := s.Facts(); string(f.Canonical) != "1" || len(f.Feeds) != 1 || string(f.Feeds[0].Title) != "F" {
		t.Errorf("facts: %q, %d feeds", f.Canonical, len(f.Feeds))
	}
}

func TestFacts(t *testing.T) {
	body := "<html lang=de-AT><title> Gr&ouml;\u00dfe &amp;\n x&lt </title><title>no</title><meta name=Description content=' a\tb '><base href=/b>" +
		"<body><h1>One</h1><p>two<b>three</b> four&nbsp;five<script>no</script><template>no</template><textarea>no</textarea><br>six"
	for size := range 5 {
		_, s := scanLinks(t, Config{Text: true}, Doc{ContentType: "text/html;charset=utf-8"}, body, size)
		f := s.Facts()
		for _, c := range []struct{ name, got, want string }{
			{"title", string(f.Title), "Gr\u00f6\u00dfe & x<"}, {"lang", string(f.Lang), "de-AT"}, {"description", string(f.Description), "a b"},
			{"base", string(f.Base), "/b"}, {"text", string(f.Text), "One twothree four\u00a0five six"}, {"declared", f.Declared, "utf-8"},
		} {
			if c.got != c.want {
				t.Errorf("%s in pieces of %d: got %q, want %q", c.name, size, c.got, c.want)
			}
		}
	}
	_, s := scanLinks(t, Config{MaxTitle: 4}, Doc{ContentType: "text/html;charset=utf-8"}, "<title>ab\u00e4\u00e4</title>", 0)
	if got := string(s.Facts().Title); got != "ab\u00e4" {
		t.Errorf("bounded title: %q", got)
	}
}
