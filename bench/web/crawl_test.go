package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"seine/extract/sink"
	"seine/fetch/robots"

	"github.com/nlnwa/whatwg-url/url"
	"golang.org/x/net/html"
	htmlcharset "golang.org/x/net/html/charset"
)

// crawler is the plainest crawler that does all right: one request at a time,
// every library's slow way.
type crawler struct {
	t       *testing.T
	web     *Web
	client  *http.Client
	plan    Plan
	seen    map[string]bool
	queue   []todo
	rules   map[string]*robots.Rules
	records []*sink.Record
	traps   int // trapped URLs it still follows
	last    map[string]time.Time
}

type todo struct {
	url   string
	depth int
}

func newCrawler(t *testing.T, s *Server, p Plan) *crawler {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Addr())
	}
	c := &crawler{t: t, web: s.web, plan: p, seen: map[string]bool{}, rules: map[string]*robots.Rules{}, last: map[string]time.Time{}, traps: 50}
	c.client = &http.Client{Transport: &http.Transport{DialContext: dial},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(c.client.CloseIdleConnections)
	return c
}

// run crawls from seeds to the end.
func (c *crawler) run(seeds ...string) {
	for _, s := range seeds {
		c.add(s, 0)
	}
	for len(c.queue) > 0 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		c.fetch(next)
	}
}

// add queues a URL that is new, allowed and not too deep.
func (c *crawler) add(raw string, depth int) {
	host, path := splitURL(raw)
	if c.seen[host+path] || (c.plan.MaxDepth > 0 && depth > c.plan.MaxDepth) {
		return
	}
	if site := c.web.siteOf(host); c.web.trapped(site, path) {
		if c.traps--; c.traps < 0 {
			return
		}
	}
	c.seen[host+path] = true
	if !c.plan.IgnoreRobots && !c.allowed(host).Allowed([]byte(path)) {
		return
	}
	c.queue = append(c.queue, todo{raw, depth})
}

func (c *crawler) allowed(host string) *robots.Rules {
	if r := c.rules[host]; r != nil {
		return r
	}
	client := *c.client
	client.CheckRedirect = nil
	var resp *http.Response
	for resp == nil || resp.StatusCode == 503 {
		var err error
		if resp, err = client.Get("http://" + host + "/robots.txt"); err != nil {
			c.t.Fatal(err)
		}
		defer resp.Body.Close()
	}
	r := new(robots.Rules)
	if body, err := io.ReadAll(resp.Body); err == nil && resp.StatusCode == 200 {
		r = robots.Parse(body, "seine/1.0")
	}
	c.rules[host] = r
	return r
}

// fetch asks for a URL until it answers well or was tried often enough.
func (c *crawler) fetch(u todo) {
	var r *sink.Record
	for range 4 {
		var again bool
		if r, again = c.try(u); !again {
			break
		}
	}
	c.records = append(c.records, r)
}

func (c *crawler) try(u todo) (*sink.Record, bool) {
	r := &sink.Record{V: 1, URL: u.url, Depth: uint32(u.depth)}
	host, _ := splitURL(u.url)
	if rules := c.rules[host]; rules != nil {
		time.Sleep(time.Until(c.last[host].Add(rules.Delay() + time.Millisecond)))
		c.last[host] = time.Now()
	}
	resp, err := c.client.Get(u.url)
	if err != nil {
		r.Error = &sink.Error{Class: "reset", Text: err.Error()}
		return r, true
	}
	defer resp.Body.Close()
	r.Status = resp.StatusCode
	body, err := io.ReadAll(io.LimitReader(resp.Body, 10<<20+1))
	if err != nil {
		c.t.Fatal(err)
	}
	if r.Truncated = len(body) > 10<<20; r.Truncated {
		body = body[:10<<20]
	}
	switch {
	case r.Status == 429 || r.Status >= 500:
		return r, true
	case r.Status >= 300 && r.Status < 400:
		c.resolve(u, u.url, resp.Header.Get("Location"), u.depth)
	case r.Status == 200:
		c.page(u, r, body, resp.Header.Get("Content-Type"))
	}
	return r, false
}

