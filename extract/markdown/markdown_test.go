package markdown

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

func htmlOf(tb testing.TB, doc string) string {
	tb.Helper()
	out, err := AppendHTML(nil, []byte(doc))
	if err != nil {
		tb.Fatal(err)
	}
	return string(out)
}

func TestAppendHTML(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{"", ""},
		{"# A *title* with `code` &amp; [a link](/x)\n", `<title>A title with code &amp; a link</title><p>A title with code &amp; <a href="/x">a link</a>`},
		{"Setext\n======\n\ntext", "<title>Setext</title><p>Setext<p>text"},
		{"## Second\n\n# First\n", "<title>First</title><p>Second<p>First"},
		{"## Second\n", "<title>Second</title><p>Second"},
		{"---\ntitle: T\n---\n# H", "<title>H</title><p>H"},
		{"---\nno end", "<p><p>no end"},
		{"[a](/a \"t\") ![i](/i.png) <http://b.example/?a=1&b=2> <me@a.example>",
			`<p><a href="/a">a</a> <img src="/i.png"> <a href="http://b.example/?a=1&amp;b=2">http://b.example/?a=1&amp;b=2</a> <a href="mailto:me@a.example">me@a.example</a>`},
		{"[a][1], [2] and [three][]\n\n[1]: /one\n[2]: </two two> 'x'\n[Three]: /3", `<p><a href="/one">a</a>, <a href="/two%20two">2</a> and <a href="/3">three</a><p><p><p>`},
		{"[![i](/i.png)](/a)", `<p><a href="/a"><img src="/i.png"></a>`},
		{"- [a](/a)\n- b\n  > [c](/c)", `<p><p><p><a href="/a">a</a><p><p>b<p><p><a href="/c">c</a>`},
		{"```\n[no](/no)\n```\n\n    [no](/no)\n\n`[no](/no)` \\[no](/no)", "<pre>[no](/no)\n</pre><pre>[no](/no)\n</pre><p>[no](/no) [no](/no)"},
		{"<a rel=nofollow href='/r'>r</a>\n\n<div>\n<img src=/d>\n</div>\n", "<p><a rel=nofollow href='/r'>r</a><div>\n<img src=/d>\n</div>\n"},
		{"a  \nb\nc", "<p>a\nb\nc"},
		{"[q](/\"><script>)", `<p><a href="/%22%3E%3Cscript%3E">q</a>`},
		{"[u](/ü%20?a&amp;b)", `<p><a href="/%C3%BC%20?a&amp;b">u</a>`},
	} {
		if got := htmlOf(t, c.doc); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.doc, got, c.want)
		}
	}
	if out, err := AppendHTML([]byte("before "), []byte("x")); err != nil || string(out) != "before <p>x" {
		t.Errorf("%s %v", out, err)
	}
}

// TestPart: long paragraphs are parted, lines of very many lists left out, all else stays.
func TestPart(t *testing.T) {
	for _, same := range []string{"", "\n", "a", "a\n\nb\n", strings.Repeat("word word\n\n", longest), strings.Repeat("x", longest), strings.Repeat("> ", deepest) + "a"} {
		if got := part([]byte(same)); string(got) != same {
			t.Errorf("%.40q became %.40q", same, got)
		}
	}
	for _, long := range []string{strings.Repeat("word ", longest), strings.Repeat("x", 3*longest), strings.Repeat("a line\n", longest), "first\n" + strings.Repeat("x", 2*longest) + "\nlast"} {
		got := part([]byte(long))
		if bytes.Equal(got, []byte(long)) || strings.ReplaceAll(string(got), "\n\n", "") != strings.ReplaceAll(long, "\n\n", "") {
			t.Errorf("%.40q lost something", long)
		}
		for p := range strings.SplitSeq(string(got), "\n\n") {
			if len(strings.Trim(p, "\n")) > longest {
				t.Errorf("a part of %.40q has %d bytes", long, len(p))
			}
		}
	}
	if got := part([]byte("a\n" + strings.Repeat(" ", widest+9) + "b\n")); string(got) != "a\n"+strings.Repeat(" ", widest)+"b\n" {
		t.Errorf("%q", got)
	}
	deep := "a\n\n" + strings.Repeat("> ", deepest+1) + "b\n\nc\n"
	if got := part([]byte(deep)); string(got) != "a\n\n\nc\n" {
		t.Errorf("%q", got)
	}
}

// hostile are documents that parsers of Markdown are slow at, or deep.
func hostile(size int) map[string]string {
	all := map[string]string{}
	for _, unit := range []string{
		"[", "]", "![", "[]", "[a](b)", "[a](<b)", "[a](", "![a](", "[[a](b)", "![a](b ", "*", "**a ", "*a **b ", "_a __b ", "a**b", "`", "` ``", "<", "<a ", "<!--", "<?", "<![CDATA[", "&#", "\\",
		">", "> ", "- ", "* ", "1. ", "-", "=", "#", "\t", " ", "a\n", "[a]: b\n", "[a]: b\n[a]\n", "[a][b]", "- a\n", "> a\n", "|a|b\n", "~~~\n", "<div>\n", "*a_ ", "a@b.", "[^", "\"'(", "x\n=\n",
		"[a\\", "![[]()", "](", "[x](y \"z ", "**x*", "\x00", "\xff", "<x y='", "- - a\n", "[\n", "`a", "[a]:\n",
	} {
		all[unit] = strings.Repeat(unit, size/len(unit))
	}
	indent := ""
	for nested := ""; len(nested) < size; indent += "  " {
		nested += indent + "- a\n"
		all["nested lists"] = nested
	}
	brackets := strings.Repeat("[", size/2) + strings.Repeat("]", size/2)
	all["brackets"], all["links"] = brackets, strings.Repeat("[a", size/8)+strings.Repeat("](b)", size/8)
	all["images"] = strings.Repeat("![a", size/8) + strings.Repeat("](b)", size/8)
	var refs strings.Builder
	for i := 0; refs.Len() < size; i++ {
		fmt.Fprintf(&refs, "[r%d]: /%d\n\n[r%d]\n\n", i, i, i)
	}
	all["references"] = refs.String()
	return all
}

// TestHostile: what is made of a document stays in proportion to it, whatever it is made
// of. The log says how long each took.
func TestHostile(t *testing.T) {
	const size = 128 << 10
	for name, doc := range hostile(size) {
		began := time.Now()
		out, err := AppendHTML(nil, []byte(doc))
		if err != nil || len(out) > 5*size {
			t.Errorf("%.20q: %d bytes, %v", name, len(out), err)
		}
		t.Logf("%.20q: %s, %d bytes", name, time.Since(began), len(out))
	}
}

// FuzzAppendHTML: no document makes it panic.
func FuzzAppendHTML(f *testing.F) {
	for _, doc := range hostile(60) {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if _, err := AppendHTML(nil, doc); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkAppendHTML(b *testing.B) {
	var doc bytes.Buffer
	for i := 0; doc.Len() < 64<<10; i++ {
		fmt.Fprintf(&doc, "## Part %d\n\nSome words with a [link](/part/%d), and *more* words.\n\n- [one](/a/%d): a note\n- two\n\n", i, i, i)
	}
	b.SetBytes(int64(doc.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := AppendHTML(nil, doc.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
