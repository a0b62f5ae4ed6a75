package extract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seine/extract/charset"
)

func charsetOf(doc Doc, body string) (string, charset.Authority) {
	s := NewScanner(Config{})
	s.Reset(doc, func(*Link) {})
	s.Write([]byte(body))
	s.Close()
	return s.Facts().Charset, s.Facts().CharsetBy
}

func TestCharset(t *testing.T) {
	for _, c := range []struct {
		name, typ, body, want string
		by                    charset.Authority
	}{
		{"nothing", "text/html", "<p>x", "windows-1252", charset.ByDefault},
		{"header", "text/html; charset=ISO-8859-1", "<meta charset=utf-8>", "windows-1252", charset.ByHeader},
		{"quoted header", `text/html;charset="UTF-8"`, "", "utf-8", charset.ByHeader},
		{"broken header", `text/html; foo bar; charset=koi8-r`, "", "koi8-r", charset.ByHeader},
		{"unclosed header", `text/html; charset="koi8-r`, "", "koi8-r", charset.ByHeader},
		{"escaped header", `text/html; charset="koi8\-r"; x=`, "", "koi8-r", charset.ByHeader},
		{"escaped header in a list", `text/html; charset="utf\-8", */*`, "", "utf-8", charset.ByHeader},
		{"two headers", "text/html; charset=windows-1257, text/html", "", "windows-1257", charset.ByHeader},
		{"blanks in a quoted header", `text/html; charset=" koi8-r "`, "", "koi8-r", charset.ByHeader},
		{"unknown header", "text/html; charset=no-such", "<meta charset=koi8-r>", "koi8-r", charset.ByMeta},
		{"bom before header", "text/html; charset=koi8-r", "\xef\xbb\xbfx", "utf-8", charset.ByBOM},
		{"utf-16 bom", "text/html; charset=koi8-r", "\xff\xfex\x00", "utf-16le", charset.ByBOM},
		{"meta", "text/html", "<META Charset='GB2312'>", "gbk", charset.ByMeta},
		{"meta content", "text/html", `<meta content="text/html; charset=Shift_JIS" http-equiv=content-type>`, "shift_jis", charset.ByMeta},
		{"meta content without pragma", "text/html", `<meta content="text/html; charset=Shift_JIS">`, "windows-1252", charset.ByDefault},
		{"meta utf-16", "text/html", `<meta charset=utf-16>`, "utf-8", charset.ByMeta},
		{"meta in comment", "text/html", `<!-- <meta charset=koi8-r> --><meta charset=big5>`, "big5", charset.ByMeta},
		{"late meta", "text/html", strings.Repeat(" ", 3000) + `<meta charset=big5>`, "big5", charset.ByMeta},
		{"unknown meta", "text/html", `<meta charset=no-such><meta charset=big5>`, "big5", charset.ByMeta},
		{"detected", "text/html", "<p>\xc3\xa4", "utf-8", charset.ByDetector},
		{"xml", "text/xml", "<?xml version='1.0' encoding='koi8-r'?><urlset/>", "koi8-r", charset.ByMeta},
		{"xml declaration of html", "text/html", "<?xml version='1.0' encoding='koi8-r'?><html><p>x", "koi8-r", charset.ByMeta},
		{"xhtml", "application/xhtml+xml", `<?xml version="1.0" encoding="windows-1251"?><html><p>x`, "windows-1251", charset.ByMeta},
		{"svg", "image/svg+xml", `<?xml version="1.0" encoding="windows-1251"?><svg/>`, "windows-1251", charset.ByMeta},
		{"no xml declaration", "text/html", "<?xml version='1.0'><p>encoding='koi8-r'?>", "windows-1252", charset.ByDefault},
		{"xml declaration and meta", "text/html", "<?xml version='1.0' encoding='koi8-r'?><meta charset=big5>", "big5", charset.ByMeta},
		{"css", "text/css", `@charset "koi8-r";`, "koi8-r", charset.ByMeta},
	} {
		if got, by := charsetOf(Doc{ContentType: c.typ}, c.body); got != c.want || by != c.by {
			t.Errorf("%s: %s by %s, want %s by %s", c.name, got, by, c.want, c.by)
		}
	}
}

