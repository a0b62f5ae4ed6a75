package extract

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedData returns a folder of the public test suites that stand beside the
// repository.
func sharedData(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, e := os.Stat(filepath.Join(dir, "go.mod")); e == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	data := filepath.Join(dir, "..", "shared", "testdata", name)
	if _, err := os.Stat(data); err != nil {
		t.Skipf("SKIPPED: %v; the public suite is not here", err)
	}
	return data
}

func zip(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var listCases = []struct {
	name, body string
	want       []string
}{
	{"urlset", `<?xml version="1.0"?><urlset><url><loc> http://a.example/?a=1&amp;b=2 </loc></url><url><loc>http://a.example/2</loc>` +
		`<lastmod>2020-01-01</lastmod></url></urlset>`, []string{"loc http://a.example/?a=1&b=2", "loc http://a.example/2"}},
	{"cdata and pieces", `<urlset><url><loc>http://a<![CDATA[.example/&amp;]]>/<!-- x > -->y</loc></url></urlset>`, []string{"loc http://a.example/&amp;/y"}},
	{"prefix", `<s:urlset xmlns:s="x"><s:url><s:loc>http://a.example/</s:loc></s:url></s:urlset>`, []string{"loc http://a.example/"}},
	{"image", `<urlset><url><image:image><image:loc>http://i.example/</image:loc></image:image><loc>http://a.example/</loc></url></urlset>`,
		[]string{"loc http://a.example/"}},
	{"index", `<sitemapindex><sitemap><loc>http://a.example/1.xml</loc></sitemap><sitemap>http://a.example/2.xml</sitemap></sitemapindex>`,
		[]string{"index http://a.example/1.xml", "index http://a.example/2.xml"}},
	{"cut", `<urlset><url><loc>http://a.example/1</loc></url><url><loc>http://a.example/2</loc><lastm`,
		[]string{"loc http://a.example/1", "loc http://a.example/2"}},
	{"cut in loc", `<urlset><url><loc>http://a.example/1</loc></url><url><loc>http://a.example/2`, []string{"loc http://a.example/1"}},
	{"alternate", `<urlset><url><loc>http://a.example/</loc><xhtml:link rel="alternate" hreflang="de" href="http://a.example/de"/></url></urlset>`,
		[]string{"alternate http://a.example/de", "loc http://a.example/"}},
	{"text", "\xef\xbb\xbfhttp://a.example/1\r\n\nnonsense\nhttps://a.example/2", []string{"loc http://a.example/1", "loc https://a.example/2"}},
	{"rss", `<rss><channel><link>http://a.example/</link><item><title>x &amp; y</title><link>http://a.example/1</link><guid>http://a.example/g</guid></item>` +
		`<item><guid>http://a.example/2</guid><enclosure url="http://a.example/3.mp3" type="audio/mpeg"/></item></channel></rss>`,
		[]string{"home http://a.example/", "entry http://a.example/1", "enclosure http://a.example/3.mp3", "entry http://a.example/2"}},
	{"atom", `<feed xmlns="http://www.w3.org/2005/Atom"><link href="http://a.example/"/><link rel="self" href="http://a.example/f"/>` +
		`<entry><link rel="edit" href="http://a.example/e"/><link href="http://a.example/1"/></entry></feed>`,
		[]string{"home http://a.example/", "entry http://a.example/1"}},
	{"error page", `<!DOCTYPE html><html><a href=x></html>`, nil},
	{"nul", "<urlset><url><loc>http://a.example/1</loc>\x00</url></urlset>", []string{"loc http://a.example/1"}},
	{"entities", `<urlset><url><loc>http://a.example/&#x26;&lt;&apos;&quot;</loc></url></urlset>`, []string{`loc http://a.example/&<'"`}},
	{"image by namespace", `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:i="http://www.google.com/schemas/sitemap-image/1.1"><url><i:image><i:loc>http://i.example/</i:loc></i:image>` +
		`<loc>http://a.example/</loc><image xmlns="http://www.google.com/schemas/sitemap-image/1.1"><loc>http://i.example/2</loc><lastmod>no</lastmod></image></url></urlset>`, []string{"loc http://a.example/"}},
	{"namespace that ends", `<urlset xmlns="x"><url><loc xmlns="y">http://n.example/</loc><loc>http://a.example/1</loc></url><url xmlns="y"><loc>http://n.example/</loc></url>` +
		`<url xmlns=""><loc>http://a.example/2</loc></url></urlset>`, []string{"loc http://a.example/1", "loc http://a.example/2"}},
	{"loc in another place", `<urlset><loc>http://a.example/1</loc><url><thing><loc>http://n.example/</loc></thing></url></urlset>`, []string{"loc http://a.example/1"}},
	{"words before it", "Warning: x in y\n<?xml version='1.0'?>\n<urlset><url><loc>http://a.example/</loc></url></urlset>", []string{"loc http://a.example/"}},
	{"rss images and texts", `<rss><channel><image><url>http://n.example/</url><link>http://n.example/</link></image><textInput><link>http://n.example/</link></textInput>` +
		`<item><guid isPermaLink="false">http://n.example/</guid><source url="http://n.example/">x</source><comments>http://n.example/</comments></item>` +
		`<item><guid isPermaLink="true">http://a.example/1</guid><media:content xmlns:media="m" url="http://n.example/"/></item></channel></rss>`, []string{"entry http://a.example/1"}},
	{"atom link in rss", `<rss xmlns:a10="http://www.w3.org/2005/Atom"><channel><a10:link rel="self" href="http://n.example/"/><item><a10:link href="http://a.example/1"/></item>` +
		`<item><link>http://a.example/2</link><a10:link rel="self" href="http://n.example/"/></item></channel></rss>`, []string{"entry http://a.example/1", "entry http://a.example/2"}},
	{"rss 1.0", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="http://n.example/f">` +
		`<link>http://a.example/</link><items><rdf:Seq><rdf:li resource="http://n.example/"/></rdf:Seq></items></channel><image><url>http://n.example/</url></image>` +
		`<item rdf:about="http://a.example/1"><link>http://a.example/1</link><dc:date>2020</dc:date></item><item rdf:about="http://a.example/2"/></rdf:RDF>`,
		[]string{"home http://a.example/", "entry http://a.example/1", "entry http://a.example/2"}},
	{"atom source and content", `<feed xmlns="http://www.w3.org/2005/Atom"><entry><source><link href="http://n.example/"/></source><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">` +
		`<link href="http://n.example/"/></div></content><link rel="http://www.iana.org/assignments/relation/alternate" href="http://a.example/1"/><link rel="alternate" hreflang="de" href="http://a.example/2"/>` +
		`<link rel="related" href="http://n.example/"/></entry></feed>`, []string{"entry http://a.example/2", "entry http://a.example/1"}},
	{"doctype", `<!DOCTYPE urlset [<!ENTITY x "y">]><urlset><url><loc>http://a.example/</loc></url></urlset>`, []string{"loc http://a.example/"}},
}

func TestListings(t *testing.T) {
	for _, c := range listCases {
	sizes:
		for _, size := range []int{0, 1, 2, 3, 7} {
			for i, body := range []string{c.body, zip(t, c.body), zip(t, zip(t, c.body))} {
				got, _ := scanLinks(t, Config{Kinds: All}, Doc{Sitemap: true}, body, size)
				if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
					t.Errorf("%s, pieces of %d, gzipped %d times: got %q, want %q", c.name, size, i, got, c.want)
					break sizes
				}
			}
		}
	}
}

