package crawl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seine/extract/sink"
	"seine/fetch"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
	"seine/frontier/memory"
)

// header serves links at a path under a header.
func header(name, value string, links ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set(name, value)
		html(links...)(rw, r)
	}
}

// markup serves HTML.
func markup(body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		io.WriteString(rw, body)
	}
}

// wanting has pages wanted for purposes.
func wanting(purpose ...string) func(*frontier.Settings) {
	return func(s *frontier.Settings) { s.Purpose = purpose }
}

// choosy is a site that says something in every form.
func choosy(w *web) {
	w.on("/robots.txt", text(200, "User-agent: *\nContent-Usage: /usage train-ai=n\nContent-Signal: /signal ai-train=no, search=yes\nDisallow: /never\nContent-Usage: /never train-ai=n"))
	w.on("/header", header("Content-Usage", "train-ai=n, search=y", "/of-header"))
	w.on("/meta", markup("<html><head><title>t</title><link rel=next href=/of-meta><meta name=robots content=noai></head><body>"+strings.Repeat("<a href=/of-body>x</a>some text ", 20_000)))
	w.on("/small", markup("<meta name=robots content=noai><a href=/of-meta>x</a>"))
	w.on("/tag", header("X-Robots-Tag", "noai"))
	w.on("/tdm", header("TDM-Reservation", "1"))
	w.on("/license", header("Link", `</l.xml>; rel="license"; type="application/rsl+xml"`))
	for _, path := range []string{"/usage", "/signal", "/plain", "/of-header", "/of-meta", "/of-body"} {
		w.page(path)
	}
}

var choosyPaths = []string{"/usage", "/signal", "/never", "/header", "/meta", "/small", "/tag", "/tdm", "/license", "/plain"}

func seedChoosy(r *rig) {
	for _, path := range choosyPaths {
		r.seed("http://a.example" + path)
	}
}

// TestPreferencesRecorded: without a purpose, what sites say is recorded and nothing of it
// is obeyed. A page that says nothing has the record that it had.
func TestPreferencesRecorded(t *testing.T) {
	onBoth(t, nil, func(t *testing.T, w *web, r *rig) {
		choosy(w)
		seedChoosy(r)
		r.run()
		records := r.store.by(t)
		for path, want := range map[string]string{
			"/usage":   `{"ai_train":{"says":"no","by":"robots.txt Content-Usage: train-ai=n"}}`,
			"/signal":  `{"search":{"says":"yes","by":"robots.txt Content-Signal: search=yes"},"ai_train":{"says":"no","by":"robots.txt Content-Signal: ai-train=no"}}`,
			"/header":  `{"search":{"says":"yes","by":"Content-Usage: search=y"},"ai_train":{"says":"no","by":"Content-Usage: train-ai=n"}}`,
			"/meta":    `{"ai_train":{"says":"no","by":"meta robots: noai"}}`,
			"/small":   `{"ai_train":{"says":"no","by":"meta robots: noai"}}`,
			"/tag":     `{"ai_train":{"says":"no","by":"X-Robots-Tag: noai"}}`,
			"/tdm":     `{"tdm":{"says":"no","by":"TDM header: tdm-reservation=1"}}`,
			"/license": `{"rsl":"/l.xml"}`,
			"/plain":   "", "/never": "", "/of-header": "", "/of-meta": "", "/of-body": "",
		} {
			rec, ok := records["http://a.example"+path]
			if string(rec.Preferences) != want || !ok || rec.Withheld != "" {
				t.Errorf("%s: %s, withheld %q", path, rec.Preferences, rec.Withheld)
			}
			if path != "/never" && (rec.Error != nil || rec.Digest == "" || rec.Title == "" && path != "/small") {
				t.Errorf("%s: %+v", path, rec)
			}
		}
		plain := records["http://a.example/plain"]
		if line := string(plain.AppendJSON(nil, sink.AllFields)); strings.Contains(line, "preferences") || strings.Contains(line, "withheld") {
			t.Error(line)
		}
		r.checkEmpty()
	})
}

