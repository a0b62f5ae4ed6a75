package site

import (
	"testing"

	"seine/frontier"
)

// TestLeasedURL: a URL of a visit comes out as it went in, and in little memory where
// it has no more than most.
func TestLeasedURL(t *testing.T) {
	usual := frontier.Entry{URL: "http://a.example/p", Priority: 3, Depth: 1 << 20, Redirects: 200, Attempts: 7, Seed: true}
	items := []frontier.Item{{Index: 1, Entry: usual}}
	for i, more := range []func(e *frontier.Entry){
		func(e *frontier.Entry) { e.Trail = "abcd" },
		func(e *frontier.Entry) { e.Lost = 2 },
		func(e *frontier.Entry) { e.Meta = "{}" },
		func(e *frontier.Entry) { e.Sitemap, e.SitemapOf = true, "b.example" },
		func(e *frontier.Entry) { e.Referrer, e.From = "http://a.example/", "http://a.example/q" },
		func(e *frontier.Entry) { e.Last.Interval, e.Last.ETag = 1, `"x"` },
	} {
		e := usual
		more(&e)
		items = append(items, frontier.Item{Index: i + 2, Entry: e})
	}
	var got frontier.Item
	for i, u := range leasedURLs(items) {
		if u.item(&got); got != items[i] {
			t.Errorf("%+v\nbecame %+v", items[i], got)
		}
		if whole := u.whole != nil; whole != (i > 0) {
			t.Errorf("%+v is kept whole: %v", items[i], whole)
		}
	}
}
