package extract

import (
	"strings"
	"testing"

	"seine/frontier/canon"
)

func mustURL(t testing.TB, raw string) *canon.URL {
	t.Helper()
	var u canon.URL
	if err := canon.NewParser(canon.Config{}).Parse(&u, []byte(raw)); err != nil {
		t.Fatal(err)
	}
	return &u
}

// pageLinks returns "kind url" of each URL found, with "-" in front when it is
// not to be followed.
func pageLinks(t testing.TB, cfg PageConfig, doc Doc, body string) ([]string, *Page) {
	t.Helper()
	p := NewPage(cfg)
	if doc.Base == nil {
		doc.Base = mustURL(t, "http://a.example/d/doc")
	}
	var got []string
	p.Reset(doc, func(f *Found) {
		line := f.Kind.String() + " " + string(f.URL.Fetch())
		if !f.Follow {
			line = "-" + line
		}
		got = append(got, line)
	})
	p.Write([]byte(body))
	p.Close()
	return got, p
}

func TestPage(t *testing.T) {
	for _, c := range []struct {
		name, body string
		doc        Doc
		want       []string
	}{
		{"resolve", `<a href=x>`, Doc{}, []string{"a http://a.example/d/x"}},
		{"once", `<a href=x><a href=./x><a href=x#y>`, Doc{}, []string{"a http://a.example/d/x"}},
		{"base first wins", `<base href=/b/><base href=/c/><a href=x>`, Doc{}, []string{"a http://a.example/b/x"}},
		{"base without href", `<base target=x><base href=/c/><a href=x>`, Doc{}, []string{"a http://a.example/c/x"}},
		{"links before base", `<head><link rel=next href=n><base href=/b/></head><a href=x>`, Doc{},
			[]string{"next http://a.example/b/n", "a http://a.example/b/x"}},
		{"unusable base", `<base href="data:,x"><a href=x>`, Doc{}, []string{"a http://a.example/d/x"}},
		{"unusable base wins", `<base href="javascript:x"><base href=/b/><a href=x>`, Doc{}, []string{"a http://a.example/d/x"}},
		{"nofollow link", `<a rel=nofollow href=x><a href=y>`, Doc{}, []string{"-a http://a.example/d/x", "a http://a.example/d/y"}},
		{"followed after all", `<a rel=nofollow href=x><a href=x>`, Doc{}, []string{"-a http://a.example/d/x", "a http://a.example/d/x"}},
		{"nofollow page", `<link rel=next href=n><meta name=ROBOTS content="index, NOFOLLOW"><a href=x>`, Doc{},
			[]string{"-next http://a.example/d/n", "-a http://a.example/d/x"}},
		{"nofollow header", `<a href=x>`, Doc{Robots: []string{"none"}}, []string{"-a http://a.example/d/x"}},
		{"nofollow of others", `<a href=x>`, Doc{Robots: []string{"otherbot: none"}}, []string{"a http://a.example/d/x"}},
		{"headers", ``, Doc{Link: []string{`<n>; rel="next", <s.css>; rel=stylesheet`}, Refresh: []string{"5; url=r"}},
			[]string{"header http://a.example/d/n", "refresh http://a.example/d/r"}},
		{"other schemes", `<a href="mailto:x"><a href="javascript:void(0)"><a href="http://[">`, Doc{}, nil},
	} {
		if got, _ := pageLinks(t, PageConfig{}, c.doc, c.body); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
