package crawl

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seine/fetch"
	"seine/fetch/crawl/internal/watch"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
	"seine/frontier/canon"
)

// webcase answers with a whole answer of the shared cases, byte for byte, and
// closes the connection.
func webcase(t *testing.T, name string) http.HandlerFunc {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "testdata", "webcases", name)
	answer, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		t.Skip("SKIPPED: no ../shared/testdata/webcases beside the repository")
	}
	if err != nil {
		t.Fatal(err)
	}
	return rawly(t, string(answer))
}

func rawly(t *testing.T, answer string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		nc, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer nc.Close()
		fmt.Fprint(nc, answer)
	}
}

// TestOddPages: pages whose answers are not written as they should be are read
// for their links.
func TestOddPages(t *testing.T) {
	for _, name := range []string{"page", "N27", "N34", "N35.a", "N36.a", "N37.a", "X06.a", "X09.a", "X09.c", "X09.e"} {
		t.Run(name, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, nil)
			w.on("/", webcase(t, name+".raw"))
			w.rest(webcase(t, "next.raw"))
			r.seed("http://a.example/")
			r.run()
			if w.times("http://a.example/") != 1 || w.times("http://a.example/next") != 1 {
				t.Errorf("%s: asked %d times for the page and %d for its link", name, w.times("http://a.example/"), w.times("http://a.example/next"))
			}
			for url, rec := range r.store.by(t) {
				if rec.Error != nil || rec.Title == "" {
					t.Errorf("%s: %s: %+v", name, url, rec)
				}
			}
		})
	}
}

// TestRedirectsToNowhere: a 3xx without Location is the page that browsers show;
// two that differ are refused.
func TestRedirectsToNowhere(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.on("/choices", rawly(t, "HTTP/1.1 300 Multiple Choices\r\nContent-Type: text/html\r\nContent-Length: 22\r\n\r\n<a href='/one'>one</a>"))
	w.on("/two", rawly(t, "HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"))
	w.on("/latin", rawly(t, "HTTP/1.1 302 Found\r\nLocation: /caf\xe9\r\nContent-Length: 0\r\n\r\n"))
	w.on("/caf%E9", html())
	w.page("/one")
	r.seed("http://a.example/choices", "http://a.example/two", "http://a.example/latin")
	r.run()
	recs := r.store.by(t)
	if w.times("http://a.example/one") != 1 || w.times("http://a.example/caf%E9") != 1 || len(recs) != 5 {
		t.Errorf("%+v", recs)
	}
	if e := recs["http://a.example/two"].Error; e == nil || e.Class != fetch.ClassProtocol || !strings.Contains(e.Text, "Location") {
		t.Errorf("%+v", e)
	}
}

