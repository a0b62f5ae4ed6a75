package extract

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// pageTrace is all that a page hands on and counts.
func pageTrace(t testing.TB, p *Page, body []byte) string {
	var b strings.Builder
	doc := benchDoc
	doc.Base = mustURL(t, "http://docs.example/a/b/page.html")
	p.Reset(doc, func(f *Found) {
		fmt.Fprintf(&b, "%s %q %q %s %t %t\n", f.Kind, f.Raw, f.Rel, f.URL.Fetch(), f.NoFollow, f.Follow)
	})
	p.Write(body)
	p.Close()
	fmt.Fprintf(&b, "%+v", p.Counts())
	return b.String()
}

// repeatsAlike fails unless a page gives the same where anchors that repeat are
// passed over at once as where they are not.
func repeatsAlike(t testing.TB, quick, slow *Page, name string, body []byte) {
	t.Helper()
	if got, want := pageTrace(t, quick, body), pageTrace(t, slow, body); got != want {
		t.Fatalf("%s: %.3000q\ngot\n%.3000s\nwant\n%.3000s", name, body, got, want)
	}
}

func TestRepeatsChangeNothing(t *testing.T) {
	for _, cfg := range []PageConfig{{}, {MaxLinks: 5}, {Config: Config{Kinds: All &^ Of(CSS)}, Follow: Of(Area)}} {
		quick, slow := NewPage(cfg), NewPage(cfg)
		slow.scan.col.met = nil
		for i := range corpora {
			for n, p := range corpus(t, i) {
				if n%10 == 0 {
					repeatsAlike(t, quick, slow, p.name, p.body)
				}
			}
		}
		rng := rand.New(rand.NewPCG(7, 8))
		texts := strings.Fields(`x /x /x#f x# #f /x"y /x'y /x&amp;y /x&y /x%20y /é /xé#f /x#é&amp; /x&#35;f . ./x //h/x http://h/x?q javascript:x ` +
			`a-text/that-is-longer/than-words-of/eight-bytes.html a-text/that-is-longer/than-words-of/eight-bytes.html#f`)
		texts = append(texts, "", " /x", "/x ", "/x y", "/x\ry", "/x\x00y", "/x\ny#f")
		forms := []string{`<a href="%s">`, `<a href='%s'>`, `<a href=%s>`, `<A class="c" HREF = "%s" id=x>`, `<a rel=nofollow href="%s">`, `<a href="%s" style="background:url(y.png)">`, `<link rel=next href="%s">`, `<area href="%s">`}
		for range 500 {
			var body []byte
			for range 40 {
				body = fmt.Appendf(body, forms[rng.IntN(len(forms))], texts[rng.IntN(len(texts))])
			}
			repeatsAlike(t, quick, slow, "soup", body)
		}
	}
}
