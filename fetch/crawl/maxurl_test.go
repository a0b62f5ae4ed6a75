package crawl

import (
	"net/http"
	"strings"
	"testing"

	"seine/fetch/crawl/internal/work"
	"seine/frontier"
)

// longURL is a URL of a.example that has n bytes in all.
func longURL(n int) string {
	const head = "http://a.example/"
	return head + strings.Repeat("x", n-len(head))
}

// TestMaxURL follows links and redirects as long as the crawl takes, and tells by
// name those that are longer.
func TestMaxURL(t *testing.T) {
	t.Parallel()
	for _, most := range []int{frontier.LeastMaxURL, 0, frontier.MostMaxURL} {
		s := frontier.Settings{MaxURL: most}
		n := s.LongestURL()
		onBoth(t, func(s *frontier.Settings) { s.MaxURL, s.Sitemaps = most, true }, func(t *testing.T, w *web, r *rig) {
			good, bad := longURL(n), longURL(n+1)
			w.page("a.example/", good, bad, "/hop", "/far", "/away")
			w.on("a.example/hop", redirect(longURL(n-1)))
			w.on("a.example/far", redirect(bad))
			w.on("a.example/away", redirect("ftp://a.example/"))
			w.rest(html())
			r.seed("http://a.example/")
			c := r.run()
			got := r.store.by(t)
			for _, url := range []string{good, longURL(n - 1)} {
				if got[url].Status != 200 {
					t.Errorf("%d: a URL of %d bytes: %+v", n, len(url), got[url].Error)
				}
			}
			if _, ok := got[bad]; ok {
				t.Errorf("%d: a URL of %d bytes was fetched", n, len(bad))
			}
			if far := got["http://a.example/far"]; far.Refused != "too_long" {
				t.Errorf("%d: the redirect to it: %q", n, far.Refused)
			}
			if away := got["http://a.example/away"]; away.Refused != "scheme" {
				t.Errorf("%d: the redirect to another scheme: %q", n, away.Refused)
			}
			if hop := got["http://a.example/hop"]; hop.Refused != "" || hop.Location != longURL(n-1) {
				t.Errorf("%d: the redirect that is followed: %q", n, hop.Refused)
			}
			if n := metric(t, c, `seine_crawl_links_refused_total{reason="too_long"}`); n != "2" {
				t.Errorf("%d: %s counted as too long, want a link and a redirect", most, n)
			}
		})
	}
}

// TestRefusedRedirects names why the target of a redirect is not followed.
func TestRefusedRedirects(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Deny, s.SkipExt = []string{"/denied"}, []string{"pdf"} })
	targets := map[string]string{"/denied": "rule", "/a.pdf": "extension", "http://b.example/": "scope", "http://a.example:port/": "invalid", "/1/2/1/2": ""}
	var links []string
	for target := range targets {
		from := "/from?" + strings.NewReplacer("/", "_", ":", "_").Replace(target)
		w.on("a.example"+from, redirect(target))
		links = append(links, from)
	}
	w.page("a.example/", links...)
	w.rest(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNoContent) })
	r.seed("http://a.example/")
	r.run()
	seen := map[string]string{}
	for _, rec := range r.store.by(t) {
		if rec.Status/100 == 3 {
			seen[strings.TrimPrefix(rec.Location, "http://a.example")] = rec.Refused
		}
	}
	for target, want := range targets {
		got, ok := seen[target]
		if !ok {
			got, ok = seen[strings.TrimPrefix(target, "http://a.example")]
		}
		if !ok || got != want {
			t.Errorf("%s: %q, want %q (there: %v)", target, got, want, ok)
		}
	}
}

// TestRobotsOfLongPaths has robots.txt judge the whole of a long path.
func TestRobotsOfLongPaths(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.MaxURL = frontier.MostMaxURL })
	w.on("a.example/robots.txt", text(200, "User-agent: *\nDisallow: /*%C3%A9$\nDisallow: /*end$\n"))
	plain, barred, escaped := longURL(60000), longURL(60000)+"end", longURL(60000)+"%c3%a9"
	w.page("a.example/", plain, barred, escaped)
	w.rest(html())
	r.seed("http://a.example/")
	r.run()
	got := r.store.by(t)
	if got[plain].Status != 200 {
		t.Errorf("a path that no rule names: %+v", got[plain].Error)
	}
	for _, url := range []string{barred, escaped} {
		if e := got[url].Error; e == nil || e.Class != work.CauseRobots {
			t.Errorf("…%s: %+v", url[len(url)-8:], e)
		}
	}
}
