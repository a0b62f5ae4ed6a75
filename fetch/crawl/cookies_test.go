package crawl

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"seine/fetch/crawl/internal/work"
	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/memory"
)

// keeping has a crawl keep cookies.
func keeping(s *frontier.Settings) { s.Cookies = frontier.CookiesSite }

// needs serves a page to whoever brings a cookie of that name, and sends others to
// where they get it.
func needs(name, from string, page http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie(name); err == nil {
			page(rw, r)
			return
		}
		to := from
		if to == "" {
			rw.Header().Set("Set-Cookie", name+"=1")
			to = r.URL.RequestURI()
		}
		redirect(to)(rw, r)
	}
}

// sent is the Cookie header of the only request for a URL.
func (w *web) sent(t *testing.T, host, path string) string {
	t.Helper()
	var found []string
	for _, a := range w.requests(host, false) {
		if a.path == path {
			found = append(found, strings.Join(a.head.Values("Cookie"), " and "))
		}
	}
	if len(found) != 1 {
		t.Errorf("%d requests for %s%s, with %q", len(found), host, path, found)
		return ""
	}
	return found[0]
}

// TestCookies: a page that wants a cookie is reached, and what one fetcher was given
// the next one sends, to this site alone.
func TestCookies(t *testing.T) {
	t.Parallel()
	onBoth(t, keeping, func(t *testing.T, w *web, r *rig) {
		w.on("one.example/", needs("ok", "", html("/in", "/out")))
		w.page("one.example/in")
		w.on("one.example/out", redirect("http://two.example/x"))
		w.page("two.example/x")
		w.page("one.example/later")
		r.admit("http://one.example/", func(c *frontier.Candidate) { c.Seed = true })
		r.cfg.MaxTries = 1
		r.run()
		got := r.store.of("http://one.example/")
		if len(got) != 2 || got[0].Status != 302 || got[1].Status != 200 || got[0].Error != nil || got[1].From != "http://one.example/" {
			t.Errorf("%+v", got)
		}
		if c := w.sent(t, "one.example", "/in"); c != "ok=1" {
			t.Errorf("to a page of the site: %q", c)
		}
		if w.requests("one.example", true)[0].head.Get("Cookie") != "" {
			t.Error("robots.txt was asked for with cookies")
		}
		r.seed("http://one.example/later", "http://two.example/x", "http://one.example.org/")
		r.run()
		if c := w.sent(t, "one.example", "/later"); c != "ok=1" {
			t.Errorf("by the next fetcher: %q", c)
		}
		if c := w.sent(t, "two.example", "/x") + w.sent(t, "one.example.org", "/"); c != "" {
			t.Errorf("to another site: %q", c)
		}
	})
}

// TestCookiesOff: nothing is sent, and the record tells why the page is not reached;
// of a header that names no cookie nothing is logged.
func TestCookiesOff(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.on("/", func(rw http.ResponseWriter, req *http.Request) {
		rw.Header()["Set-Cookie"] = []string{"a=secret", "secret; Path=/x=", "b=secret; Secure"}
		redirect("/")(rw, req)
	})
	r.seed("http://one.example/")
	r.run()
	if e := r.store.by(t)["http://one.example/"].Error; e == nil || e.Class != work.CauseRedirectLoop || !strings.HasSuffix(e.Text, ": a, b") || strings.Contains(e.Text, "secret") {
		t.Errorf("%+v", e)
	}
	if c := w.sent(t, "one.example", "/"); c != "" {
		t.Error(c)
	}
}

// TestCookieGate: a page sends to a gate, which gives a cookie and sends back; pages
// that are asked for side by side all come back.
func TestCookieGate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *frontier.Settings) { keeping(s); s.PerSite = 4 }, func(t *testing.T, w *web, r *rig) {
		const pages = 6
		for i := range pages {
			path := fmt.Sprint("/p", i)
			w.on(path, needs("ok", "/gate?to="+path, html()))
			w.on("/gate?to="+path, func(rw http.ResponseWriter, req *http.Request) {
				rw.Header().Set("Set-Cookie", "ok=1; Path=/")
				redirect(path)(rw, req)
			})
			r.seed("http://one.example" + path)
		}
		r.run()
		for i := range pages {
			got := r.store.of(fmt.Sprintf("http://one.example/p%d", i))
			if len(got) == 0 || got[len(got)-1].Status != 200 {
				t.Errorf("page %d: %+v", i, got)
			}
		}
		for _, rec := range r.store.records {
			if rec.Error != nil {
				t.Errorf("%+v", rec)
			}
		}
	})
}

// TestCookieLoops: what redirects to itself for ever ends, whether its cookies change
// or not.
func TestCookieLoops(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, keeping)
	r.cfg.MaxRedirects = 5
	var n atomic.Int64
	for path, set := range map[string]func(*http.Request) string{
		"/same": func(*http.Request) string { return "a=1" },
		"/new":  func(*http.Request) string { return fmt.Sprint("b=", n.Add(1)) },
		"/toggle": func(q *http.Request) string {
			return map[bool]string{true: "c=1", false: "c=; Max-Age=0"}[!strings.Contains(q.Header.Get("Cookie"), "c=")]
		},
	} {
		w.on(path, func(rw http.ResponseWriter, req *http.Request) {
			rw.Header().Set("Set-Cookie", set(req)+"; Path="+path)
			redirect(path)(rw, req)
		})
		r.seed("http://" + path[1:] + ".example" + path)
	}
	r.run()
	for path, want := range map[string]int{"same": 2, "new": 6, "toggle": 2} {
		got := r.store.of("http://" + path + ".example/" + path)
		if len(got) != want || got[want-1].Error == nil || got[want-1].Error.Class != work.CauseRedirectLoop {
			t.Errorf("%s: %d records, want %d: %+v", path, len(got), want, got)
		}
	}
}

