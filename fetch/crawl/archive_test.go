package crawl

import (
	"fmt"
	"slices"
	"testing"

	"seine/extract/sink"
	"seine/frontier"
)

// TestRobotsArchived: where records carry their exchange, that of each robots.txt comes
// too, as a record for archives alone.
func TestRobotsArchived(t *testing.T) {
	for _, archives := range []bool{false, true} {
		t.Run(fmt.Sprint(archives), func(t *testing.T) {
			w := newWeb(t)
			w.on("a.example/robots.txt", redirect("/rules"))
			w.on("a.example/rules", text(200, "User-agent: *\nDisallow: /no"))
			w.page("/")
			r := newRig(t, w, func(s *frontier.Settings) {
				s.Sites = []frontier.SiteRule{{Match: "b.example", Headers: map[string]string{"X-Token": "secret", "User-Agent": "own"}}}
			})
			r.cfg.Exchanges = archives
			other := new(store)
			r.cfg.Sink = sink.NewFan(sink.Output{Name: "archive", Sink: r.store, Archives: true}, sink.Output{Name: "other", Sink: other})
			r.seed("http://a.example/", "http://b.example/")
			r.run()
			got := map[string]int{}
			for url, rec := range r.store.by(t) {
				if e := rec.Exchange; e != nil && slices.Equal(e.Secrets, []string{"X-Token"}) != (rec.Site == "b.example") {
					t.Errorf("%s: %q are secret", url, e.Secrets)
				}
				if rec.ArchiveOnly {
					if rec.Exchange == nil || rec.Exchange.Body == 0 {
						t.Errorf("%s has no exchange", url)
					}
					got[url] = rec.Status
				}
			}
			want := map[string]int{"http://a.example/robots.txt": 302, "http://a.example/rules": 200, "http://b.example/robots.txt": 404}
			if !archives {
				want = map[string]int{}
			}
			if len(got) != len(want) {
				t.Errorf("archived: %v, want %v", got, want)
			}
			for url, status := range want {
				if got[url] != status {
					t.Errorf("%s: status %d, want %d", url, got[url], status)
				}
			}
			if n := len(other.by(t)); n != 2 {
				t.Errorf("the other output has %d records, want those of the two pages", n)
			}
		})
	}
}
