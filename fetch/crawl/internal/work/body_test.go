package work

import (
	"testing"
	"time"

	"seine/frontier/canon"
)

func TestChangedBy(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-28":                    "2026-11-29T00:00:00Z",
		"2026-11":                       "2026-12-01T00:00:00Z",
		"2026":                          "2027-01-01T00:00:00Z",
		"2026-11-28T18:00+01:00":        "2026-11-28T17:01:00Z",
		"2026-11-28T18:00:00.5Z":        "2026-11-28T18:00:00Z",
		"Sat, 28 Nov 2026 18:00:00 GMT": "2026-11-28T18:00:00Z",
		"yesterday":                     "0001-01-01T00:00:00Z",
		"":                              "0001-01-01T00:00:00Z",
	} {
		if got := changedBy(text).UTC().Format(time.RFC3339); got != want {
			t.Errorf("%q may be as late as %s, want %s", text, got, want)
		}
	}
}

func TestIsSitemap(t *testing.T) {
	for _, c := range []struct {
		path, contentType string
		want              bool
	}{
		{"/feed", "application/rss+xml", true},
		{"/feed", "Application/XML", true},
		{"/page", "text/html;note=xml", false},
		{"/page", "application/xhtml+xml", false},
		{"/sitemap", "", true},
		{"/sitemap", "text/plain", true},
		{"/sitemap", "Text/HTML", false},
		{"/sitemap", "text/plain;note=html", true},
	} {
		var u canon.URL
		if err := canon.NewParser(canon.Config{}).Parse(&u, []byte("http://a.example"+c.path)); err != nil {
			t.Fatal(err)
		}
		if got := isSitemap(&u, c.contentType); got != c.want {
			t.Errorf("%s of type %q: %v, want %v", c.path, c.contentType, got, c.want)
		}
	}
}