// A document that was gzipped, whatever it is and however often, unpacks to
// MaxBytes at most on every level.
func TestUnpackedBound(t *testing.T) {
	const most = 1 << 20
	links := strings.Repeat("<a href=x>", 2*most/10)
	page := Doc{ContentType: "text/html"}
	for name, body := range map[string]string{"once": zip(t, links), "twice": zip(t, zip(t, links))} {
		got, s := scanLinks(t, Config{Kinds: All, MaxBytes: most}, page, body, 0)
		if len(got) == 0 || len(got) > most/10 || !s.Facts().Truncated {
			t.Errorf("%s: %d links, truncated %t", name, len(got), s.Facts().Truncated)
		}
	}
	got, s := scanLinks(t, Config{Kinds: All, MaxBytes: most}, page, zip(t, links[:most]), 0)
	if len(got) != most/10 || s.Facts().Truncated {
		t.Errorf("within the bound: %d links, truncated %t", len(got), s.Facts().Truncated)
	}
}

func TestListingBounds(t *testing.T) {
	body := "<urlset>" + strings.Repeat("<url><loc>http://a.example/</loc></url>", 100) + "</urlset>"
	got, s := scanLinks(t, Config{Kinds: All, MaxLocs: 10}, Doc{Sitemap: true}, body, 0)
	if len(got) != 10 || !s.Facts().Truncated {
		t.Errorf("MaxLocs 10: %d links, truncated %t", len(got), s.Facts().Truncated)
	}
	got, s = scanLinks(t, Config{Kinds: All, MaxBytes: 500}, Doc{Sitemap: true}, zip(t, body), 0)
	if len(got) == 0 || len(got) > 13 || !s.Facts().Truncated {
		t.Errorf("MaxBytes 500: %d links, truncated %t", len(got), s.Facts().Truncated)
	}
	zipped := zip(t, body)
	got, s = scanLinks(t, Config{Kinds: All}, Doc{Sitemap: true}, zipped[:len(zipped)-12], 0)
	if len(got) == 0 || !s.Facts().Truncated {
		t.Errorf("cut gzip: %d links, truncated %t", len(got), s.Facts().Truncated)
	}
}

