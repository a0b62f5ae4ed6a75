package crawl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/cascadia"

	"seine/extract"
	"seine/fetch/crawl/internal/watch"
	"seine/frontier"
	"seine/frontier/memory"
)

// TestHandlerSees: all of a page that a handler may ask for, of every URL that gets
// a record.
func TestHandlerSees(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *frontier.Settings) { s.Referrer = true }, func(t *testing.T, w *web, r *rig) {
		w.on("a.example/robots.txt", text(200, "User-agent: *\nDisallow: /no"))
		w.page("a.example/", "/b", "/gone", "/moved", "/no", "http://b.example/")
		w.on("a.example/b", text(200, "plain"))
		w.on("a.example/moved", redirect("/b"))
		var mu sync.Mutex
		seen := make(map[string]string)
		r.cfg.Handler = func(ctx context.Context, p *Page) error {
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() != nil || seen[p.URL] != "" {
				t.Errorf("%s: seen again, or without time: %v", p.URL, ctx.Err())
			}
			kind := ""
			if p.Header != nil {
				kind = p.Header.Get("Content-Type")
			}
			failed := ""
			if p.Error != nil {
				failed = p.Error.Class
			}
			seen[p.URL] = fmt.Sprint(p.Status, " ", kind, " ", len(p.Body), " ", p.Depth, " ", p.Referrer, " ", string(p.Meta), " ", p.Location, failed)
			if p.URL == "http://a.example/" {
				if p.Facts == nil || string(p.Facts.Title) != "/" || p.Charset == "" || p.Attempts != 1 {
					t.Errorf("facts %+v of %+v", p.Facts, p.Record)
				}
				want := []Link{{"http://a.example/b", extract.Anchor, true}, {"http://a.example/gone", extract.Anchor, true},
					{"http://a.example/moved", extract.Anchor, true}, {"http://a.example/no", extract.Anchor, true}, {"http://b.example/", extract.Anchor, true}}
				if got := p.Links(); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("links are %v", got)
				}
				tree, err := p.Tree()
				again, _ := p.Tree()
				if err != nil || tree != again || cascadia.Query(tree, cascadia.MustCompile("a[href='/gone']")) == nil {
					t.Errorf("a tree without the link: %v", err)
				}
			} else if len(p.Links()) != 0 {
				t.Errorf("%s has links", p.URL)
			}
			return nil
		}
		r.admit("http://usr:pw@a.example/", func(c *frontier.Candidate) { c.Meta = `{"k":1}` })
		r.run()
		root := "http://a.example/"
		for url, want := range map[string]string{
			root:           `200 text/html 120 0  {"k":1} `,
			root + "b":     "200 text/plain 5 1 " + root + "  ",
			root + "gone":  "404 text/plain; charset=utf-8 19 1 " + root + "  ",
			root + "moved": "302  0 1 " + root + "  " + root + "b",
			root + "no":    "0  0 1 " + root + "  robots",
		} {
			if url == root {
				want = strings.Replace(want, "120", fmt.Sprint(r.store.by(t)[url].Bytes), 1)
			}
			if seen[url] != want {
				t.Errorf("%s: the handler saw %q, want %q", url, seen[url], want)
			}
		}
		if records := r.store.by(t); len(records) != len(seen) {
			t.Errorf("%d records, the handler saw %d", len(records), len(seen))
		}
	})
}

// TestHandlerDoes: items, added URLs, dropped records and refused links.
func TestHandlerDoes(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, w *web, r *rig) {
		w.page("a.example/", "/keep", "/refuse", "/drop")
		w.page("a.example/drop", "/behind")
		w.on("a.example/leads", redirect("/target"))
		r.cfg.Handler = func(_ context.Context, p *Page) error {
			switch path := strings.TrimPrefix(p.URL, "http://a.example"); path {
			case "/":
				p.RefuseLinks(func(url string) bool { return strings.HasSuffix(url, "/refuse") })
				return errors.Join(p.Emit(map[string]any{"title": p.Title}), p.Emit(7), p.EmitAs("mine", []string{"x"}),
					p.Add(Candidate{URL: "added", Meta: map[string]int{"n": 3}, Priority: new(uint8(3)), Depth: new(uint32(40))}),
					p.Add(Candidate{URL: "http://b.example/in", Seed: true}),
					p.Add(Candidate{URL: "http://b.example/out"}),
					p.Add(Candidate{URL: "/leads"}))
			case "/leads":
				p.RefuseLinks(nil)
			case "/drop":
				p.DropRecord()
				return p.Emit("lost with its record")
			case "/keep":
				if p.Emit(func() {}) == nil || p.Add(Candidate{URL: "mailto:x@y"}) == nil || p.Add(Candidate{URL: "/x", Meta: "text"}) == nil {
					t.Error("an item or a candidate that is none was taken")
				}
			}
			return nil
		}
		r.seed("http://a.example/")
		c := r.run()
		records := r.store.by(t)
		var urls []string
		for url := range records {
			urls = append(urls, strings.TrimPrefix(url, "http://"))
		}
		for _, want := range []string{"a.example/", "a.example/keep", "a.example/behind", "a.example/added", "b.example/in", "a.example/leads"} {
			if _, ok := records["http://"+want]; !ok {
				t.Errorf("%s has no record", want)
			}
		}
		if len(urls) != 6 || w.times("http://a.example/refuse")+w.times("http://a.example/target")+w.times("http://b.example/out") != 0 {
			t.Errorf("records of %v", urls)
		}
		if rec := records["http://a.example/added"]; string(rec.Meta) != `{"n":3}` || rec.Depth != 40 {
			t.Errorf("added: %+v", rec)
		}
		items := records["http://a.example/"].Items
		if len(items) != 3 || items[2].Key != "mine" || items[0].Key == items[1].Key || string(items[0].Value) != `{"title":"/"}` {
			t.Errorf("items are %+v", items)
		}
		if metric(t, c, `seine_crawl_handler_calls_total{result="ok"}`) != "7" || metric(t, c, "seine_crawl_handler_items_total") != "4" || metric(t, c, `seine_crawl_links_refused_total{reason="handler"}`) != "2" {
			t.Error("calls, items or refused links are not counted")
		}
		r.checkEmpty()
		checkIdle(t, c)
	})
}

