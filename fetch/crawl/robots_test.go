package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seine/fetch"
	"seine/fetch/crawl/internal/site"
	"seine/fetch/crawl/internal/work"
	"seine/fetch/robots"
	"seine/frontier"
	"seine/frontier/canon"
)

func TestRobotsVariants(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	for _, c := range []struct {
		name   string
		robots http.HandlerFunc
		set    func(*frontier.Settings)
		asked  int // of /x and /y
		robot  int // requests for robots.txt, 0 = at least two
	}{
		{"missing", text(404, ""), nil, 2, 1},
		{"gone", text(410, "User-agent: *\nDisallow: /"), nil, 2, 1},
		{"forbids", text(200, "User-agent: *\nDisallow: /x"), nil, 1, 1},
		{"names us", text(200, "User-agent: *\nDisallow: /\nUser-agent: seine\nDisallow: /x"), nil, 1, 1},
		{"names the crawl's agent", text(200, "User-agent: *\nDisallow: /\nUser-agent: other\nDisallow:"), func(s *frontier.Settings) { s.UserAgent = "other/2 (x)" }, 2, 1},
		{"names the robots agent", text(200, "User-agent: *\nDisallow: /\nUser-agent: third\nDisallow:"), func(s *frontier.Settings) { s.RobotsAgent = "third" }, 2, 1},
		{"ignored", text(200, "User-agent: *\nDisallow: /"), func(s *frontier.Settings) { s.Robots = "ignore" }, 2, -1},
		{"redirects", redirect("/r2"), nil, 1, 1},
		{"redirects for ever", redirect("/robots.txt"), nil, 2, 6},
		{"fails at first", func(rw http.ResponseWriter, r *http.Request) {
			if tries.Add(1) < 3 {
				rw.WriteHeader(503)
				return
			}
			text(200, "User-agent: *\nDisallow: /x")(rw, r)
		}, nil, 1, 3},
		{"fails", text(500, ""), nil, 0, 0},
		{"too many", text(429, ""), nil, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, c.set)
			r.cfg.GiveUp = 200 * time.Millisecond
			w.on("/robots.txt", c.robots)
			w.on("/r2", text(200, "User-agent: *\nDisallow: /x"))
			r.seed("http://a.example/x", "http://a.example/y")
			crawler := r.run()
			if n := w.times("http://a.example/x") + w.times("http://a.example/y"); n != c.asked {
				t.Errorf("%d pages asked for, want %d", n, c.asked)
			}
			n := len(w.requests("", true))
			if c.robot == 0 && n < 2 || c.robot < 0 && n > 0 || c.robot > 0 && n != c.robot {
				t.Errorf("robots.txt asked for %d times", n)
			}
			if backedOff := crawler.Progress().BackedOff; c.asked == 0 && (len(backedOff) != 1 || backedOff[work.CauseStatus].Sites != 1) {
				t.Errorf("backed off: %+v", backedOff)
			}
			for url, rec := range r.store.by(t) {
				if c.asked == 0 && (rec.Error == nil || rec.Error.Class != work.CauseUnreachable) {
					t.Errorf("%s: %+v", url, rec)
				}
			}
			r.checkEmpty()
			checkIdle(t, crawler)
		})
	}
}

// TestRobotsShared: rules are kept in the shard, read under one name.
func TestRobotsShared(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.on("/robots.txt", text(200, "User-agent: *\nDisallow: /x"))
	r.seed("http://a.example/x", "http://a.example/1")
	r.run()
	r.seed("http://a.example/2")
	r.run() // another crawler
	if n := len(w.requests("", true)); n != 1 {
		t.Errorf("asked for %d times by a fleet of two", n)
	}
	r.queue.Set(t.Context(), func(s *frontier.Settings) error { s.RobotsAgent = "new"; return nil })
	r.seed("http://a.example/3")
	r.run()
	if n := len(w.requests("", true)); n != 2 {
		t.Errorf("asked for %d times under two names", n)
	}
}

// TestRobotsClock: robots.txt and its redirects count on the site's clock, and
// Crawl-delay rules over the crawl's.
func TestRobotsClock(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Delay = 60 * time.Millisecond })
	w.on("a.example/robots.txt", redirect("/r2"))
	w.on("a.example/r2", text(404, ""))
	w.on("b.example/robots.txt", text(200, "User-agent: *\nCrawl-delay: 0.2"))
	w.tree("a.example", 6)
	w.tree("b.example", 4)
	r.seed("http://a.example/p0", "http://b.example/p0")
	r.run()
	w.checkGaps(t, 60*time.Millisecond)
	b := append(w.requests("b.example", true), w.requests("b.example", false)...)
	for i := range b[1:] {
		if gap := b[i+1].at.Sub(b[i].at); gap < 200*time.Millisecond {
			t.Errorf("Crawl-delay of 200 ms: %v", gap)
		}
	}
	if n := len(w.requests("", false)); n != 11 {
		t.Errorf("%d requests", n)
	}
}