// TestPurpose: what a site refuses for the purpose of the crawl is fetched only as far as
// needed to learn so, and its record has nothing of it. What robots.txt refuses is not
// asked for, and dead letters of that cause are tried again on demand.
func TestPurpose(t *testing.T) {
	onBoth(t, wanting("ai-train"), func(t *testing.T, w *web, r *rig) {
		choosy(w)
		var bodies atomic.Int64
		r.cfg.Fields, r.cfg.Exchanges = sink.AllFields, true
		r.cfg.Handler = func(_ context.Context, p *Page) error {
			if p.Withheld != "" {
				bodies.Add(int64(len(p.Body) + len(p.Title) + len(p.Links())))
				if p.Facts != nil || p.Preferences == nil {
					t.Errorf("%s: facts %+v, preferences %s", p.URL, p.Facts, p.Preferences)
				}
			}
			return p.Emit("item")
		}
		seedChoosy(r)
		c := r.run()
		records := r.store.by(t)
		for _, path := range []string{"/header", "/meta", "/small", "/tag"} {
			rec := records["http://a.example"+path]
			if rec.Withheld != "ai_train" || rec.Preferences == nil || rec.Status != 200 || rec.Error != nil || len(rec.Headers) == 0 {
				t.Errorf("%s: %+v", path, rec)
			}
			if rec.Body+rec.Text+rec.Title+rec.SimHash+rec.Digest != "" || rec.LinksOut != nil || rec.Fields != nil || rec.Items != nil || rec.Exchange != nil || rec.Links > 0 {
				t.Errorf("%s has content: %+v", path, rec)
			}
			if path != "/meta" && path != "/small" && rec.Bytes > 0 || rec.Bytes > 100_000 {
				t.Errorf("%s: %d bytes were read", path, rec.Bytes)
			}
		}
		for _, path := range []string{"/usage", "/signal"} {
			rec := records["http://a.example"+path]
			if rec.Error == nil || rec.Error.Class != work.CausePreference || !strings.Contains(rec.Error.Text, "ai_train: robots.txt Content-") || w.times("http://a.example"+path) > 0 {
				t.Errorf("%s: %+v, asked %d times", path, rec.Error, w.times("http://a.example"+path))
			}
		}
		if e := records["http://a.example/never"].Error; e == nil || e.Class != work.CauseRobots {
			t.Errorf("/never: %+v", e)
		}
		for _, path := range []string{"/tdm", "/license", "/plain"} {
			if rec := records["http://a.example"+path]; rec.Withheld != "" || rec.Body == "" || rec.Items == nil || rec.Exchange == nil {
				t.Errorf("%s: %+v", path, rec)
			}
		}
		if bodies.Load() > 0 {
			t.Error("the handler saw something of a page that is refused")
		}
		for url := range records {
			if strings.Contains(url, "/of-") {
				t.Errorf("%s is followed", url)
			}
		}
		if n := metric(t, c, "seine_crawl_pages_withheld_total"); n != "4" {
			t.Errorf("%s pages are counted", n)
		}
		r.checkEmpty()

		if _, _, err := r.queue.Set(t.Context(), func(s *frontier.Settings) error { s.Purpose = []string{"search"}; return nil }); err != nil {
			t.Fatal(err)
		}
		operated := r.queue.(frontier.Operated)
		counts, err := frontier.DeadTotals(t.Context(), operated)
		if err != nil || counts[work.CausePreference] != 2 {
			t.Errorf("dead: %v, %v", counts, err)
		}
		_, err = frontier.WalkDead(t.Context(), operated, frontier.DeadFilter{Cause: work.CausePreference}, func(k int, list []frontier.DeadLetter) (int, error) {
			return operated.RetryDead(t.Context(), k, list)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.store.records = nil
		r.run()
		if rec := r.store.by(t)["http://a.example/usage"]; rec.Error != nil || rec.Title == "" {
			t.Errorf("retried for another purpose: %+v", rec)
		}
	})
}

// TestRefusedLinks: links of a refused page are followed where the crawl says so, and its
// content stays out of the record all the same. Those of a sitemap are followed anyway.
func TestRefusedLinks(t *testing.T) {
	for _, follow := range []bool{false, true} {
		t.Run(fmt.Sprint(follow), func(t *testing.T) {
			w := newWeb(t)
			choosy(w)
			w.on("/sitemap.xml", func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("X-Robots-Tag", "noai")
				rw.Header().Set("Content-Type", "application/xml")
				io.WriteString(rw, "<urlset><url><loc>http://a.example/plain</loc></url></urlset>")
			})
			r := newRig(t, w, func(s *frontier.Settings) {
				s.Purpose = []string{"archive", "ai-train"}
				if follow {
					s.RefusedLinks = frontier.RefusedFollow
				}
			})
			r.cfg.Fields = sink.AllFields
			r.seed("http://a.example/header", "http://a.example/meta")
			r.admit("http://a.example/sitemap.xml", func(c *frontier.Candidate) { c.Sitemap, c.Refetch = true, frontier.SitemapRequest("a.example") })
			r.run()
			records := r.store.by(t)
			for _, path := range []string{"/of-header", "/of-meta", "/of-body"} {
				if _, ok := records["http://a.example"+path]; ok != follow {
					t.Errorf("%s is followed: %v", path, ok)
				}
			}
			if records["http://a.example/plain"].Title == "" {
				t.Error("links of a sitemap are not followed")
			}
			for _, path := range []string{"/header", "/meta", "/sitemap.xml"} {
				rec := records["http://a.example"+path]
				if rec.Withheld != "ai_train" || rec.Body+rec.Text+rec.Title+rec.Digest+rec.SimHash != "" || rec.LinksOut != nil {
					t.Errorf("%s: %+v", path, rec)
				}
			}
		})
	}
}

// TestRefusedRedirect: a redirect has no content that could be refused; what it leads to is
// judged by itself.
func TestRefusedRedirect(t *testing.T) {
	w := newWeb(t)
	w.on("/from", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Robots-Tag", "noindex")
		redirect("/to")(rw, r)
	})
	w.on("/to", header("X-Robots-Tag", "noindex"))
	r := newRig(t, w, wanting("search"))
	r.seed("http://a.example/from")
	r.run()
	records := r.store.by(t)
	if rec := records["http://a.example/from"]; rec.Status != 302 || rec.Withheld != "" || rec.Preferences == nil {
		t.Errorf("%+v", rec)
	}
	if rec := records["http://a.example/to"]; rec.Withheld != "search" {
		t.Errorf("%+v", rec)
	}
}

