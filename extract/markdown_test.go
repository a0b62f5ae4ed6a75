package extract

import (
	"slices"
	"strings"
	"testing"
)

const llms = "# Example\n\n> What it is.\n\nSome words.\n\n## Docs\n\n- [Start](/start.md): how to begin\n- [Other](https://other.example/x): elsewhere\n\n## Optional\n\n- [Again](/start.md#part)\n- [Last](last)\n"

// TestMarkdown: links, title and text of Markdown are those of the HTML that it stands
// for, in any pieces.
func TestMarkdown(t *testing.T) {
	for _, c := range []struct {
		name, typ, body string
		cfg             Config
		want            []string
		title, text     string
	}{
		{"links", "text/markdown; charset=utf-8", "# One &amp; *two*\n\n[a](/a) and [b] <http://c.example/> ![i](/i.png)\n\n[b]: /b\n", Config{Text: true},
			[]string{"a /a", "a /b", "a http://c.example/"}, "One & two", "One & two a and b http://c.example/"},
		{"images", "text/x-markdown", "![i](/i.png) [![j](/j.png)](/a)", Config{Kinds: Navigation | Of(Image)}, []string{"img /i.png", "a /a", "img /j.png"}, "", ""},
		{"its own HTML", "text/markdown", "<a rel=nofollow href=/n>n</a> <a rel=ugc href=/u>u</a>\n\n<div><a href=/d></div>\n", Config{}, []string{"a /n nofollow", "a /u nofollow", "a /d"}, "", ""},
		{"code", "text/markdown", "`[no](/no)`\n\n    [no](/no)\n\n[a](/a)", Config{Text: true}, []string{"a /a"}, "", "[no](/no) [no](/no) a"},
		{"umlauts", "text/markdown", "# Bäume\n\n[Ä](/ä)", Config{}, []string{"a /%C3%A4"}, "Bäume", ""},
		{"latin1", "text/markdown; charset=iso-8859-1", "# B\xe4ume", Config{Text: true}, nil, "Bäume", "Bäume"},
		{"utf-16", "text/markdown", "\xff\xfe#\x00 \x00A\x00\n\x00[\x00b\x00]\x00(\x00/\x00b\x00)\x00", Config{}, []string{"a /b"}, "A", ""},
		{"not Markdown", "text/plain", "[a](/a)", Config{}, nil, "", ""},
		{"empty", "text/markdown", "", Config{}, nil, "", ""},
	} {
		for _, size := range []int{0, 1, 7} {
			got, s := scanLinks(t, c.cfg, Doc{ContentType: c.typ}, c.body, size)
			f := s.Facts()
			if !slices.Equal(got, c.want) || string(f.Title) != c.title || string(f.Text) != c.text || f.Markup || f.Truncated {
				t.Errorf("%s in pieces of %d: %q, title %q, text %q; want %q, %q, %q", c.name, size, got, f.Title, f.Text, c.want, c.title, c.text)
			}
		}
	}
}

// TestNoFollowMarkdown: what the header says of robots holds for Markdown, too.
func TestNoFollowMarkdown(t *testing.T) {
	got, p := pageLinks(t, PageConfig{}, Doc{ContentType: "text/markdown", Said: saidBy("noindex, nofollow")}, "[a](/a)")
	if !slices.Equal(got, []string{"-a http://a.example/a"}) || !p.Facts().Said.NoIndex {
		t.Errorf("%q", got)
	}
}

// TestLLMs: llms.txt lists pages as a sitemap does: those of its own site are followed. A
// list of addresses stays one.
func TestLLMs(t *testing.T) {
	want := []string{"loc http://a.example/start.md", "-loc https://other.example/x", "loc http://a.example/d/last"}
	for _, typ := range []string{"text/plain", "text/markdown", "", "application/octet-stream"} {
		for _, front := range []string{"", "\xef\xbb\xbf", "\n\n"} {
			got, p := pageLinks(t, PageConfig{}, Doc{ContentType: typ, Sitemap: true}, front+llms)
			if !slices.Equal(got, want) || p.Counts().Foreign != 1 || string(p.Facts().Title) != "Example" {
				t.Errorf("%q %q: %q, %+v", typ, front, got, p.Counts())
			}
		}
	}
	got, _ := pageLinks(t, PageConfig{}, Doc{ContentType: "text/plain", Sitemap: true}, "http://a.example/1\n# no heading here\nhttp://a.example/2\n")
	if !slices.Equal(got, []string{"loc http://a.example/1", "loc http://a.example/2"}) {
		t.Errorf("a list of addresses: %q", got)
	}
	got, p := pageLinks(t, PageConfig{MaxLinks: 2}, Doc{ContentType: "text/plain", Sitemap: true}, llms)
	if len(got) != 2 || p.Counts().Over == 0 {
		t.Errorf("more than MaxLinks: %q", got)
	}
}

// TestLongMarkdown: of a very long document the first half megabyte is read, and its memory is
// not kept.
func TestLongMarkdown(t *testing.T) {
	body := strings.Repeat("words and words\n\n", maxMarkdown/17-10) + "\n\n[a](/a)\n\n" + strings.Repeat("more\n\n", maxMarkdown/6) + "[b](/b)"
	got, s := scanLinks(t, Config{}, Doc{ContentType: "text/markdown"}, body, 10_000)
	if !slices.Equal(got, []string{"a /a"}) || !s.Facts().Truncated {
		t.Errorf("%q, truncated: %v", got, s.Facts().Truncated)
	}
	if cap(s.marked) > maxKeptMarkdown {
		t.Errorf("%d bytes are kept", cap(s.marked))
	}
	s.Reset(Doc{ContentType: "text/html"}, func(l *Link) { t.Errorf("%s of the document before", l.Raw) })
	s.Write([]byte("<p>x"))
	s.Close()
}