// TestRobotsCredentials: what belongs to one site goes to no other, not even
// with its robots.txt.
func TestRobotsCredentials(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) {
		s.UserAgent = "bot/1"
		s.Sites = []frontier.SiteRule{{Match: "a.example", Auth: "u:p", Headers: map[string]string{"X-Own": "1"}}}
	})
	w.on("a.example/robots.txt", redirect("http://b.example/r"))
	w.on("b.example/r", text(404, ""))
	w.page("a.example/")
	r.seed("http://a.example/")
	r.run()
	for _, a := range append(w.requests("", true), w.requests("", false)...) {
		own := a.host == "a.example"
		if (a.head.Get("X-Own") != "") != own || (a.head.Get("Authorization") != "") != own || a.head.Get("User-Agent") != "bot/1" {
			t.Errorf("%s%s got %v", a.host, a.path, a.head)
		}
	}
}

func TestSitemaps(t *testing.T) {
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, func(s *frontier.Settings) { s.Sitemaps = on })
			w.on("a.example/robots.txt", text(200, "Sitemap: http://a.example/map.xml\nSitemap: http://other.example/map.xml\nSitemap: no url"))
			w.on("/map.xml", func(rw http.ResponseWriter, rq *http.Request) {
				rw.Header().Set("Content-Type", "application/xml")
				rw.Write([]byte(`<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://a.example/hidden</loc></url></urlset>`))
			})
			w.page("/hidden")
			w.page("/")
			r.seed("http://a.example/")
			r.run()
			want := 0
			if on {
				want = 1
			}
			if n := w.times("http://a.example/hidden"); n != want {
				t.Errorf("sitemaps %v: the page was asked for %d times", on, n)
			}
			if n := w.times("http://other.example/map.xml"); n != want {
				t.Errorf("sitemaps %v: the one on another host was asked for %d times", on, n)
			}
		})
	}
}

// TestSitemapsFull: sites whose sitemaps find no room hold up nobody else, and
// are asked again until there is room.
func TestSitemapsFull(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Sitemaps = true })
	m := meddle(r)
	m.full.Store(true)
	r.cfg.Concurrency = 2
	const sites = 40 // more than are leased at once
	for i := range sites {
		host := fmt.Sprintf("s%d.example", i)
		w.on(host+"/robots.txt", text(200, "Sitemap: http://"+host+"/map.xml"))
		w.page(host + "/")
		w.page(host + "/map.xml")
		r.seed("http://" + host + "/")
	}
	w.page("plain.example/", "/known")
	r.seed("http://plain.example/")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "the page of another site is settled", func() bool { return r.stats().Done == 1 })
	until(t, "it is said that there is no room", func() bool {
		err := crawler.Ready(t.Context())
		return err != nil && strings.Contains(err.Error(), "no room")
	})
	m.full.Store(false)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	for i := range sites {
		if n := w.times(fmt.Sprintf("http://s%d.example/map.xml", i)); n != 1 {
			t.Errorf("sitemap %d was asked for %d times", i, n)
		}
	}
	for _, l := range crawler.shards {
		if l.admitter.IsFull(time.Now()) {
			t.Errorf("shard %d still counts as full", l.Index)
		}
	}
	checkIdle(t, crawler)
}

// TestRobotsClockSetBack: rules that the shard would keep for longer than anybody
// may, since its clock was set back, are asked for anew.
func TestRobotsClockSetBack(t *testing.T) {
	for ttl, asked := range map[time.Duration]int{site.RulesTTL: 0, site.RulesTTL + time.Hour: 1} {
		t.Run(ttl.String(), func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, nil)
			w.page("a.example/")
			w.page("a.example/next")
			r.seed("http://a.example/")
			r.run() // of a site that nobody asked before none are looked for
			r.seed("http://a.example/next")
			rules := robots.Parse([]byte("User-agent: *\nDisallow: /x"), "seine").AppendKept(nil, "seine", time.Now())
			for k := range r.cfg.Frontier.Shards() {
				if err := r.cfg.Frontier.SetRules(t.Context(), k, []frontier.OriginRules{{Site: "a.example", Origin: "http://a.example", Rules: rules, TTL: ttl}}); err != nil {
					t.Fatal(err)
				}
			}
			r.run()
			if n := len(w.requests("", true)) - 1; n != asked {
				t.Errorf("robots.txt was asked for %d times, want %d", n, asked)
			}
		})
	}
}