// TestRefusedWall: what a wall says of itself is not said of the page in whose place it
// stands: it stays a wall. An error page of the site may be refused as any other.
func TestRefusedWall(t *testing.T) {
	w := newWeb(t)
	const noindex = "X-Robots-Tag: noindex"
	w.on("a.example/", answered(403, checkpoint, noindex))
	w.on("b.example/", answered(200, checkpoint, noindex, "cf-mitigated: challenge"))
	w.on("c.example/", answered(200, checkpoint+"<meta name=robots content=noindex>"))
	w.on("d.example/", answered(404, "<title>none</title>"+strings.Repeat("no such page ", 50_000), noindex))
	r := newRig(t, w, wanting("search"))
	r.cfg.MaxTries, r.cfg.Fields = 1, sink.AllFields
	r.seed("http://a.example/", "http://b.example/", "http://c.example/", "http://d.example/")
	r.run()
	records := r.store.by(t)
	for _, host := range []string{"a", "b", "c"} {
		if rec := records["http://"+host+".example/"]; rec.Error == nil || rec.Error.Class != frontier.CauseWall || rec.Withheld != "" || rec.Preferences != nil {
			t.Errorf("%s: %+v", host, rec)
		}
	}
	if rec := records["http://d.example/"]; rec.Status != 404 || rec.Withheld != "search" || rec.Body+rec.Digest != "" || rec.Bytes > 100_000 {
		t.Errorf("%+v", rec)
	}
}