// TestCookiesOfRule: the Cookie header that a rule gives a site goes first, and
// decides where both have a name.
func TestCookiesOfRule(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) {
		keeping(s)
		s.Sites = []frontier.SiteRule{{Match: "one.example", Headers: map[string]string{"cookie": "ok=given; x=1;", "X-From": "us"}}}
	})
	w.on("/", func(rw http.ResponseWriter, req *http.Request) {
		rw.Header()["Set-Cookie"] = []string{"ok=2", "y=3"}
		html("/in")(rw, req)
	})
	w.page("/in")
	r.seed("http://one.example/")
	r.run()
	if c := w.sent(t, "one.example", "/"); c != "ok=given; x=1;" {
		t.Error(c)
	}
	if c := w.sent(t, "one.example", "/in"); c != "ok=given; x=1; y=3" {
		t.Error(c)
	}
}

// TestCookiesByHost: where hosts are sites, what one sets for the whole domain stays
// with it.
func TestCookiesByHost(t *testing.T) {
	for by, want := range map[canon.LimitBy]string{canon.ByHost: "", canon.ByDomain: "ok=1"} {
		t.Run(string(by), func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, nil)
			s := *r.queue.Settings()
			keeping(&s)
			s.Scope = "any"
			q, err := memory.New(memory.Config{Layout: frontier.Layout{LimitBy: by}, Settings: s})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { q.Close() })
			r.queue, r.cfg.Frontier = q, q
			w.on("a.one.example/", func(rw http.ResponseWriter, req *http.Request) {
				rw.Header().Set("Set-Cookie", "ok=1; Domain=one.example")
				html("/in", "http://b.one.example/")(rw, req)
			})
			w.page("a.one.example/in")
			w.page("b.one.example/")
			r.seed("http://a.one.example/")
			r.run()
			if c := w.sent(t, "a.one.example", "/in"); c != "ok=1" {
				t.Errorf("%s: to the host: %q", by, c)
			}
			if c := w.sent(t, "b.one.example", "/"); c != want {
				t.Errorf("%s: to another host: %q, want %q", by, c, want)
			}
		})
	}
}

// TestCookiesRecrawl: a page that wants a new cookie each time is recrawled as
// often as others.
func TestCookiesRecrawl(t *testing.T) {
	w := newWeb(t)
	r, _ := recrawling(t, w, ".=20ms")
	if _, _, err := r.queue.Set(t.Context(), func(s *frontier.Settings) error { keeping(s); return nil }); err != nil {
		t.Fatal(err)
	}
	var n, good atomic.Int64
	w.on("/", func(rw http.ResponseWriter, req *http.Request) {
		if c, err := req.Cookie("once"); err == nil && c.Value == fmt.Sprint(n.Load()) {
			n.Add(1)
			good.Add(1)
			html()(rw, req)
			return
		}
		http.SetCookie(rw, &http.Cookie{Name: "once", Value: fmt.Sprint(n.Load())})
		redirect("/")(rw, req)
	})
	r.seed("http://one.example/")
	c := r.crawler()
	wait := r.start(c)
	until(t, "it is recrawled often", func() bool { return good.Load() > 25 })
	c.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	for _, rec := range r.store.of("http://one.example/") {
		if rec.Error != nil {
			t.Errorf("%+v", rec)
		}
	}
}

// TestCookiesSettled: a page is settled with its cookies, while others of its visit
// are under way.
func TestCookiesSettled(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, keeping)
	tap := &cookieTap{Frontier: r.queue}
	r.cfg.Frontier = tap
	w.on("/a", func(rw http.ResponseWriter, req *http.Request) {
		rw.Header().Set("Set-Cookie", "ok=1; Max-Age=60")
		html()(rw, req)
	})
	w.on("/b", func(rw http.ResponseWriter, req *http.Request) {
		until(t, "the page before is settled", func() bool { return tap.first.Load() != nil })
		html()(rw, req)
	})
	r.seed("http://one.example/a", "http://one.example/b")
	r.run()
	if s := tap.first.Load(); s.Release != nil || s.Cookies == nil || !strings.Contains(*s.Cookies, "ok") || len(*s.Cookies) > 40 {
		t.Errorf("%+v", s)
	}
	if n := tap.with.Load(); n != 1 {
		t.Errorf("%d settlements with cookies", n)
	}
}

// cookieTap notes settlements of pages.
type cookieTap struct {
	frontier.Frontier
	first atomic.Pointer[frontier.Settlement]
	with  atomic.Int64
}

func (c *cookieTap) Settle(ctx context.Context, k int, list []frontier.Settlement) ([]frontier.Settled, error) {
	settled, err := c.Frontier.Settle(ctx, k, list)
	for _, s := range list {
		if len(s.Outcomes) > 0 {
			c.first.CompareAndSwap(nil, &s)
		}
		if s.Cookies != nil {
			c.with.Add(1)
		}
	}
	return settled, err
}
