package extract

import (
	"strings"
	"testing"
)

// scanLinks returns "kind raw" of each link of a document written in pieces of
// the given size, 0 being whole.
func scanLinks(t testing.TB, cfg Config, doc Doc, body string, size int) ([]string, *Scanner) {
	t.Helper()
	s := NewScanner(cfg)
	var got []string
	s.Reset(doc, func(l *Link) {
		line := l.Kind.String() + " " + string(l.Raw)
		if l.NoFollow {
			line += " nofollow"
		}
		got = append(got, line)
	})
	if size == 0 {
		size = max(len(body), 1)
	}
	for len(body) > 0 {
		n := min(size, len(body))
		if _, err := s.Write([]byte(body[:n])); err != nil {
			t.Fatal(err)
		}
		body = body[n:]
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return got, s
}

var htmlCases = []struct {
	name, body string
	want       []string
}{
	{"plain", `<a href="/x">`, []string{"a /x"}},
	{"slash for space", `<a/href=x>`, []string{"a x"}},
	{"upper case", `<A HREF='x'>`, []string{"a x"}},
	{"unquoted with slash", `<a href=x/>y`, []string{"a x/"}},
	{"first attribute wins", `<a href=1 href=2><a href href=3>`, []string{"a 1", "a "}},
	{"quote in a name", `<a "href=x>`, nil},
	{"equals starts a name", `<a ="href=no>" href=x><a =="y>" href=x>`, []string{"a x"}},
	{"quote in an end tag's name", `</p="><a href=x></p ="><a href=y></p="'><a href=z>`, []string{"a x", "a y", "a z"}},
	{"quote in a script's end tag", `<script></script ="><a href=x>`, []string{"a x"}},
	{"space around equals", "<a href\n=\t'x y'>", []string{"a x y"}},
	{"tag in a value", `<p title="<a href=no>"><a href=x>`, []string{"a x"}},
	{"tag in a bare value", `<p a=b"<a href=x><a href=y>`, []string{"a y"}},
	{"unclosed tag", `<a href=x>.<a href=y`, []string{"a x"}},
	{"less than in text", `1 <2 << <a href=x> <`, []string{"a x"}},
	{"empty comment", `<!--><a href=x>-->`, []string{"a x"}},
	{"short comment", `<!---><a href=x>-->`, []string{"a x"}},
	{"comment with bang", `<!-- --!><a href=x>-->`, []string{"a x"}},
	{"comment", `<!-- <a href=no> -- > --><a href=x>`, []string{"a x"}},
	{"comment of dashes", `<!----><a href=x><!-----><a href=y>`, []string{"a x", "a y"}},
	{"unclosed comment", `<a href=x><!-- <a href=no>`, []string{"a x"}},
	{"bogus comments", `<!x <a href=no><?php <a href=no2>?></ <a href=no3></><a href=x>`, []string{"a x"}},
	{"script", `<script>"<a href=no>"</script ><a href=x>`, []string{"a x"}},
	{"script escaped", `<script><!-- <a href=no></script><a href=x>`, []string{"a x"}},
	{"script escaped twice", `<script><!-- <script> </script><a href=no> --></script><a href=x>`, []string{"a x"}},
	{"script closed comment", `<script><!--><script></script><a href=x>`, []string{"a x"}},
	{"script like end", `<script></scripty></scrip</script/><a href=x>`, []string{"a x"}},
	{"raw text", `<style><a href=no></style><textarea><a href=no></textarea><title><a href=no></title><xmp><a href=no></xmp>` +
		`<iframe><a href=no></iframe><noembed><a href=no></noembed><noframes><a href=no></noframes><a href=x>`, []string{"a x"}},
	{"plaintext", `<a href=x><plaintext><a href=no></plaintext><a href=no>`, []string{"a x"}},
	{"noscript", `<noscript><a href=x></noscript>`, []string{"a x"}},
	{"shadow root", `<template shadowrootmode=open><a href=1></template><template SHADOWROOTMODE=Closed><template><a href=no></template><a href=2></template><a href=3>`,
		[]string{"a 1", "a 2", "a 3"}},
	{"no shadow root", `<template shadowrootmode><a href=no></template><template shadowroot=open><a href=no><template shadowrootmode=open><a href=no></template></template><a href=x>`,
		[]string{"a x"}},
	{"template", `<template><a href=no><template></template><a href=no></template><a href=x>`, []string{"a x"}},
	{"cdata in html", `<![CDATA[ > <a href=x> ]]>`, []string{"a x"}},
	{"cdata in svg", `<svg><![CDATA[ > <a href=no> ]] ]]><a href=x></svg>`, []string{"a x"}},
	{"title in svg", `<svg><title><a href=x></a></title><style><a href=y></style></svg><style><a href=no></style>`, []string{"a x", "a y"}},
	{"break out of svg", `<svg><p><style><a href=no></style><a href=x>`, []string{"a x"}},
	{"html in svg", `<svg><foreignObject><style><a href=no></style></foreignObject><style><a href=x></style></svg>`, []string{"a x"}},
	{"svg link", `<svg><a xlink:href=x /><a href=y></a></svg>`, []string{"a x", "a y"}},
	{"unclosed svg", `<div><svg><path></div><style><a href=no></style><a href=x>`, []string{"a x"}},
	{"entities", `<a href="?a=1&amp;b=2&copy=3&copy;&#x41;&#66&reg">`, []string{"a ?a=1&b=2&copy=3©AB®"}},
	{"entities that are none", `<a href="?a&b;&ampx=1&notit;&#;&#x;&">`, []string{"a ?a&b;&ampx=1&notit;&#;&#x;&"}},
	{"nul and new lines", "<a href='a\x00b\rc\r\nd'>", []string{"a a\uFFFDb\nc\nd"}},
	{"rel", `<a rel="x NoFollow" href=a><a rel=ugc href=b><a rel=nofollows href=c>`, []string{"a a nofollow", "a b nofollow", "a c"}},
	{"navigation", `<area href=1><iframe src=2></iframe><frame src=3><link rel=canonical href=4><link rel="x next" href=5><img src=no>` +
		`<link rel=stylesheet href=no>`, []string{"area 1", "iframe 2", "frame 3", "canonical 4", "next 5"}},
	{"refresh", `<meta http-equiv=Refresh content="0; URL='/x' ">`, []string{"refresh /x"}},
	{"base", `<base href=/a><base href=/b>`, []string{"base /a"}},
}

func TestHTML(t *testing.T) {
	for _, c := range htmlCases {
		for size := range 8 {
			got, _ := scanLinks(t, Config{}, Doc{}, c.body, size)
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("%s, pieces of %d: got %q, want %q", c.name, size, got, c.want)
			}
		}
	}
}