// TestRefusedRecrawl: a page that is refused from its second fetch on, even by a 304, keeps
// neither digest nor validators, so that it comes whole when it is refused no more.
func TestRefusedRecrawl(t *testing.T) {
	w := newWeb(t)
	var n atomic.Int32
	w.on("/p", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("ETag", `"v1"`)
		if i := n.Add(1); i >= 2 && i <= 4 {
			rw.Header().Set("Content-Usage", "train-ai=n")
		}
		if r.Header.Get("If-None-Match") == `"v1"` {
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		html()(rw, r)
	})
	r, _ := recrawling(t, w, ".=20ms..1h")
	if _, _, err := r.queue.Set(t.Context(), func(s *frontier.Settings) error { s.Purpose = []string{"ai-train"}; return nil }); err != nil {
		t.Fatal(err)
	}
	r.seed("http://a.example/p")
	c := r.crawler()
	wait := r.start(c)
	until(t, "it is fetched six times", func() bool { return len(r.store.of("http://a.example/p")) >= 6 })
	c.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	type fetched struct {
		status              int
		refused, unchanged  bool
		content, hasContent bool
	}
	want := []fetched{{200, false, false, true, true}, {304, true, false, false, true}, {200, true, true, false, true}, {200, true, true, false, true}, {200, false, false, true, true}, {304, false, true, false, false}}
	for i, rec := range r.store.of("http://a.example/p")[:6] {
		got := fetched{rec.Status, rec.Withheld != "", rec.Unchanged, rec.Title != "" && rec.Digest != "", rec.HasContent()}
		if got != want[i] {
			t.Errorf("fetch %d: %+v, want %+v", i, got, want[i])
		}
	}
}

// TestRefusedKept: another fetcher has the rules from the shard, and refuses as the first
// one did without asking for robots.txt.
func TestRefusedKept(t *testing.T) {
	onBoth(t, wanting("ai-train"), func(t *testing.T, w *web, r *rig) {
		choosy(w)
		r.seed("http://a.example/usage", "http://a.example/plain")
		r.run()
		r.seed("http://a.example/usage/2", "http://a.example/signal")
		r.run()
		if n := len(w.requests("a.example", true)); n != 1 {
			t.Errorf("robots.txt was asked for %d times", n)
		}
		for url, rec := range r.store.by(t) {
			if refused := rec.Error != nil && rec.Error.Class == work.CausePreference; refused != !strings.HasSuffix(url, "/plain") {
				t.Errorf("%s: %+v", url, rec.Error)
			}
		}
	})
}

// TestTDMFile: the TDM file of an origin is asked for once by the whole fleet, after
// robots.txt, and where robots.txt allows it. The header counts before it.
func TestTDMFile(t *testing.T) {
	const file = "/.well-known/tdmrep.json"
	rules := text(200, `[{"location": "/open/", "tdm-reservation": 0}, {"location": "/", "tdm-reservation": 1, "tdm-policy": "https://a.example/policy"}]`)
	onBoth(t, func(s *frontier.Settings) { s.Purpose, s.TDMRep = []string{"tdm"}, true }, func(t *testing.T, w *web, r *rig) {
		w.on("a.example"+file, rules)
		w.on("b.example"+file, redirect("/elsewhere"))
		w.on("b.example/elsewhere", rules)
		w.on("c.example/robots.txt", text(200, "User-agent: *\nDisallow: /.well-known/"))
		w.on("c.example"+file, rules)
		w.on("d.example"+file, text(500, ""))
		w.on("e.example"+file, text(200, "<html>no such page"))
		w.rest(html())
		sites := []string{"a", "b", "c", "d", "e"}
		for _, s := range sites {
			r.seed("http://"+s+".example/x", "http://"+s+".example/open/x")
		}
		r.run()
		r.seed("http://a.example/y", "http://d.example/y")
		r.run() // another fetcher
		var dead []string
		for url, rec := range r.store.by(t) {
			if rec.Error != nil && rec.Error.Class == work.CausePreference {
				dead = append(dead, url)
			} else if rec.Error != nil {
				t.Errorf("%s: %+v", url, rec.Error)
			}
		}
		slices.Sort(dead)
		if want := []string{"http://a.example/x", "http://a.example/y", "http://b.example/x"}; !slices.Equal(dead, want) {
			t.Errorf("refused %v, want %v", dead, want)
		}
		for _, s := range sites {
			n := w.times("http://" + s + ".example" + file)
			if want := map[bool]int{true: 0, false: 1}[s == "c"]; n != want || len(w.requests(s+".example", true)) != 1 {
				t.Errorf("%s: the file was asked for %d times", s, n)
			}
		}
		if rec := r.store.by(t)["http://a.example/open/x"]; string(rec.Preferences) != `{"tdm":{"says":"yes","by":"tdmrep.json: tdm-reservation=0"}}` {
			t.Errorf("%s", rec.Preferences)
		}
	})
	t.Run("header first", func(t *testing.T) {
		w := newWeb(t)
		w.on(file, rules)
		w.on("/x", header("TDM-Reservation", "0"))
		r := newRig(t, w, func(s *frontier.Settings) { s.TDMRep = true })
		r.seed("http://a.example/x")
		r.run()
		if rec := r.store.by(t)["http://a.example/x"]; string(rec.Preferences) != `{"tdm":{"says":"yes","by":"TDM header: tdm-reservation=0"},"tdm_policy":"https://a.example/policy"}` {
			t.Errorf("%s", rec.Preferences)
		}
	})
	t.Run("asked for later", func(t *testing.T) {
		w := newWeb(t)
		w.on(file, rules)
		w.rest(html())
		r := newRig(t, w, func(s *frontier.Settings) { s.Delay = time.Millisecond })
		r.seed("http://a.example/x")
		r.run()
		if n := w.times("http://a.example" + file); n != 0 {
			t.Errorf("nobody wants the file, and it was asked for %d times", n)
		}
		r.queue.Set(t.Context(), func(s *frontier.Settings) error { s.TDMRep = true; return nil })
		r.seed("http://a.example/y")
		r.run()
		if rec := r.store.by(t)["http://a.example/y"]; !strings.Contains(string(rec.Preferences), `"tdm":{"says":"no"`) {
			t.Errorf("%s", rec.Preferences)
		}
	})
}