// TestOddRobots: what is wrong with the answer that carries a robots.txt does
// not change its rules.
func TestOddRobots(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte("User-agent: *\nDisallow: /x"))
	z.Close()
	const wide = "\xff\xfeU\x00s\x00e\x00r\x00-\x00a\x00g\x00e\x00n\x00t\x00:\x00*\x00\n\x00D\x00i\x00s\x00a\x00l\x00l\x00o\x00w\x00:\x00/\x00x\x00"
	var tries atomic.Int32
	for _, c := range []struct {
		name   string
		robots http.HandlerFunc
		pages  string // that are asked for, of /x and /y
	}{
		{"N40", webcase(t, "N40.robots.raw"), ""},
		{"X08", webcase(t, "X08.robots.raw"), "/x /y"},
		{"LF alone", rawly(t, "HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 26\n\nUser-agent: *\nDisallow: /x"), "/y"},
		{"gzip", rawly(t, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"+packed.String()), "/y"},
		{"says br", rawly(t, "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\nUser-agent: *\nDisallow: /x"), "/y"},
		{"UTF-16", rawly(t, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"+wide), "/y"},
		{"does not decode at first", func(rw http.ResponseWriter, r *http.Request) {
			if tries.Add(1) < 3 {
				rawly(t, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"+packed.String()[:20])(rw, r)
			} else {
				text(200, "User-agent: *\nDisallow: /x")(rw, r)
			}
		}, "/y"},
		{"never decodes", rawly(t, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x00\x01\x02"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, nil)
			r.cfg.GiveUp = 200 * time.Millisecond
			w.on("/robots.txt", c.robots)
			w.rest(html())
			r.seed("http://a.example/x", "http://a.example/y")
			r.run()
			var asked []string
			for _, path := range []string{"/x", "/y"} {
				if w.times("http://a.example"+path) > 0 {
					asked = append(asked, path)
				}
			}
			if got := strings.Join(asked, " "); got != c.pages {
				t.Errorf("%s: asked for %q, want %q", c.name, got, c.pages)
			}
			for url, rec := range r.store.by(t) {
				if c.name == "never decodes" && (rec.Error == nil || rec.Error.Class != work.CauseUnreachable || !strings.Contains(rec.Error.Text, "gzip")) {
					t.Errorf("%s: %+v", url, rec.Error)
				}
			}
		})
	}
}

// TestLongRobots: a robots.txt is read whole whatever the limit of pages is.
func TestLongRobots(t *testing.T) {
	long := "User-agent: *\n" + strings.Repeat("Disallow: /nothing/at/all\n", 512<<10/26) + "Disallow: /private/\n"
	for name, robots := range map[string]http.HandlerFunc{"N39": webcase(t, "N39.a.robots.raw"), "512 KiB": text(200, long)} {
		t.Run(name, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, nil)
			r.cfg.Fetcher = smallClient(t, w)
			w.on("/robots.txt", robots)
			w.on("/", webcase(t, "N39.page.raw"))
			w.rest(html())
			r.seed("http://a.example/")
			r.run()
			if w.times("http://a.example/private/x") != 0 || w.times("http://a.example/next") != 1 {
				t.Errorf("%s: asked %d times for what it forbids, %d for what it allows", name, w.times("http://a.example/private/x"), w.times("http://a.example/next"))
			}
		})
	}
}

// locked is a buffer for a log.
type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestLongCrawlDelay: a Crawl-delay longer than a visit ends the visit, and the
// site waits without a lease; one beyond the cap is cut, and that is said.
func TestLongCrawlDelay(t *testing.T) {
	for _, c := range []struct {
		robots       http.HandlerFunc
		most         time.Duration
		least, until time.Duration // of the wait
		said         bool
	}{
		{webcase(t, "N18.robots.raw"), 0, 80 * time.Second, 90 * time.Second, false},
		{text(200, "User-agent: *\nCrawl-delay: 600"), 0, 590 * time.Second, 600 * time.Second, false},
		{text(200, "User-agent: *\nCrawl-delay: 4000"), 0, 590 * time.Second, 600 * time.Second, true},
		{text(200, "User-agent: *\nCrawl-delay: 4000"), time.Hour, 3590 * time.Second, 3600 * time.Second, true},
		{text(200, "User-agent: *\nCrawl-delay: 90"), 20 * time.Second, 15 * time.Second, 20 * time.Second, true},
	} {
		t.Run(c.until.String(), func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, func(s *frontier.Settings) { s.MaxCrawlDelay = c.most })
			var log locked
			r.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
			w.on("/robots.txt", c.robots)
			w.rest(html())
			r.seed("http://a.example/x", "http://a.example/y")
			crawler := r.crawler()
			wait := r.start(crawler)
			until(t, "the site waits", func() bool {
				s := r.stats()
				return len(w.requests("", true)) == 1 && s.Leases == 0 && s.Queued == 2
			})
			var u canon.URL
			if err := canon.NewParser(canon.Config{}).Parse(&u, []byte("http://a.example/x")); err != nil {
				t.Fatal(err)
			}
			_, fp := canon.NewSites(canon.ByDomain).Fingerprint(&u)
			reply, err := r.queue.Tick(t.Context(), r.queue.Of(fp), frontier.TickRequest{})
			if err != nil || reply.Next < c.least || reply.Next > c.until+time.Second {
				t.Errorf("waits %v, want up to %v (%v)", reply.Next, c.until, err)
			}
			crawler.Stop()
			if err := wait(); err != nil {
				t.Error(err)
			}
			if said := strings.Contains(log.String(), "--max-crawl-delay"); said != c.said {
				t.Errorf("%v: %s", c.until, log.String())
			}
		})
	}
}

// spy notes which requests allow old key exchanges.
type spy struct {
	fetch.Doer
	mu     sync.Mutex
	legacy map[string]bool
}

func (s *spy) Do(ctx context.Context, req *fetch.Request, resp *fetch.Response, h fetch.Handler) error {
	s.mu.Lock()
	s.legacy[req.URL] = req.TLSLegacy
	s.mu.Unlock()
	return s.Doer.Do(ctx, req, resp, h)
}

