package web

import (
	"bytes"
	"context"
	"errors"
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