// TestHandlerFails: an error, a cause of its own, and a panic are outcomes, of
// which nothing of the page is kept; other pages go on.
func TestHandlerFails(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, w *web, r *rig) {
		var log syncBuilder
		r.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		var tries sync.Map
		r.cfg.Handler = func(_ context.Context, p *Page) error {
			n, _ := tries.LoadOrStore(p.URL, new(atomic.Int32))
			try := n.(*atomic.Int32).Add(1)
			if p.Depth > 0 {
				return nil
			}
			if err := errors.Join(p.Emit("item"), p.Add(Candidate{URL: "/of" + strings.TrimPrefix(p.URL, "http://a.example/")})); err != nil {
				t.Error(err)
			}
			switch strings.TrimPrefix(p.URL, "http://a.example/") {
			case "error":
				return errors.New("no sense")
			case "dead":
				return fmt.Errorf("said by %w", Dead("sold_out", errors.New("no more of these")))
			case "odd":
				return Dead("Not a cause!", nil)
			case "retry":
				if try < 3 {
					return Retry("soon", time.Millisecond, nil)
				}
			case "panic":
				panic("at the page")
			case "robots":
				if try < 2 {
					return errors.New("no request was made")
				}
			}
			return nil
		}
		w.on("a.example/robots.txt", text(200, "User-agent: *\nDisallow: /robots"))
		for _, path := range []string{"error", "dead", "odd", "retry", "panic", "good"} {
			w.page("a.example/"+path, "/link")
			r.seed("http://a.example/" + path)
		}
		r.seed("http://a.example/robots")
		c := r.run()
		records := r.store.by(t)
		for path, want := range map[string]struct {
			fetches    int
			class, err string
		}{
			"error": {4, "handler", "no sense"}, "dead": {1, "sold_out", "said by no more of these"}, "odd": {1, "handler", "Not a cause!"},
			"retry": {3, "", ""}, "panic": {3, "handler", "the handler panicked: at the page"}, "good": {1, "", ""}, "robots": {0, "robots", "robots.txt disallows it"},
		} {
			rec := records["http://a.example/"+path]
			class, text := "", ""
			if rec.Error != nil {
				class, text = rec.Error.Class, rec.Error.Text
			}
			if n := w.times("http://a.example/" + path); n != want.fetches || class != want.class || text != want.err {
				t.Errorf("%s: %d fetches, %q %q; want %+v", path, n, class, text, want)
			}
			_, added := records["http://a.example/of"+path]
			if kept := len(rec.Items) > 0; kept != added || kept != (want.class == "" || path == "robots") {
				t.Errorf("%s: items kept %v, added %v", path, kept, added)
			}
		}
		if text := log.String(); strings.Count(text, "panicked") != 3 || !strings.Contains(text, "url=http://a.example/panic") || !strings.Contains(text, "handler_test.go") {
			t.Errorf("the log does not tell of the panics:\n%s", text)
		}
		if metric(t, c, `seine_crawl_handler_calls_total{result="panic"}`) != "3" || metric(t, c, `seine_crawl_failures_total{cause="sold_out",kind="dead"}`) != "1" {
			t.Error("panics or causes are not counted")
		}
		r.checkEmpty()
		checkIdle(t, c)
	})
}

// syncBuilder is a text that many write to.
type syncBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuilder) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuilder) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestHandlerRepeats: a page whose settling never came is handled again, and its
// items have the same keys.
func TestHandlerRepeats(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, w *web, r *rig) {
		w.page("a.example/")
		r.cfg.Handler = func(_ context.Context, p *Page) error { return errors.Join(p.Emit(1), p.Emit(2)) }
		r.store.hold = true
		r.seed("http://a.example/")
		first := r.crawler()
		ctx, crash := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- first.Run(ctx) }()
		until(t, "a record", func() bool { return r.store.waiting() == 1 })
		crash() // its record is in the sink, and nothing is settled
		<-ended
		r.store.flush()
		r.store.mu.Lock()
		before := r.store.records[0].Items
		r.store.records = nil
		r.store.mu.Unlock()
		r.run()
		if after := r.store.by(t)["http://a.example/"].Items; len(after) != 2 || fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("items were %v and are %v", before, after)
		}
	})
}