// TestLegacySites: old key exchanges are allowed where a rule says so, for the
// robots.txt too, and nowhere else.
func TestLegacySites(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Sites = []frontier.SiteRule{{Match: "old.example", TLSLegacy: true}} })
	s := &spy{Doer: r.cfg.Fetcher, legacy: make(map[string]bool)}
	r.cfg.Fetcher = s
	w.on("old.example/robots.txt", redirect("http://new.example/r"))
	w.rest(html())
	r.seed("http://old.example/", "http://new.example/")
	r.run()
	want := map[string]bool{
		"http://old.example/": true, "http://old.example/robots.txt": true,
		"http://new.example/": false, "http://new.example/robots.txt": false, "http://new.example/r": false,
	}
	if !maps.Equal(s.legacy, want) {
		t.Errorf("%v", s.legacy)
	}
}

// TestNamedSitemaps: what a robots.txt names is read by content, whatever its
// type, name and host; rules of the crawl bind the pages in it.
func TestNamedSitemaps(t *testing.T) {
	urls := func(urls ...string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/octet-stream")
			fmt.Fprint(rw, "<urlset>")
			for _, u := range urls {
				fmt.Fprintf(rw, "<url><loc>%s</loc></url>", u)
			}
			fmt.Fprint(rw, "</urlset>")
		}
	}
	index := func(url string) http.HandlerFunc {
		return text(200, "<sitemapindex><sitemap><loc>"+url+"</loc></sitemap></sitemapindex>")
	}
	for _, c := range []struct {
		name     string
		seed     string
		settings func(*frontier.Settings)
		serve    map[string]http.HandlerFunc
		asked    string // pages, beside the seed and what serve has
		refused  string // reason that is counted once
	}{
		{"N25", "http://www.example.com/", nil, map[string]http.HandlerFunc{
			"www.example.com/robots.txt": webcase(t, "N25.robots.raw"), "cdn.example.net/s.xml": webcase(t, "N25.sitemap.raw"),
		}, "www.example.com/p1", ""},
		{"N26", "http://example.com/", nil, map[string]http.HandlerFunc{
			"example.com/robots.txt": webcase(t, "N26.robots.raw"), "example.com/s.xml.gz": webcase(t, "N26.sitemap.raw"),
		}, "example.com/p1", ""},
		{"X03", "http://example.com/", nil, map[string]http.HandlerFunc{
			"example.com/robots.txt": webcase(t, "X03.robots.raw"), "example.com/sitemap.xml": webcase(t, "X03.sitemap.raw"),
		}, "example.com/p1", ""},
		{"X04", "http://example.com/", func(s *frontier.Settings) {
			s.Allow, s.MaxDepth, s.SkipExt = []string{"/blog/"}, 1, []string{"xml"}
		}, map[string]http.HandlerFunc{
			"example.com/robots.txt": webcase(t, "X04.robots.raw"), "example.com/sitemap.xml": webcase(t, "X04.index.raw"),
			"example.com/sitemap-1.xml": webcase(t, "X04.child.raw"),
		}, "example.com/blog/1", ""},
		{"relative, redirected away", "http://a.example/", nil, map[string]http.HandlerFunc{
			"a.example/robots.txt": text(200, "Sitemap: maps"), "a.example/maps": redirect("http://b.example/list"),
			"b.example/list": urls("http://a.example/p1", "http://b.example/p2"),
		}, "a.example/p1", "foreign"},
		{"an index on another host", "http://a.example/", func(s *frontier.Settings) { s.Scope = "host" }, map[string]http.HandlerFunc{
			"a.example/robots.txt": text(200, "Sitemap: http://b.example/i"), "b.example/i": index("http://b.example/j"),
			"b.example/j": urls("http://a.example/p1", "http://www.a.example/p2"),
		}, "a.example/p1", "scope"},
		{"known as a page", "http://a.example/feed", nil, map[string]http.HandlerFunc{
			"a.example/robots.txt": text(200, "Sitemap: /feed"), "a.example/feed": urls("http://a.example/p1"),
		}, "a.example/p1", ""},
		{"shared by two sites", "http://a.example/ http://b.example/", nil, map[string]http.HandlerFunc{
			"a.example/robots.txt": text(200, "Sitemap: http://c.example/s"), "b.example/robots.txt": text(200, "Sitemap: http://c.example/s"),
			"c.example/s": urls("http://a.example/p1", "http://b.example/p2"),
		}, "a.example/p1 b.example/p2", ""},
		{"its host forbids it", "http://a.example/", nil, map[string]http.HandlerFunc{
			"a.example/robots.txt": text(200, "Sitemap: http://b.example/s"), "b.example/robots.txt": text(200, "User-agent: *\nDisallow: /"),
		}, "", ""},
		{"not http", "http://a.example/", nil, map[string]http.HandlerFunc{
			"a.example/robots.txt": text(200, "Sitemap: ftp://b.example/s"),
		}, "", "scheme"},
		{"denied", "http://a.example/", func(s *frontier.Settings) { s.Deny = []string{"/s$"} }, map[string]http.HandlerFunc{
			"a.example/robots.txt": text(200, "Sitemap: /s"),
		}, "", "rule"},
		{"a page in its place", "http://a.example/", nil, map[string]http.HandlerFunc{
			"a.example/robots.txt": text(200, "Sitemap: /map.html"), "a.example/map.html": html("/p1"),
		}, "a.example/p1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, func(s *frontier.Settings) {
				s.Sitemaps = true
				if c.settings != nil {
					c.settings(s)
				}
			})
			for path, f := range c.serve {
				w.on(path, f)
			}
			w.rest(html())
			seeds := strings.Fields(c.seed)
			r.seed(seeds...)
			crawler := r.crawler()
			if err := r.start(crawler)(); err != nil {
				t.Fatal(err)
			}
			var asked []string
			for _, a := range w.requests("", false) {
				if url := a.host + a.path; c.serve[url] == nil && !slices.Contains(seeds, "http://"+url) {
					asked = append(asked, url)
				}
			}
			slices.Sort(asked)
			if got := strings.Join(asked, " "); got != c.asked {
				t.Errorf("asked for %q, want %q", got, c.asked)
			}
			if c.refused != "" {
				i := slices.Index(work.RefusalNames[:], c.refused)
				if n := crawler.count.Refusals[i].Get(); n != 1 {
					t.Errorf("%d counted as %s, want 1", n, c.refused)
				}
			}
		})
	}
}