func (c *crawler) resolve(u todo, base, ref string, depth int) {
	target, err := url.ParseRef(base, ref)
	if err != nil {
		c.t.Fatalf("%s: link %q: %v", u.url, ref, err)
	}
	from, _ := splitURL(u.url)
	to, _ := splitURL(target.Href(true))
	if from == to || c.plan.AnyScope {
		c.add(target.Href(true), depth)
	}
}

// page reads title, robots tag and links.
func (c *crawler) page(u todo, r *sink.Record, body []byte, contentType string) {
	if !strings.HasPrefix(contentType, "text/html") {
		return
	}
	body = body[:min(len(body), 100<<10)] // the long pages have their links in front
	text, err := htmlcharset.NewReader(bytes.NewReader(body), contentType)
	if errors.Is(err, io.EOF) {
		return
	}
	if err != nil {
		c.t.Fatal(err)
	}
	doc, err := html.Parse(text)
	if err != nil {
		c.t.Fatal(err)
	}
	var links []string
	nofollow := false
	for n := range doc.Descendants() {
		switch n.Data {
		case "title":
			r.Title = n.FirstChild.Data
		case "meta":
			if strings.EqualFold(attr(n, "name"), "robots") {
				content := strings.ToLower(attr(n, "content"))
				nofollow = nofollow || strings.Contains(content, "nofollow")
				r.NoIndex = r.NoIndex || strings.Contains(content, "noindex")
			}
		case "a", "area":
			if n.Type == html.ElementNode && attr(n, "href") != "" && !strings.Contains(strings.ToLower(attr(n, "rel")), "nofollow") {
				links = append(links, attr(n, "href"))
			}
		case "iframe":
			links = append(links, attr(n, "src"))
		}
	}
	if nofollow && !c.plan.IgnoreNofollow {
		return
	}
	for _, l := range links {
		c.resolve(u, u.url, l, u.depth+1)
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func all(records []*sink.Record) iter.Seq2[*sink.Record, error] {
	return func(yield func(*sink.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func serve(t testing.TB, cfg Config) *Server {
	t.Helper()
	cfg.CrawlDelay = 2 * time.Millisecond
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// The key is what a crawler that does all right comes to, whatever the web is like.
func TestKeyIsTrue(t *testing.T) {
	const quick = AllFeatures &^ Slow
	cases := []struct {
		name  string
		cfg   Config
		plan  Plan
		seeds []int
	}{
		{"demo", Demo(1), Plan{}, nil},
		{"bare", Config{Seed: 2, Sites: 3, Pages: 200}, Plan{}, nil},
		{"one page a site", Config{Seed: 3, Sites: 5, Pages: 1, Features: quick}, Plan{}, nil},
		{"all but slow", Config{Seed: 4, Sites: 6, Pages: 600, Features: quick}, Plan{}, nil},
		{"any scope", Config{Seed: 5, Sites: 9, Pages: 400, Features: Gentle}, Plan{AnyScope: true}, []int{0}},
		{"some sites", Config{Seed: 6, Sites: 9, Pages: 300, Features: quick}, Plan{Sites: []int{1, 4}}, []int{1, 4}},
		{"depth 2", Config{Seed: 7, Sites: 3, Pages: 500, Features: quick &^ Redirects}, Plan{MaxDepth: 2}, nil},
		{"disobedient", Config{Seed: 8, Sites: 8, Pages: 500, Features: quick &^ Traps}, Plan{IgnoreRobots: true}, nil},
		{"wide", Config{Seed: 9, Sites: 2, Pages: 300, Links: 10, New: 1, Features: quick}, Plan{}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, c.cfg)
			crawl := newCrawler(t, s, c.plan)
			crawl.run(s.web.Seeds(c.seeds...)...)
			c.plan.Slack = time.Second // a loaded machine may hand requests over late
			r, err := s.web.Verify(c.plan, s.web.Log(), all(crawl.records))
			if err != nil {
				t.Fatal(err)
			}
			if !r.OK() {
				t.Errorf("%s", r)
			}
			if r.Expected < len(s.web.Seeds(c.seeds...)) || (c.cfg.Features&Traps != 0 && c.cfg.Pages > 500 && r.Traps == 0) {
				t.Errorf("nothing to see: %s", r)
			}
		})
	}
}

// And a crawl that does something wrong is found out.
func TestVerifyFindsFaults(t *testing.T) {
	s := serve(t, Demo(1))
	crawl := newCrawler(t, s, Plan{})
	crawl.run(s.web.Seeds()...)
	log, records := s.web.Log(), crawl.records
	page := -1
	for i, r := range log {
		if r.Status == 200 && r.Target != "/" && r.Target != "/robots.txt" && r.Host == "s0.example" {
			page = i
			break
		}
	}
	without := append(append([]Request{}, log[:page]...), log[page+1:]...)
	forged := func(target string) []Request {
		return append(append([]Request{}, log...), Request{At: time.Now(), Host: "s0.example", Target: target, Status: 200})
	}
	private := ""
	for n := 1; private == "" && n < s.web.Pages(0); n++ {
		if s.web.traits(0, n).private {
			private = string(s.web.appendPath(nil, 0, kindPage, n, 0))
		}
	}
	changed := func(f func(*sink.Record)) []*sink.Record {
		out := append([]*sink.Record{}, records...)
		r := *out[len(out)/2]
		f(&r)
		out[len(out)/2] = &r
		return out
	}
	cases := []struct {
		name    string
		plan    Plan
		log     []Request
		records []*sink.Record
		finding func(*Report) *Finding
		says    string
	}{
		{"missing", Plan{}, without, records, func(r *Report) *Finding { return &r.Missing }, s.web.Host(0)},
		{"repeated", Plan{}, forged(log[page].Target), records, func(r *Report) *Finding { return &r.Repeated }, "2 requests, not 1"},
		{"forbidden", Plan{}, forged(private), records, func(r *Report) *Finding { return &r.Extra }, "forbidden by robots.txt"},
		{"hidden", Plan{}, forged("/secret/1"), records, func(r *Report) *Finding { return &r.Extra }, "nofollow"},
		{"unknown", Plan{}, forged("/p99999999.html"), records, func(r *Report) *Finding { return &r.Extra }, "no such URL"},
		{"early", Plan{Delay: time.Hour}, log, records, func(r *Report) *Finding { return &r.Early }, "not 1h0m0s"},
		{"no record", Plan{}, log, records[1:], func(r *Report) *Finding { return &r.Unwritten }, "http://s"},
		{"two records", Plan{}, log, append(records, records[0]), func(r *Report) *Finding { return &r.Doubled }, "2 records"},
		{"status", Plan{}, log, changed(func(r *sink.Record) { r.Status = 418 }), func(r *Report) *Finding { return &r.Wrong }, "status 418"},
		{"depth", Plan{}, log, changed(func(r *sink.Record) { r.Depth = 0 }), func(r *Report) *Finding { return &r.Wrong }, "depth"},
		{"noindex", Plan{}, log, changed(func(r *sink.Record) { r.NoIndex = !r.NoIndex }), func(r *Report) *Finding { return &r.Wrong }, "noindex"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.plan.Slack = time.Second
			r, err := s.web.Verify(c.plan, c.log, all(c.records))
			if err != nil {
				t.Fatal(err)
			}
			if f := c.finding(r); r.OK() || f.Count == 0 || !strings.Contains(strings.Join(f.Examples, "\n"), c.says) {
				t.Errorf("%q not found in %s", c.says, r)
			}
		})
	}
	var b bytes.Buffer
	if err := WriteLog(&b, log); err != nil {
		t.Fatal(err)
	}
	back, err := ReadLog(&b)
	if err != nil || len(back) != len(log) || back[page].Target != log[page].Target || !back[page].At.Equal(log[page].At) {
		t.Errorf("log does not survive: %v, %d lines", err, len(back))
	}
	if _, err := ReadLog(strings.NewReader(fmt.Sprintln("what"))); err == nil {
		t.Error("a bad log was read")
	}
}