// TestHandlerHangs: one that does not come back is named, and other sites go on;
// when requests are cut, its context ends.
func TestHandlerHangs(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.ExitWhenDone = false
	var log syncBuilder
	r.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.page("a.example/hangs")
	w.tree("b.example", 30)
	in := make(chan struct{})
	r.cfg.Handler = func(ctx context.Context, p *Page) error {
		if strings.HasSuffix(p.URL, "/hangs") {
			close(in)
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	r.seed("http://a.example/hangs", "http://b.example/p0")
	c := r.crawler()
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	<-in
	until(t, "the other site is done", func() bool { return len(r.store.by(t)) == 30 })
	until(t, "limited_by names it", func() bool { return c.Progress().Limit == watch.LimitHandler })
	later := time.Now().Add(2 * time.Minute)
	new(watch.Troubles).Log(r.cfg.Log, c.situation(later))
	if !strings.Contains(log.String(), "url=http://a.example/hangs") {
		t.Errorf("the log does not name it: %s", log.String())
	}
	var oldest bytes.Buffer
	c.handlers.WriteMetrics(&oldest, later)
	if metric(t, c, "seine_crawl_handlers_active") != "1" || metric(t, c, `seine_crawl_limited_by{bound="handler"}`) != "1" || !strings.Contains(oldest.String(), "seine_crawl_handler_oldest_seconds 12") {
		t.Error("metrics do not show that a handler hangs")
	}
	c.Stop()
	cut()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestHandlerStops: a handler may stop the crawl.
func TestHandlerStops(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.tree("a.example", 100)
	r.seed("http://a.example/p0")
	var c *Crawler
	r.cfg.Handler = func(_ context.Context, p *Page) error {
		if p.Depth == 2 {
			c.Stop()
		}
		return nil
	}
	c = r.crawler()
	if err := r.start(c)(); err != nil {
		t.Fatal(err)
	}
	if n, s := len(r.store.by(t)), r.stats(); n < 3 || n > 20 || s.Open != 0 || s.Queued == 0 {
		t.Errorf("%d records, and %+v", n, s)
	}
}

// Items travel in records as JSON.
func TestItemsInRecord(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.page("a.example/")
	r.cfg.Handler = func(_ context.Context, p *Page) error { return p.EmitAs("k", map[string]string{"a": "b\n"}) }
	r.seed("http://a.example/")
	r.run()
	rec := r.store.by(t)["http://a.example/"]
	var back struct {
		Items []struct {
			Key   string
			Value map[string]string
		}
	}
	if err := json.Unmarshal(rec.AppendJSON(nil, 0), &back); err != nil || len(back.Items) != 1 || back.Items[0].Key != "k" || back.Items[0].Value["a"] != "b\n" {
		t.Errorf("%+v, %v", back, err)
	}
}

// BenchmarkHandler is BenchmarkPage with a handler that does nothing, and with one
// that asks for the tree; BenchmarkPage itself has none.
func BenchmarkHandler(b *testing.B) {
	for name, h := range map[string]Handler{
		"none":    nil,
		"nothing": func(context.Context, *Page) error { return nil },
		"tree":    func(_ context.Context, p *Page) error { _, err := p.Tree(); return err },
	} {
		b.Run(name, func(b *testing.B) {
			body := benchBody()
			b.ReportAllocs()
			for b.Loop() {
				crawlPages(b, body, h)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchSites*benchPages), "ns/page")
		})
	}
}

// TestHandlerGoesOn: a crawl in a directory that its handler stops goes on at the
// next start, and handles each page once.
func TestHandlerGoesOn(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.tree("a.example", 30)
	dir, settings := t.TempDir(), *r.queue.Settings()
	var handled sync.Map
	for start := range 2 {
		q, err := memory.New(memory.Config{Settings: settings, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		r.queue, r.cfg.Frontier = q, q
		if start == 0 {
			r.seed("http://a.example/p0")
		}
		var c *Crawler
		r.cfg.Handler = func(_ context.Context, p *Page) error {
			if _, twice := handled.LoadOrStore(p.URL, true); twice {
				t.Errorf("%s was handled twice", p.URL)
			}
			if start == 0 && p.Depth == 2 {
				c.Stop()
			}
			return p.Emit(p.Depth)
		}
		c = r.crawler()
		if err := r.start(c)(); err != nil {
			t.Fatal(err)
		}
		if n := len(r.store.by(t)); start == 0 && (n < 3 || n > 20) || start == 1 && n != 30 {
			t.Errorf("%d records after start %d", n, start)
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