// TestLargeSitemap: a sitemap is read up to its own bounds, whatever those of
// pages are; the case X01 is one of 20,001 URLs.
func TestLargeSitemap(t *testing.T) {
	var body bytes.Buffer
	const most, named = 50_000, 50_001
	body.WriteString("<urlset>")
	for i := range named {
		fmt.Fprintf(&body, "<url><loc>http://example.com/p%d</loc></url>", i)
	}
	body.WriteString("</urlset>")
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Sitemaps, s.MaxPages = true, 2 })
	r.cfg.MaxLinks = 100
	r.cfg.Fetcher = smallClient(t, w)
	w.on("/robots.txt", text(200, "Sitemap: http://example.com/s"))
	w.on("/s", text(200, body.String()))
	w.rest(html())
	r.seed("http://example.com/")
	crawler := r.crawler()
	if err := r.start(crawler)(); err != nil {
		t.Fatal(err)
	}
	if s := r.stats(); s.Known != most+2 {
		t.Errorf("%d URLs are known, want %d and two", s.Known, most)
	}
}

// TestMadeSitemap reads the sitemap that the case X01 makes.
func TestMadeSitemap(t *testing.T) {
	script, err := filepath.Abs(filepath.Join("..", "..", "..", "shared", "testdata", "webcases", "X01.make.py"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	dir := t.TempDir()
	cmd := exec.Command(python, script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	answer, err := os.ReadFile(filepath.Join(dir, "X01.sitemap.raw"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Sitemaps, s.MaxPages = true, 2 })
	w.on("/robots.txt", text(200, "Sitemap: http://example.com/s"))
	w.on("/s", rawly(t, string(answer)))
	w.rest(html())
	r.seed("http://example.com/")
	if err := r.start(r.crawler())(); err != nil {
		t.Fatal(err)
	}
	if s := r.stats(); s.Known != 20_001+2 {
		t.Errorf("%d URLs are known, want 20,001 and two", s.Known)
	}
}

// smallClient fetches from the web pages of 1,000 bytes at most.
func smallClient(t *testing.T, w *web) *fetch.Client {
	t.Helper()
	_, port, err := net.SplitHostPort(w.srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	small, err := fetch.New(fetch.Config{
		MaxBody: 1000, AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, ConnectTo: []string{"::127.0.0.1:" + port},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { small.Close() })
	return small
}

// TestLoopsOfRedirects: a redirect to where a redirect came from is reported in the
// record, of a seed too; one to itself with a cookie names it.
func TestLoopsOfRedirects(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.on("two.example/", webcase(t, "X07.home.raw"))
	w.on("two.example/check", webcase(t, "X07.check.raw"))
	w.on("one.example/", webcase(t, "N41.redirect.raw"))
	w.on("three.example/", redirect("/b"))
	w.on("three.example/b", redirect("http://other.example/c"))
	w.on("other.example/c", redirect("http://three.example/"))
	r.seed("http://two.example/", "http://one.example/", "http://three.example/")
	r.run()
	recs := r.store.by(t)
	for _, url := range []string{"http://two.example/check", "http://other.example/c"} {
		if rec := recs[url]; rec.Error == nil || rec.Error.Class != work.CauseRedirectLoop {
			t.Errorf("%s: nothing tells of its loop: %+v", url, rec)
		}
	}
	if e := recs["http://one.example/"].Error; e == nil || e.Class != work.CauseRedirectLoop || !strings.Contains(e.Text, "seen") {
		t.Errorf("%+v", e)
	}
	if len(recs) != 6 {
		t.Errorf("%d records", len(recs))
	}
}

// TestLoopOverFetchers: each hop is fetched by another fetcher, which knows nothing
// of the others; the last one's record tells of the loop, wherever it is entered.
func TestLoopOverFetchers(t *testing.T) {
	for _, c := range []struct {
		name  string
		seed  bool
		leads map[string]string // path to path
		last  string
	}{
		{"to the seed", true, map[string]string{"/a": "/b", "/b": "/c", "/c": "/a"}, "/c"},
		{"to a hop", true, map[string]string{"/a": "/b", "/b": "/c", "/c": "/b"}, "/c"},
		{"of a link", false, map[string]string{"/a": "/b", "/b": "/a"}, "/b"},
		{"by another spelling", true, map[string]string{"/a": "/%61", "/%61": "/a"}, "/%61"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, nil)
			var crawler atomic.Pointer[Crawler]
			for from, to := range c.leads {
				w.on(from, func(rw http.ResponseWriter, req *http.Request) {
					crawler.Load().Stop()
					redirect(to)(rw, req)
				})
			}
			r.admit("http://one.example/a", func(c2 *frontier.Candidate) { c2.Seed = c.seed })
			for range len(c.leads) + 1 {
				next := r.crawler()
				crawler.Store(next)
				if err := r.start(next)(); err != nil {
					t.Fatal(err)
				}
			}
			recs := r.store.by(t)
			if len(recs) != len(c.leads) {
				t.Errorf("%d records of %d hops", len(recs), len(c.leads))
			}
			for path := range c.leads {
				rec := recs["http://one.example"+path]
				if loop := rec.Error != nil && rec.Error.Class == work.CauseRedirectLoop; loop != (path == c.last) {
					t.Errorf("%s: %+v", path, rec)
				}
			}
		})
	}
}

// TestBackOffIsLogged: the log names why sites wait, the first of each cause.
func TestBackOffIsLogged(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.GiveUp = 50 * time.Millisecond
	var log locked
	r.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.on("/robots.txt", text(503, ""))
	r.seed("http://a.example/", "http://b.example/")
	r.run()
	if got := log.String(); strings.Count(got, "backed off") != 1 || !strings.Contains(got, "503") || !strings.Contains(got, ".example") || !strings.Contains(got, "given_up_in") {
		t.Error(got)
	}
}

// TestGiveUpCountsDown: a crawl whose every site is refused says so, from when on it
// gives up, and at the end why.
func TestGiveUpCountsDown(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.Fetcher, r.cfg.GiveUp, r.cfg.ExitWhenDone = deaf{}, time.Hour, true
	r.seed("http://a.example/", "http://b.example/")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "the bound is named", func() bool { return crawler.Progress().Limit == watch.LimitUnreachable })
	p := crawler.Progress()
	if p.GivesUp < 50*time.Minute || p.GivesUp > time.Hour || p.BackedOff[fetch.ClassConnect].Sites != 2 {
		t.Errorf("%+v", p)
	}
	until(t, "it counts down", func() bool { return crawler.Progress().GivesUp < p.GivesUp })
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
}