// TestDeadName: a name that does not resolve is a matter of its URLs.
func TestDeadName(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	client, err := fetch.New(fetch.Config{UserAgent: "seine/test", Resolver: noNames{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	r.cfg.Fetcher = client
	r.seed("http://nowhere.invalid/x", "http://127.0.0.1/guarded")
	crawler := r.run()
	got := r.store.by(t)
	if rec := got["http://nowhere.invalid/x"]; rec.Error == nil || rec.Error.Class != fetch.ClassNoName || rec.Attempts != 1 {
		t.Errorf("no such name: %+v", rec)
	}
	if rec := got["http://127.0.0.1/guarded"]; rec.Error == nil || rec.Error.Class != fetch.ClassGuard {
		t.Errorf("a private address: %+v", rec)
	}
	r.checkEmpty()
	checkIdle(t, crawler)
}

// noBody is a fetch.Handler that wants no body.
type noBody struct{}

func (noBody) Begin(*fetch.Response) bool  { return false }
func (noBody) Write(p []byte) (int, error) { return len(p), nil }

func TestCacheTime(t *testing.T) {
	w := newWeb(t)
	for value, want := range map[string]time.Duration{
		"": time.Hour, "no-store": 10 * time.Minute, "public, max-age=60": 10*time.Minute + time.Minute, "max-age=999999": time.Hour, "max-age=x": time.Hour,
	} {
		w.on("/c", func(rw http.ResponseWriter, r *http.Request) {
			if value != "" {
				rw.Header().Set("Cache-Control", value)
			}
		})
		var resp fetch.Response
		if err := w.client(t).Do(t.Context(), &fetch.Request{URL: "http://a.example/c"}, &resp, noBody{}); err != nil {
			t.Fatal(err)
		}
		if got := site.CacheTime(resp.Header, time.Hour); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// silentRules is a frontier that owes its answers on rules.
type silentRules struct {
	Frontier
	asked chan string   // origins that are asked for, or given
	end   chan struct{} // closed when it answers
}

func (m *silentRules) owe(ctx context.Context, origin string) error {
	if !strings.Contains(origin, "silent.example") {
		return nil
	}
	m.asked <- origin
	select {
	case <-m.end:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Visit leases sites as if they had been asked before.
func (m *silentRules) Visit(ctx context.Context, k int, tickets []frontier.Ticket, limits frontier.VisitLimits) ([]frontier.Visit, error) {
	visits, err := m.Frontier.Visit(ctx, k, tickets, limits)
	for i := range visits {
		visits[i].First = false
	}
	return visits, err
}

func (m *silentRules) Rules(ctx context.Context, k int, batch []frontier.OriginRules) error {
	if err := m.owe(ctx, batch[0].Origin); err != nil {
		return err
	}
	return m.Frontier.Rules(ctx, k, batch)
}

func (m *silentRules) SetRules(ctx context.Context, k int, batch []frontier.OriginRules) error {
	if err := m.owe(ctx, batch[0].Origin); err != nil {
		return err
	}
	return m.Frontier.SetRules(ctx, k, batch)
}

// TestSilentRules: while a shard owes an answer on rules, or takes none, the only
// worker fetches the pages of other shards.
func TestSilentRules(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.Concurrency = 1
	m := &silentRules{Frontier: r.cfg.Frontier, asked: make(chan string, 1), end: make(chan struct{})}
	r.cfg.Frontier = m
	w.page("silent.example/", "/next")
	shardOf := func(host string) int { return m.Of(canon.FingerprintOf([]byte(host), nil)) }
	r.seed("http://silent.example/")
	crawler := r.crawler()
	wait := r.start(crawler)
	<-m.asked
	others := func(name string) {
		t.Helper()
		var urls []string
		for i := 0; len(urls) < 5; i++ {
			if host := fmt.Sprintf("%s%d.example", name, i); shardOf(host) != shardOf("silent.example") {
				urls = append(urls, "http://"+host+"/")
			}
		}
		r.seed(urls...)
		until(t, "pages of other shards", func() bool {
			n := 0
			for _, url := range urls {
				n += w.times(url)
			}
			return n == 5
		})
	}
	others("before")
	if n := w.times("http://silent.example/"); n != 0 {
		t.Errorf("a page was asked for %d times before its rules were", n)
	}
	m.end <- struct{}{} // the shard has none
	<-m.asked           // and is given what the site says
	others("after")
	until(t, "the page itself", func() bool { return w.times("http://silent.example/next") == 1 })
	close(m.end)
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	r.checkEmpty()
	checkIdle(t, crawler)
}

// shortOf fails requests for want of something on this side, then makes them.
type shortOf struct {
	fetch.Doer
	class string
	left  atomic.Int64
}

func (s *shortOf) Do(ctx context.Context, req *fetch.Request, resp *fetch.Response, h fetch.Handler) error {
	if s.left.Add(-1) >= 0 {
		return &fetch.Error{Class: s.class, Retry: true, Err: errors.New("none left")}
	}
	return s.Doer.Do(ctx, req, resp, h)
}

// TestLocalFailure: what fails for want of descriptors, ports or resolvers is held
// neither against the site nor against the URL, be it robots.txt or the page.
func TestLocalFailure(t *testing.T) {
	for _, class := range []string{fetch.ClassFiles, fetch.ClassPorts, fetch.ClassResolver} {
		t.Run(class, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, nil)
			s := &shortOf{Doer: r.cfg.Fetcher, class: class}
			s.left.Store(10)
			r.cfg.Fetcher = s
			w.page("/a")
			w.page("/b")
			r.seed("http://a.example/a", "http://a.example/b")
			crawler := r.run()
			for url, rec := range r.store.by(t) {
				if rec.Error != nil || rec.Attempts != 1 {
					t.Errorf("%s: %+v after %d attempts", url, rec.Error, rec.Attempts)
				}
			}
			if left := s.left.Load(); left > 0 {
				t.Errorf("%d failures were not met", left)
			}
			r.checkEmpty()
			checkIdle(t, crawler)
		})
	}
}
