package extract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func charsetOf(doc Doc, body string) (string, Authority) {
	s := NewScanner(Config{})
	s.Reset(doc, func(*Link) {})
	s.Write([]byte(body))
	s.Close()
	return s.Facts().Charset, s.Facts().CharsetBy
}

func TestCharset(t *testing.T) {
	for _, c := range []struct {
		name, typ, body, want string
		by                    Authority
	}{
		{"nothing", "text/html", "<p>x", "windows-1252", ByDefault},
		{"header", "text/html; charset=ISO-8859-1", "<meta charset=utf-8>", "windows-1252", ByHeader},
		{"quoted header", `text/html;charset="UTF-8"`, "", "utf-8", ByHeader},
		{"broken header", `text/html; foo bar; charset=koi8-r`, "", "koi8-r", ByHeader},
		{"unknown header", "text/html; charset=no-such", "<meta charset=koi8-r>", "koi8-r", ByMeta},
		{"bom before header", "text/html; charset=koi8-r", "\xef\xbb\xbfx", "utf-8", ByBOM},
		{"utf-16 bom", "text/html; charset=koi8-r", "\xff\xfex\x00", "utf-16le", ByBOM},
		{"meta", "text/html", "<META Charset='GB2312'>", "gbk", ByMeta},
		{"meta content", "text/html", `<meta content="text/html; charset=Shift_JIS" http-equiv=content-type>`, "shift_jis", ByMeta},
		{"meta content without pragma", "text/html", `<meta content="text/html; charset=Shift_JIS">`, "windows-1252", ByDefault},
		{"meta utf-16", "text/html", `<meta charset=utf-16>`, "utf-8", ByMeta},
		{"meta in comment", "text/html", `<!-- <meta charset=koi8-r> --><meta charset=big5>`, "big5", ByMeta},
		{"late meta", "text/html", strings.Repeat(" ", 3000) + `<meta charset=big5>`, "big5", ByMeta},
		{"unknown meta", "text/html", `<meta charset=no-such><meta charset=big5>`, "big5", ByMeta},
		{"detected", "text/html", "<p>\xc3\xa4", "utf-8", ByDetector},
		{"xml", "text/xml", "<?xml version='1.0' encoding='koi8-r'?><urlset/>", "koi8-r", ByMeta},
		{"css", "text/css", `@charset "koi8-r";`, "koi8-r", ByMeta},
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
		{"text/html; charset=windows-1251", "<a href='?&#8364;\xef&#9731;'>", "a http://a.example/d/doc?%88%EF%26%239731%3B"},
	} {
		got, _ := pageLinks(t, PageConfig{}, Doc{ContentType: c.typ}, c.body)
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s %q: got %q, want %q", c.typ, c.body, got, c.want)
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
			_, want := lookup(label)
			rows++
			got, by := charsetOf(Doc{ContentType: "text/html"}, data)
			if by == ByDetector { // the suite knows none
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