func TestLastModAndPriority(t *testing.T) {
	s := NewScanner(Config{Kinds: All})
	n := 0
	s.Reset(Doc{ContentType: "text/xml"}, func(l *Link) {
		n++
		if string(l.LastMod) != "2020-01-01" || l.Priority != 0.5 {
			t.Errorf("lastmod %q, priority %g", l.LastMod, l.Priority)
		}
	})
	s.Write([]byte(`<urlset><url><loc>http://a.example/</loc><lastmod> 2020-01-01 </lastmod><priority>0.5</priority></url></urlset>`))
	s.Close()
	if n != 1 {
		t.Errorf("%d links", n)
	}
}

// The public samples, in pieces of all sizes.
func TestSharedSitemaps(t *testing.T) {
	dir := sharedData(t, "sitemaps")
	counts := map[string]int{
		"atom.xml": 2, "do-not-visit.txt": 1, "feed.rss": 3, "sitemap-with-bom.txt": 2, "sitemap.badns.xml": 2, "sitemap.index.xml": 15,
		"sitemap.ns.xml": 2, "sitemap.txt": 2, "sitemap.txt.gz": 5, "xmlRss_pubDate.xml": 7, "xmlSitemap.gz": 5,
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.*"))
	more, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	for _, file := range append(files, more...) {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := scanLinks(t, Config{Kinds: All}, Doc{Sitemap: true}, string(body), 0)
		n := 0
		for _, l := range want {
			if k, _, _ := strings.Cut(l, " "); k == "loc" || k == "index" || k == "entry" {
				n++
			}
		}
		locs, ok := counts[filepath.Base(file)]
		if !ok {
			locs = strings.Count(string(body), "<loc>")
		}
		if n != locs {
			t.Errorf("%s: %d locations, want %d: %q", file, n, locs, want)
		}
		for _, size := range []int{1, 2, 13, 1000} {
			if got, _ := scanLinks(t, Config{Kinds: All}, Doc{Sitemap: true}, string(body), size); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s in pieces of %d: got %q, want %q", file, size, got, want)
			}
		}
	}
}
