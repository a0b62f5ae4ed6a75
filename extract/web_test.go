package extract

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// webCase reads an input of the shared folder: a page, or the body of a whole
// answer with its type.
func webCase(t *testing.T, name string) (typ, body string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(sharedData(t, "webcases"), name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".raw") {
		return "", string(b)
	}
	answer, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Header.Get("Content-Type"), string(content)
}

// Pages and sitemaps that crawlers misread.
func TestWebCases(t *testing.T) {
	many := "" // of N01.b.html
	for i := range 65 {
		many += "alternate https://example.com/dir/l/" + strconv.Itoa(i+1) + "|"
	}
	for _, c := range []struct {
		file    string
		sitemap bool
		want    string
	}{
		{"N01.a.html", false, "a https://example.com/dir/one"},
		{"N01.b.html", false, many},
		{"N02.html", false, "a https://example.com/open"},
		{"N20.xml", true, "loc https://example.com/p1"},
		{"N21.xml", true, ""},
		{"N24.xml", true, "loc https://example.com/caf%C3%A9"},
		{"N25.sitemap.raw", true, "loc http://www.example.com/p1"},
		{"N26.sitemap.raw", true, "loc http://example.com/p1"},
		{"X03.sitemap.raw", true, "loc http://example.com/p1"},
		{"X04.index.raw", true, "index http://example.com/sitemap-1.xml"},
		{"X04.child.raw", true, "loc http://example.com/blog/1"},
	} {
		typ, body := webCase(t, c.file)
		doc := Doc{ContentType: typ, Sitemap: c.sitemap, Base: mustURL(t, "https://example.com/page/")}
		got, _ := pageLinks(t, PageConfig{Config: Config{Kinds: All}, Follow: All}, doc, body)
		if s := strings.Join(got, "|"); s != strings.TrimSuffix(c.want, "|") {
			t.Errorf("%s: got %q, want %q", c.file, s, c.want)
		}
	}
}