func TestLegacyEncodings(t *testing.T) {
	for _, c := range []struct{ typ, body, want string }{
		{"text/html; charset=windows-1251", "<a href='/\xef?\xef'>", "a http://a.example/%D0%BF?%EF"},
		{"text/html; charset=gb2312", "<a href='/\xc4\xe3?q=\xc4\xe3&amp;x=1'>", "a http://a.example/%E4%BD%A0?q=%C4%E3&x=1"},
		{"text/html; charset=shift_jis", "<a href='?\x83\x5c'>", "a http://a.example/d/doc?%83\\"},
		{"text/html; charset=euc-kr", "<a href='?\xb0\xa1'>", "a http://a.example/d/doc?%B0%A1"},
		{"text/html; charset=utf-16le", "<\x00a\x00 \x00h\x00r\x00e\x00f\x00=\x00/\x00\xe4\x00>\x00", "a http://a.example/%C3%A4"},
		{"text/html", "\xfe\xff\x00<\x00a\x00 \x00h\x00r\x00e\x00f\x00=\x00x\x00>", "a http://a.example/d/x"},
		{"text/html; charset=iso-2022-jp", "<a href='/\x1b$B$\"\x1b(B'>", "a http://a.example/%E3%81%82"},
		{"text/html; charset=iso-2022-jp", "<a href='?\x1b$B$\"\x1b(B'>", "a http://a.example/d/doc?%1B$B$%22%1B(B"},
		{"text/html", strings.Repeat(" ", 9000) + "<a href='?\xc3\xa4'>", "a http://a.example/d/doc?%C3%A4"},
		{"text/html", strings.Repeat(" ", 9000) + "<a href='?&auml;'>", "a http://a.example/d/doc?%E4"},
		{"text/html", strings.Repeat(" ", 9000) + "<a href='?\xe4'>", "a http://a.example/d/doc?%E4"},
		{"text/html; charset=windows-1251", "<a href='?&#8364;\xef&#9731;'>", "a http://a.example/d/doc?%88%EF%26%239731%3B"},
		{"text/html", "<meta charset=big5><a href=\"?q=\xad\xbb\xb4\xe4\">", "a http://a.example/d/doc?q=%AD%BB%B4%E4"},
		{"text/html", "<meta charset=iso-8859-2><a href=\"?q=\x9a\">", "a http://a.example/d/doc?q=%9A"},
		{"text/html; charset=gbk", "<a href='/\xaa\xa1?\xa8\xbc'>", "a http://a.example/%EE%80%80?%A8%BC"},
	} {
		got, _ := pageLinks(t, PageConfig{}, Doc{ContentType: c.typ}, c.body)
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s %q: got %q, want %q", c.typ, c.body, got, c.want)
		}
	}
}

// Text of a page that declares nothing is UTF-8 where it is valid, also where a
// bound cuts a character.
func TestCutCharacter(t *testing.T) {
	body := strings.Repeat("a", 9000) + strings.Repeat("\u00e4", 100)
	for max := 9000; max < 9004; max++ {
		_, s := scanLinks(t, Config{Text: true, MaxText: max}, Doc{ContentType: "text/html"}, body, 0)
		if got, want := string(s.Facts().Text), body[:max&^1]; got != want {
			t.Errorf("text of %d bytes ends in %q, want %q", max, got[8990:], want[8990:])
		}
	}
	for a := range 4 {
		title := strings.Repeat("a", a) + strings.Repeat("\u00e4", 20)
		_, s := scanLinks(t, Config{MaxTitle: 3}, Doc{ContentType: "text/html"}, strings.Repeat(" ", 9000)+"<title>"+title+"</title>", 0)
		if got := string(s.Facts().Title); !strings.HasPrefix(title, got) {
			t.Errorf("title %q of %q", got, title)
		}
	}
}

// The rows of the html5lib suite; those whose declaration a script writes are
// aside.
func TestSharedEncodings(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(sharedData(t, "encoding"), "*.dat"))
	rows := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for block := range strings.SplitSeq(string(text), "#data\n") {
			data, rest, ok := strings.Cut(block, "\n#encoding\n")
			if !ok {
				continue
			}
			label, _, _ := strings.Cut(rest, "\n")
			_, want := charset.Lookup(label)
			rows++
			got, by := charsetOf(Doc{ContentType: "text/html"}, data)
			if by == charset.ByDetector { // the suite knows none
				got = "windows-1252"
			}
			if got != want && !strings.Contains(data, "document.write") {
				t.Errorf("%s: %q: %s by %s, want %s", filepath.Base(file), data[:min(len(data), 300)], got, by, want)
			}
		}
	}
	if rows < 80 {
		t.Errorf("%d rows", rows)
	}
}
