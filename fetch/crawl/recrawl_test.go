package crawl

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/extract/sink"
	"seine/frontier"
)

// recrawlTap notes for how long URLs wait until their recrawl.
type recrawlTap struct {
	Frontier
	mu    sync.Mutex
	waits map[string][]time.Duration
}

func (a *recrawlTap) Settle(ctx context.Context, k int, list []frontier.Settlement) ([]frontier.Settled, error) {
	a.mu.Lock()
	for _, s := range list {
		for _, o := range s.Outcomes {
			if o.Kind == frontier.Recrawl {
				a.waits[o.Next.URL] = append(a.waits[o.Next.URL], o.NotBefore)
			}
		}
	}
	a.mu.Unlock()
	return a.Frontier.Settle(ctx, k, list)
}

func (a *recrawlTap) of(url string) []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.waits[url])
}

// recrawling is a crawl whose pages are recrawled, which ends when it is stopped.
func recrawling(t *testing.T, w *web, rules ...string) (*rig, *recrawlTap) {
	t.Helper()
	r := newRig(t, w, func(s *frontier.Settings) { s.Recrawl, s.Robots = rules, "ignore" })
	tap := &recrawlTap{Frontier: r.queue, waits: make(map[string][]time.Duration)}
	r.cfg.Frontier, r.cfg.ExitWhenDone = tap, false
	return r, tap
}

// of are the records of a URL, in their order.
func (s *store) of(url string) (list []sink.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.URL == url {
			list = append(list, r)
		}
	}
	return list
}

// TestRecrawl: pages are recrawled, by conditional requests where the server gave
// validators; what did not change is said to be unchanged and waits ever longer, what
// changed waits no longer than the rule says.
func TestRecrawl(t *testing.T) {
	w := newWeb(t)
	const modified = "Sat, 28 Nov 2026 18:00:00 GMT"
	w.on("/etag", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("ETag", `"v1"`)
		if r.Header.Get("If-None-Match") == `"v1"` {
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		html()(rw, r)
	})
	w.on("/modified", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Last-Modified", modified)
		if r.Header.Get("If-Modified-Since") == modified {
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		html()(rw, r)
	})
	w.on("/same", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("ETag", "*") // no tag: a condition with it would hold for any content
		html()(rw, r)
	})
	n := 0
	w.on("/changes", func(rw http.ResponseWriter, r *http.Request) {
		n++
		html(fmt.Sprint("/new", n))(rw, r)
	})
	w.on("/away", redirect("/same"))
	w.rest(html())
	r, tap := recrawling(t, w, `/new=1h`, `/once=1h`, `\.example/[a-z]+$=20ms..200ms`)
	r.seed("http://a.example/etag", "http://b.example/modified", "http://c.example/same", "http://d.example/changes", "http://e.example/away", "http://f.example/once", "http://f.example/never.html")
	c := r.crawler()
	wait := r.start(c)
	for _, url := range []string{"http://a.example/etag", "http://b.example/modified", "http://c.example/same", "http://d.example/changes", "http://e.example/away"} {
		until(t, url+" is fetched five times", func() bool { return len(r.store.of(url)) >= 5 })
	}
	c.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	unchanged := []time.Duration{20 * time.Millisecond, 30 * time.Millisecond, 45 * time.Millisecond, 68 * time.Millisecond, 102 * time.Millisecond}
	for _, url := range []string{"http://a.example/etag", "http://b.example/modified", "http://c.example/same", "http://e.example/away"} {
		if got := tap.of(url)[:5]; !slices.Equal(got, unchanged) {
			t.Errorf("%s waits %v, want %v", url, got, unchanged)
		}
		for i, rec := range r.store.of(url) {
			conditional := strings.Contains(url, "etag") || strings.Contains(url, "modified")
			if rec.Unchanged != (i > 0) || (rec.Status == 304) != (i > 0 && conditional) {
				t.Errorf("record %d of %s: status %d, unchanged %v", i, url, rec.Status, rec.Unchanged)
			}
		}
	}
	for i, d := range tap.of("http://d.example/changes") {
		if rec := r.store.of("http://d.example/changes")[i]; d != 20*time.Millisecond || rec.Unchanged {
			t.Errorf("after fetch %d a page that changes waits %v, unchanged %v", i, d, rec.Unchanged)
		}
	}
	for _, a := range w.requests("", false) {
		if a.host != "a.example" && a.head.Get("If-None-Match") != "" || a.host != "b.example" && a.head.Get("If-Modified-Since") != "" {
			t.Errorf("%s%s was asked with a validator that it did not give", a.host, a.path)
		}
	}
	if first := w.requests("a.example", false)[0]; first.head.Get("If-None-Match") != "" {
		t.Error("the first request is conditional")
	}
	if n := len(r.store.of("http://f.example/never.html")); n != 1 || len(tap.of("http://f.example/never.html")) != 0 {
		t.Errorf("a page that no rule names was fetched %d times", n)
	}
	if n := len(r.store.of("http://d.example/new1")); n != 1 {
		t.Errorf("a link that a later fetch found was fetched %d times, want once", n)
	}
	s := r.stats()
	if s.Dead != 0 || s.Recrawls < 6 || s.Done != s.Known+s.Recrawled-s.Queued-s.Open {
		t.Errorf("counts are %+v", s)
	}
	if n := metric(t, c, "seine_crawl_pages_unchanged_total"); n == "" || n == "0" {
		t.Error("unchanged pages are not counted")
	}
}

