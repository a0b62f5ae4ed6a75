package frontier

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEntryForms(t *testing.T) {
	for _, c := range []struct{ site, url, stored string }{
		{"a.example", "https://a.example/x", "1200H\x01/x"},
		{"a.example", "https://www.a.example/x", "1200P\x01/x"},
		{"a.example", "http://a.example/x", "1200X\x01/x"},
		{"a.example", "http://www.a.example/x", "1200@\x01http://www.a.example/x"},
		{"a.example", "https://a.example:8080/", "1200H\x01:8080/"},
		{"www.example", "https://www.example/", "1200H\x01/"},
		{"[::1]", "http://[::1]/", "1200X\x01/"},
	} {
		e := Entry{URL: c.url, Priority: 2, Depth: 1}
		stored := string(AppendEntry(nil, c.site, &e))
		if stored != c.stored {
			t.Errorf("%s is stored as %q, want %q", c.url, stored, c.stored)
		}
		if back, err := DecodeEntry(stored, c.site); err != nil || back != e {
			t.Errorf("%q is %+v, %v, want %+v", stored, back, err, e)
		}
	}
}

// TestEntryOfRedirect: the trail stands where programs that do not know it see a
// fragment, which they drop. What such programs would misread is of version 2.
func TestEntryOfRedirect(t *testing.T) {
	for stored, want := range map[string]Entry{
		"1000J\x01\x02/x#AbC_de-1":                 {URL: "https://a.example/x", Depth: 1, Redirects: 2, Trail: "AbC_de-1"},
		"1000J\x01\x02/x#AbC_,3/b,c":               {URL: "https://a.example/x", Depth: 1, Redirects: 2, Trail: "AbC_", From: "http://a.example/b,c"},
		"1000J\x01\x02/x#,0http://b/":              {URL: "https://a.example/x", Depth: 1, Redirects: 2, From: "http://b/"},
		"1000J\x01\x02/x":                          {URL: "https://a.example/x", Depth: 1, Redirects: 2},
		"2000H\x44\x01\x11{\"method\":\"HEAD\"}/x": {URL: "https://a.example/x", Depth: 1, Request: `{"method":"HEAD"}`},
		"2000\xe8@\x01\x09b.example/x":             {URL: "https://a.example/x", Depth: 1, Sitemap: true, SitemapOf: "b.example"},
	} {
		if got := string(AppendEntry(nil, "a.example", &want)); got != stored {
			t.Errorf("%+v is stored as %q, want %q", want, got, stored)
		}
		if back, err := DecodeEntry(stored, "a.example"); err != nil || back != want {
			t.Errorf("%q is %+v, %v, want %+v", stored, back, err, want)
		}
	}
	if e, err := DecodeEntry("1000\xe8\x01\x09b.example/x", "a.example"); err != nil || e.SitemapOf != "b.example" {
		t.Errorf("as it was once stored: %+v, %v", e, err)
	}
}

func TestEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		site := rapid.SampledFrom([]string{"a.example", "www.example", "example", ""}).Draw(t, "site")
		start := rapid.SampledFrom([]string{"https://", "http://", "https://www.", "https:/", "ftp://", ""}).Draw(t, "start")
		e := Entry{
			URL: start + site + rapid.StringMatching(`[^#]*`).Draw(t, "rest"), Priority: rapid.Uint8Range(0, 3).Draw(t, "class"),
			Depth: rapid.Uint32().Draw(t, "depth"), Redirects: rapid.Uint8().Draw(t, "redirects"), Seed: rapid.Bool().Draw(t, "seed"),
			Lost: rapid.Uint8Range(0, 3).Draw(t, "lost"), Attempts: rapid.Uint8Range(0, 207).Draw(t, "attempts"), Meta: rapid.String().Draw(t, "meta"),
			Sitemap: rapid.Bool().Draw(t, "sitemap"), SitemapOf: rapid.SampledFrom([]string{"", "www.a.example"}).Draw(t, "of"),
			Request:  rapid.SampledFrom([]Request{"", `{"method":"HEAD"}`, `{"header":[["X","1"]],"body":"#a"}`}).Draw(t, "request"),
			Referrer: rapid.SampledFrom([]string{"", start + site + "/a", "https://b.example/"}).Draw(t, "referrer"),
		}
		if rapid.Bool().Draw(t, "fetched") {
			e.Last = Fetched{Interval: time.Duration(rapid.Int64Range(0, 9e12).Draw(t, "interval")) * time.Millisecond, At: rapid.Int64Range(0, 9e12).Draw(t, "at"),
				Modified: rapid.Int64Range(0, 9e12).Draw(t, "modified"), ETag: rapid.String().Draw(t, "etag"), Digest: rapid.Uint64().Draw(t, "digest")}
		}
		if e.Redirects > 0 {
			e.From = rapid.SampledFrom([]string{"", start + site + "/b,c", "x"}).Draw(t, "from")
			e.Trail = Trail(rapid.StringMatching(`([A-Za-z0-9_-]{4}){0,3}`).Draw(t, "trail"))
		}
		back, err := DecodeEntry(string(AppendEntry(nil, site, &e)), site)
		if err != nil || back != e {
			t.Fatalf("%+v came back as %+v, %v", e, back, err)
		}
	})
}

// What has nothing of version 2 is written in version 1; flags of a later program
// are refused.
func TestEntryVersions(t *testing.T) {
	e := Entry{URL: "https://a.example/x", Depth: 1}
	if got := AppendEntry(nil, "a.example", &e); got[0] != '1' {
		t.Errorf("an entry of the plain kind is %q", got)
	}
	e.Last = Fetched{Interval: time.Hour}
	stored := AppendEntry(nil, "a.example", &e)
	if stored[0] != '2' {
		t.Errorf("an entry that was fetched is %q", stored)
	}
	if back, err := DecodeEntry(string(stored), "a.example"); err != nil || back != e {
		t.Errorf("%q is %+v, %v", stored, back, err)
	}
	stored[5] |= 0x80
	if _, err := DecodeEntry(string(stored), "a.example"); err != ErrEntry {
		t.Errorf("flags of a later program: %v", err)
	}
}

func FuzzDecodeEntry(f *testing.F) {
	for _, s := range []string{"", "1200@\x01https://a.example/", "1200G\x00\x01\x05{\"a\"}x", "1200D\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "2200@\x01x", "1200B\x80", "2200@A\x01\x05\x01\x01abcdefgh\x01Ex", "2200@A\x01\x05", "2200@B\x001\x02/ab/c", "2200@B\x004\x01/x", "2200@D\x00\x11{\"method\":\"HEAD\"}x", "2200@D\x00\x05", "1000J\x01\x02/x#,4", "1000J\x01\x02/x#abcd,1", "2200@", "1000J\x01\x02/x#abcd", "1000J\x01\x02/x##abcde#"} {
		f.Add(s, "a.example")
	}
	f.Fuzz(func(t *testing.T, stored, site string) {
		e, err := DecodeEntry(stored, site)
		if err != nil {
			return
		}
		again, err := DecodeEntry(string(AppendEntry(nil, site, &e)), site)
		if e.Attempts > 207 { // only what is stored by a program counts
			again.Attempts = e.Attempts
		}
		if err != nil || again != e {
			t.Fatalf("%q: %+v came back as %+v, %v", stored, e, again, err)
		}
	})
}
