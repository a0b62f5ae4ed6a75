package extract

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// trace is all that a document gives, in one string.
func trace(s *Scanner, doc Doc, pieces [][]byte) string {
	var b strings.Builder
	s.Reset(doc, func(l *Link) {
		fmt.Fprintf(&b, "%s %q %q %q %q %t %q %g\n", l.Kind, l.Raw, l.Base, l.Rel, l.Type, l.NoFollow, l.LastMod, l.Priority)
	})
	for _, p := range pieces {
		s.Write(bytes.Clone(p)) // its own memory, so that reading beyond it shows
	}
	s.Close()
	fmt.Fprintf(&b, "%+v", *s.Facts())
	return b.String()
}

// same fails unless the document gives the same in pieces as whole.
func same(t testing.TB, s *Scanner, doc Doc, body []byte, pieces [][]byte, how string) {
	t.Helper()
	if want, got := trace(s, doc, [][]byte{body}), trace(s, doc, pieces); got != want {
		t.Fatalf("%.200q, %s:\ngot\n%.3000s\nwant\n%.3000s", body, how, got, want)
	}
}

func split(b []byte, size int) (pieces [][]byte) {
	for len(b) > 0 {
		n := min(size, len(b))
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	return pieces
}

var chunkConfig = Config{Kinds: All, Text: true, MaxTag: 256}

// Small documents at every split point, in two and three pieces.
func TestEverySplit(t *testing.T) {
	var docs []string
	for _, c := range htmlCases {
		docs = append(docs, c.body)
	}
	for _, d := range docs {
		docs = append(docs, "<html lang=x><head><title>T &amp; t</title></head><body>"+d)
	}
	for _, cfg := range []Config{{}, chunkConfig} {
		s := NewScanner(cfg)
		for _, d := range docs {
			b := []byte(d)
			for i := range b {
				same(t, s, benchDoc, b, [][]byte{b[:i], b[i:]}, fmt.Sprintf("split at %d", i))
				same(t, s, Doc{}, b, [][]byte{b[:i/2], b[i/2 : i], b[i:]}, fmt.Sprintf("split at %d and %d", i/2, i))
			}
			same(t, s, benchDoc, b, split(b, 1), "byte by byte")
		}
	}
}

// Large documents in random pieces, some byte by byte.
func TestRandomSplits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range corpora {
		t.Run(corpora[i].name, func(t *testing.T) {
			all := corpus(t, i)
			scanners := []*Scanner{NewScanner(Config{}), NewScanner(Config{Kinds: All, Text: true}), NewScanner(chunkConfig)}
			for n, p := range all {
				if n%37 != 0 && len(all) > 100 || len(p.body) > 1<<20 {
					continue
				}
				for _, s := range scanners {
					same(t, s, Doc{}, p.body, split(p.body, 1), p.name+" byte by byte")
					for range 3 {
						var pieces [][]byte
						for b := p.body; len(b) > 0; {
							k := min(len(b), 1+rng.IntN(1<<rng.IntN(14)))
							pieces = append(pieces, b[:k])
							b = b[k:]
						}
						same(t, s, Doc{}, p.body, pieces, p.name+" in random pieces")
					}
				}
			}
		})
	}
}

func FuzzScanner(f *testing.F) {
	for _, c := range htmlCases {
		f.Add([]byte(c.body), uint8(1), uint8(0))
	}
	for _, c := range listCases {
		f.Add([]byte(c.body), uint8(3), uint8(1))
	}
	f.Add([]byte("@import 'a';b{c:url(d)}/*e*/"), uint8(2), uint8(2))
	s, small := NewScanner(Config{}), NewScanner(chunkConfig)
	f.Fuzz(func(t *testing.T, body []byte, size, kind uint8) {
		doc := []Doc{{}, {Sitemap: true}, {ContentType: "text/css"}, {ContentType: "application/xhtml+xml"}, benchDoc}[kind%5]
		pieces := split(body, int(size)%16+1)
		same(t, s, doc, body, pieces, "in pieces")
		same(t, small, doc, body, pieces, "in pieces")
	})
}

// Values of attributes against the tokenizer of x/net/html, in all three kinds
// of quotes.
func FuzzAttribute(f *testing.F) {
	for _, v := range []string{"a&amp;b", "&copy=1&copy;&copy", "&#x80;&#0;&#xD800;&#1114112;", "&notit;&not;&NotEqualTilde;", "a\r\nb\rc", "&#38", "&amp", "&;&#;"} {
		f.Add(v)
	}
	s := NewScanner(Config{})
	f.Fuzz(func(t *testing.T, v string) {
		if !utf8.ValidString(v) || strings.ContainsAny(v, "\x00\"'") {
			return
		}
		for _, quote := range []string{`"`, "'", ""} {
			if quote == "" && (v == "" || strings.ContainsAny(v, " \t\n\f\r>=<`")) {
				continue
			}
			body := "<a href=" + quote + v + quote + ">"
			z := html.NewTokenizer(strings.NewReader(body))
			if z.Next() != html.StartTagToken {
				t.Fatalf("%q is no tag", body)
			}
			z.TagName()
			_, want, _ := z.TagAttr()
			got := "no link"
			s.Reset(benchDoc, func(l *Link) { got = string(l.Raw) })
			s.Write([]byte(body))
			s.Close()
			if got != string(want) {
				t.Fatalf("%q: got %q, want %q", body, got, want)
			}
		}
	})
}

func FuzzSrcset(f *testing.F) {
	f.Add([]byte("a 1x, b (c, d) 2w"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for n := 0; ; n++ {
			url, rest := srcset(b)
			if url == nil {
				return
			}
			if len(url) == 0 || len(rest) >= len(b) || bytes.ContainsAny(url, " \t\n\f\r") || url[0] == ',' {
				t.Fatalf("%q gives %q, %q", b, url, rest)
			}
			b = rest
		}
	})
}

func FuzzRefresh(f *testing.F) {
	f.Add([]byte("0; url='x'"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if url, ok := refresh(b); ok && (len(url) == 0 || !bytes.Contains(b, url)) {
			t.Fatalf("%q gives %q", b, url)
		}
	})
}