// TestRecrawlOff: without rules a done URL leaves nothing behind.
func TestRecrawlOff(t *testing.T) {
	w := newWeb(t)
	w.tree("a.example", 20)
	r := newRig(t, w, nil)
	r.seed("http://a.example/p0")
	r.run()
	if s := r.stats(); s.Done != 20 || s.Recrawls+s.Waiting+s.Queued+s.Ready != 0 {
		t.Errorf("%+v", s)
	}
}

// TestRecrawlFails: a page that was fetched before and fails now waits for its next
// time; one that never was is dead.
func TestRecrawlFails(t *testing.T) {
	w := newWeb(t)
	n := 0
	w.on("/p", func(rw http.ResponseWriter, r *http.Request) {
		if n++; n == 2 {
			rw.WriteHeader(http.StatusInternalServerError)
			return
		}
		rw.Header().Set("ETag", `"v1"`)
		html()(rw, r)
	})
	w.on("/never", text(500, ""))
	r, tap := recrawling(t, w, ".=20ms..1h")
	r.cfg.MaxTries = 1
	r.seed("http://a.example/p", "http://b.example/never")
	c := r.crawler()
	wait := r.start(c)
	until(t, "it is recrawled after it failed", func() bool { return len(r.store.of("http://a.example/p")) >= 3 })
	until(t, "the other one is dead", func() bool { return r.stats().Dead == 1 })
	c.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	list := r.store.of("http://a.example/p")
	if list[1].Error == nil || list[1].Error.Class != "status" || list[2].Error != nil || !list[2].Unchanged {
		t.Errorf("records are %+v", list[:3])
	}
	if got := tap.of("http://a.example/p")[:3]; !slices.Equal(got, []time.Duration{20 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond}) {
		t.Errorf("it waits %v", got)
	}
	if asked := w.requests("a.example", false)[2]; asked.head.Get("If-None-Match") != `"v1"` {
		t.Error("what was known before the failure is forgotten")
	}
}

// TestRecrawlSitemap: a sitemap that is recrawled brings the pages forward that it
// says have changed since, and no others; changefreq does as far as the rule allows.
func TestRecrawlSitemap(t *testing.T) {
	w := newWeb(t)
	var mu sync.Mutex
	lastmod := "2001-01-01"
	w.on("/sitemap.xml", func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		rw.Header().Set("Content-Type", "application/xml")
		fmt.Fprintf(rw, `<urlset><url><loc>http://a.example/changed</loc><lastmod>%s</lastmod></url>
			<url><loc>http://a.example/old</loc><lastmod>2001-01-01</lastmod></url>
			<url><loc>http://a.example/often</loc><changefreq>always</changefreq></url></urlset>`, lastmod)
	})
	w.rest(html())
	r, _ := recrawling(t, w, `sitemap\.xml=50ms`, `/often=100ms..1h`, `.=1h..2h`)
	r.admit("http://a.example/sitemap.xml", func(c *frontier.Candidate) { c.Sitemap, c.Refetch = true, frontier.SitemapRequest("a.example") })
	c := r.crawler()
	wait := r.start(c)
	count := func(path string) int { return len(r.store.of("http://a.example/" + path)) }
	until(t, "all were fetched, the sitemap a few times", func() bool { return count("changed") == 1 && count("old") == 1 && count("sitemap.xml") > 3 })
	mu.Lock()
	lastmod = time.Now().Add(time.Second).UTC().Format(time.RFC3339) // times of reading are whole seconds
	mu.Unlock()
	until(t, "what changed is recrawled", func() bool { return count("changed") >= 2 })
	until(t, "what is said to change always is fetched as the rule allows", func() bool { return count("often") >= 4 })
	c.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if count("old") != 1 {
		t.Errorf("what did not change was fetched %d times", count("old"))
	}
}
