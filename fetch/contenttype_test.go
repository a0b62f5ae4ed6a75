package fetch

import (
	"strconv"
	"strings"
	"testing"
)

// TestReadType holds the standard's way from what is sent to one type.
func TestReadType(t *testing.T) {
	for v, want := range map[string]string{
		"":                               "",
		"text/html":                      "text/html",
		"text/html; charset=utf-8":       "text/html; charset=utf-8", // as it is: nothing to decide
		" TEXT/HTML ;charset=X ":         "TEXT/HTML ;charset=X",
		"text/html;":                     "text/html;",
		"text/html; charset":             "text/html; charset",
		"*/*":                            "",
		"*/*; charset=utf-8":             "",
		"unknown/unknown":                "",
		"Application/Unknown":            "",
		"html":                           "",
		"text/":                          "",
		"/html":                          "",
		"text/html charset=utf-8":        "", // the content decides; see TestTypeOfBody for the charset
		"text/html:charset=utf-8":        "",
		"text/html,text/html":            "text/html",
		"text/plain, text/html":          "text/html",
		"text/html, */*":                 "text/html",
		"text/html, nonsense":            "text/html",
		"nonsense, text/html;charset=a,": "text/html;charset=a",
		"text/html;charset=a, text/html": "text/html;charset=a",
		"text/html;charset=a, text/html;charset=b":    "text/html;charset=b",
		"text/html;charset=a, text/plain":             "text/plain",
		"text/html;charset=a, text/plain, text/html":  "text/html",
		"text/html;charset=a, */*;charset=b":          "text/html;charset=a",
		`text/html; charset="utf-8"`:                  "text/html;charset=utf-8",
		`text/html; charset="utf\-8"`:                 "text/html;charset=utf-8",
		`text/html; charset="utf-8`:                   "text/html;charset=utf-8",
		`text/html; charset="utf-8\`:                  `text/html`,
		`text/html; a="b,c"; charset=x`:               "text/html;charset=x",
		`text/html; a="b\",c"; charset=x, text/plain`: "text/plain",
		`text/html; charset=""; charset=x`:            "text/html", // an empty one in quotes is declared
		`text/html; charset="x" y; z=1`:               "text/html;charset=x",
		`text/html; charset="a b"`:                    "text/html",
		`text/html; charset=" utf-8 "`:                "text/html;charset=utf-8",
		"text/html; charset=windows-1257, text/html":  "text/html;charset=windows-1257",
		`,`: "",
		`"`: "",
	} {
		if got := ReadType(v); got != want {
			t.Errorf("%q: %q, want %q", v, got, want)
		}
	}
}

// TestTypeOfBody: where Content-Type names no type the first bytes do, and what
// it says of the charset stays.
func TestTypeOfBody(t *testing.T) {
	const html, words, png = "<!DOCTYPE html><p>x", "just words", "\x89PNG\r\n\x1a\n...."
	c := newClient(t, nil)
	for _, tc := range []struct {
		lines, body, typ string
		accepts          bool
	}{
		{"Content-Type: text/html,text/html\r\n", words, "text/html", true},
		{"Content-Type: text/html\r\nContent-Type: text/html; charset=koi8-r\r\n", words, "text/html;charset=koi8-r", true},
		{"Content-Type: text/html; charset=windows-1257\r\nContent-Type: text/html\r\n", words, "text/html;charset=windows-1257", true},
		{"Content-Type: text/html charset=koi8-r\r\n", html, "text/html;charset=koi8-r", true},
		{"Content-Type: text/html charset=koi8-r\r\n", png, "image/png;charset=koi8-r", false},
		{"Content-Type: */*\r\n", html, "text/html", true},
		{"Content-Type: unknown/unknown\r\n", words, "text/plain", true},
		{"Content-Type: application/unknown\r\n", png, "image/png", false},
		{"Content-Type:\r\n", html, "text/html", true},
		{"", html, "text/html", true},
		{"Content-Type: image/png\r\n", html, "image/png", false}, // believed
		{"Content-Type: text/html\r\n", png, "text/html", true},
		{"Content-Type: image/png, text/html;q=\"\r\n", html, "text/html", true},
	} {
		s := answers(t, "HTTP/1.1 200 OK\r\n"+tc.lines+"Content-Length: "+strconv.Itoa(len(tc.body))+"\r\n\r\n"+tc.body, false)
		for range 2 { // the second is remembered
			resp, h, err := get(c, s.url)
			if err != nil || h.last.Type != tc.typ || resp.Type != tc.typ || c.Accepts(resp) != tc.accepts || string(h.body) != tc.body {
				t.Errorf("%q: %v, %q, accepted %v", tc.lines, err, resp.Type, c.Accepts(resp))
			}
		}
	}
	many := "Content-Type: " + strings.Repeat("a/b;charset=x,", 2000) + "text/html\r\n"
	s := answers(t, "HTTP/1.1 200 OK\r\n"+many+"Content-Length: 0\r\n\r\n", false)
	if resp, _, err := get(c, s.url); err != nil || resp.Type != "text/html" {
		t.Errorf("a long list: %v %q", err, resp.Type)
	}
}

// TestCharsetBesideNoType: a Content-Type that names no type may still declare a
// charset, behind bytes that are no UTF-8 or letters that get longer in lower case.
func TestCharsetBesideNoType(t *testing.T) {
	for v, want := range map[string]string{
		"":               "text/html",
		"Charset=koi8-r": "text/html;charset=koi8-r",
		strings.Repeat("\xff", 10) + "charset=koi8-r": "text/html;charset=koi8-r",
		strings.Repeat("\u023a", 10) + "charset=":     "text/html",
	} {
		if got := withCharset("text/html", v); got != want {
			t.Errorf("%q: %q, want %q", v, got, want)
		}
	}
}