// TestTDMFileOfSlowSite: the site's delay is longer than a visit should last. The visit
// waits for the TDM file all the same: one that ended would read robots.txt anew each time.
func TestTDMFileOfSlowSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := frontier.DefaultSettings()
		s.Delay, s.Jitter, s.TDMRep = 2*visitSpan, 0, true
		q, err := memory.New(memory.Config{Settings: s})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		began := time.Now()
		r := &rig{t: t, store: new(store), queue: q}
		r.cfg = Config{
			Frontier: q, Fetcher: &canned{[]byte("<title>x</title>")}, Sink: r.store, Accepts: func(*fetch.Response) bool { return true }, Agent: "seine",
			Exact: true, ExitWhenDone: true, Elapsed: func() time.Duration { return time.Since(began) },
		}
		r.seed("http://a.example/x")
		c := r.crawler()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if rec := r.store.by(t)["http://a.example/x"]; rec.Title != "x" {
			t.Errorf("%+v", rec)
		}
	})
}

// TestMarkdown: a site that offers Markdown is read in it: title, links, and what it wants
// done with the page, which counts before any link of the page is admitted. llms.txt is read
// as a sitemap.
func TestMarkdown(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, wanting("ai-train"))
	client, err := fetch.New(fetch.Config{AcceptMarkdown: true, AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, ConnectTo: []string{"::" + w.srv.Listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	r.cfg.Fetcher, r.cfg.Accepts = client, client.Accepts
	both := func(markdown string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.Header.Get("Accept"), "text/markdown") {
				html("/of-html")(rw, r)
				return
			}
			rw.Header().Set("Content-Type", "text/markdown; charset=utf-8")
			io.WriteString(rw, markdown)
		}
	}
	w.on("/", both("# Front\n\n[good](/good), [bad](/bad)\n"))
	w.on("/good", both("# Good\n"))
	w.on("/bad", both("# Bad\n\n[beyond](/beyond)\n\n<meta name=\"robots\" content=\"noai\">\n"))
	w.on("/llms.txt", text(200, "# Example\n\n- [Listed](/listed): a page\n"))
	w.on("/listed", both("# Listed\n"))
	r.seed("http://a.example/")
	r.admit("http://a.example/llms.txt", func(c *frontier.Candidate) { c.Sitemap = true })
	r.run()
	got := r.store.by(t)
	for path, title := range map[string]string{"/": "Front", "/good": "Good", "/listed": "Listed", "/bad": ""} {
		if rec, there := got["http://a.example"+path]; !there || rec.Error != nil || rec.Title != title || (rec.Withheld != "") != (path == "/bad") {
			t.Errorf("%s: %v %+v", path, there, rec)
		}
	}
	if len(got) != 5 {
		t.Errorf("%d URLs have records", len(got))
	}
}
