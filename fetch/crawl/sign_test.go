package crawl

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"seine/fetch"
	"seine/fetch/sign"
	"seine/fetch/sign/signtest"
	"seine/frontier"
	"seine/frontier/ask"
)

// signs gives the crawl a fetcher that signs, and returns its key.
func (r *rig) signs(asked bool) *sign.Key {
	r.t.Helper()
	key, signer := signtest.New(r.t)
	c, err := fetch.New(fetch.Config{
		Signer: signer, SignAsked: asked, AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		ConnectTo: []string{"::" + r.web.srv.Listener.Addr().String()},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	r.cfg.Fetcher, r.cfg.Accepts = c, c.Accepts
	return key
}

// wantsSignature serves a page to whoever signs with the key, and refuses others.
func wantsSignature(key *sign.Key, page http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if signtest.Verify(key, r.Host, r.Header, time.Now()) == nil {
			page(rw, r)
			return
		}
		rw.Header().Set("Accept-Signature", `sig1=("@authority" "signature-agent";key="sig1");created;expires;tag="web-bot-auth"`)
		rw.WriteHeader(http.StatusForbidden)
	}
}

// TestSigned: pages, robots.txt, sitemaps and what redirects lead to, on other hosts too,
// are asked for with signatures that hold for their authority.
func TestSigned(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Scope, s.Sitemaps = "any", true })
	key := r.signs(false)
	w.on("/robots.txt", text(200, "Sitemap: /map.xml"))
	w.on("/map.xml", text(200, "<urlset><url><loc>/mapped</loc></url></urlset>"))
	w.page("/mapped")
	w.on("one.example/", redirect("http://two.example:8080/x"))
	w.page("two.example:8080/x", "http://two.example:8080/y")
	w.page("two.example:8080/y")
	r.seed("http://ONE.example:80/")
	r.run()
	all := append(w.requests("", false), w.requests("", true)...)
	if len(all) < 8 {
		t.Errorf("%d requests", len(all))
	}
	for _, a := range all {
		if err := signtest.Verify(key, a.host, a.head, time.Now()); err != nil {
			t.Errorf("%s%s: %v", a.host, a.path, err)
		}
	}
}

// TestSignAsked: a site that asks for signatures gets them from then on, from the next
// fetcher at once, and no other site does; beside cookies, too.
func TestSignAsked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*frontier.Settings){"alone": nil, "with cookies": keeping} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, change, func(t *testing.T, w *web, r *rig) {
				key := r.signs(true)
				w.on("one.example/", wantsSignature(key, func(rw http.ResponseWriter, req *http.Request) {
					rw.Header().Set("Set-Cookie", "a=1")
					html("/in", "http://two.example/")(rw, req)
				}))
				w.on("one.example/in", wantsSignature(key, html()))
				w.page("one.example/later")
				w.page("two.example/")
				r.admit("http://one.example/", func(c *frontier.Candidate) { c.Seed = true })
				crawler := r.run()
				if n := metric(t, crawler, "seine_crawl_signing_sites_total"); n != "1" {
					t.Errorf("%s sites are counted", n)
				}
				for _, url := range []string{"http://one.example/", "http://one.example/in"} {
					if rec := r.store.by(t)[url]; rec.Status != 200 || rec.Error != nil {
						t.Errorf("%s: %+v", url, rec)
					}
				}
				if n := w.times("http://one.example/") + w.times("http://one.example/in"); n != 3 {
					t.Errorf("%d requests, of which one goes without a signature", n)
				}
				first := len(w.requests("one.example", false))
				r.seed("http://one.example/later", "http://two.example/")
				crawler = r.run()
				later := w.requests("one.example", false)[first:]
				if len(later) != 1 || signtest.Verify(key, "one.example", later[0].head, time.Now()) != nil {
					t.Errorf("by the next fetcher: %+v", later)
				}
				if change != nil && later[0].head.Get("Cookie") != "a=1" {
					t.Errorf("the cookie is lost: %v", later[0].head)
				}
				if n := metric(t, crawler, "seine_crawl_signing_sites_total"); n != "0" {
					t.Errorf("%s sites are new to the next fetcher", n)
				}
				for _, a := range w.requests("two.example", false) {
					if signtest.IsSigned(a.head) {
						t.Error("another site gets signatures")
					}
				}
				for url, want := range map[string]bool{"http://one.example/": true, "http://two.example/": false} {
					a, err := ask.Why(t.Context(), r.queue.(frontier.Operated), ask.WhyQuery{URL: url, Robots: func([]byte, []byte, *ask.Robots) error { return nil }})
					if err != nil {
						t.Fatal(err)
					}
					if a.Clock == nil || a.Clock.WantsSign != want {
						t.Errorf("why of %s: %+v", url, a.Clock)
					}
					said := false
					for _, row := range a.Rows() {
						said = said || strings.HasPrefix(row.Text, "asks for signed requests")
					}
					if said != want {
						t.Errorf("why of %s does not say so: %v", url, a.Rows())
					}
				}
			})
		})
	}
}

// TestUnsignedAgent: requests with a user agent of their site's rule carry no signature.
func TestUnsignedAgent(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) {
		s.Sites = []frontier.SiteRule{{Match: "one.example", UserAgent: "other/1"}}
	})
	r.signs(false)
	w.rest(html())
	r.seed("http://one.example/", "http://two.example/")
	r.run()
	for _, a := range append(w.requests("", false), w.requests("", true)...) {
		if signtest.IsSigned(a.head) != (a.host == "two.example") {
			t.Errorf("%s%s: %v", a.host, a.path, a.head)
		}
	}
}

// TestSignAskedByRobots: robots.txt that is refused for want of a signature is asked for
// once more, and its rules hold.
func TestSignAskedByRobots(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	key := r.signs(true)
	w.on("/robots.txt", wantsSignature(key, text(200, "User-agent: *\nDisallow: /no")))
	w.on("/", wantsSignature(key, html("/no")))
	r.seed("http://one.example/")
	r.run()
	if n := len(w.requests("one.example", true)); n != 2 {
		t.Errorf("%d requests for robots.txt", n)
	}
	if w.times("http://one.example/") != 1 || w.times("http://one.example/no") != 0 {
		t.Errorf("%d and %d requests for pages", w.times("http://one.example/"), w.times("http://one.example/no"))
	}
}

// TestSignRefused: a site that refuses signed requests too gets as many tries as without
// signatures, and its pages are what it says.
func TestSignRefused(t *testing.T) {
	w := newWeb(t)
	for tries, want := range map[int]int{1: 1, 4: 2} {
		r := newRig(t, w, nil)
		r.signs(true)
		r.cfg.MaxTries = tries
		other, _ := signtest.New(t)
		host := map[int]string{1: "one.example", 4: "four.example"}[tries]
		w.on(host+"/", wantsSignature(other, html()))
		r.seed("http://" + host + "/")
		r.run()
		if n := w.times("http://" + host + "/"); n != want {
			t.Errorf("%d requests of %d", n, tries)
		}
		if rec := r.store.by(t)["http://"+host+"/"]; rec.Status != 403 || rec.Error != nil {
			t.Errorf("%+v", rec)
		}
	}
}
