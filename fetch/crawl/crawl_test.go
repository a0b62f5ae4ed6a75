package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seine/extract/fields"
	"seine/extract/simhash"
	"seine/extract/sink"
	"seine/fetch/crawl/internal/watch"
	"seine/fetch/crawl/internal/work"
	"seine/frontier"
	"seine/frontier/memory"
)

// TestCrawl: every page of several sites once, each with its record.
func TestCrawl(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	want := 0
	for i, n := range []int{1, 7, 40, 100} {
		host := fmt.Sprintf("s%d.example", i)
		w.tree(host, n)
		r.seed("http://" + host + "/p0")
		want += n
	}
	crawler := r.run()
	records := r.store.by(t)
	if len(records) != want {
		t.Errorf("%d records of %d pages", len(records), want)
	}
	for url, rec := range records {
		if rec.Status != 200 || w.times(url) != 1 || rec.Title == "" || !strings.HasPrefix(rec.Digest, "xxh3:") || rec.Attempts != 1 {
			t.Errorf("asked %d times for %+v", w.times(url), rec)
		}
	}
	if d := records["http://s3.example/p40"].Depth; d != 4 {
		t.Errorf("depth of p40 is %d", d)
	}
	r.checkEmpty()
	checkIdle(t, crawler)
	if got := len(w.requests("", true)); got != 4 {
		t.Errorf("robots.txt was asked for %d times by 4 sites", got)
	}
}

// TestMaxPages: exactly so many fetches, whatever they end as.
func TestMaxPages(t *testing.T) {
	for _, perSite := range []int{1, 4} {
		for _, n := range []int64{1, 7, 50} {
			t.Run(fmt.Sprintf("%d of %d at once", n, perSite), func(t *testing.T) {
				w := newWeb(t)
				r := newRig(t, w, func(s *frontier.Settings) { s.MaxPages, s.PerSite = n, perSite })
				var flaky atomic.Int32
				w.rest(func(rw http.ResponseWriter, rq *http.Request) {
					var i int
					fmt.Sscanf(rq.URL.Path, "/p%d", &i)
					switch {
					case i%5 == 3:
						http.NotFound(rw, rq)
					case i%7 == 2 && flaky.Add(1)%2 == 1:
						rw.WriteHeader(502)
					default:
						html(fmt.Sprintf("/p%d", 2*i+1), fmt.Sprintf("/p%d", 2*i+2), fmt.Sprintf("/q%d", i), "/forbidden/"+rq.URL.Path)(rw, rq)
					}
				})
				w.on("/robots.txt", text(200, "User-agent: *\nDisallow: /forbidden/"))
				r.seed("http://a.example/p0", "http://b.example/p0", "http://c.example/p1")
				crawler := r.run()
				ended := int64(0)
				for _, rec := range r.store.by(t) {
					if rec.Error == nil || rec.Error.Class != work.CauseRobots {
						ended++
					}
				}
				if ended != n {
					t.Errorf("%d pages ended, the limit is %d", ended, n)
				}
				checkIdle(t, crawler)
				if !crawler.budget.IsSpent() {
					t.Error("pages are left at the end")
				}
			})
		}
	}
}

func TestScopeAndRules(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*frontier.Settings)
		want string // URLs asked for beside the seed, sorted as listed
	}{
		{"site", func(s *frontier.Settings) {}, "www.a.example/in a.example/x a.example/y.pdf a.example/deep a.example/deeper"},
		{"host", func(s *frontier.Settings) { s.Scope = "host" }, "a.example/x a.example/y.pdf a.example/deep a.example/deeper"},
		{"any", func(s *frontier.Settings) { s.Scope = "any" }, "www.a.example/in b.example/ a.example/x a.example/y.pdf a.example/deep a.example/deeper"},
		{"depth", func(s *frontier.Settings) { s.MaxDepth = 1; s.Scope = "host" }, "a.example/x a.example/y.pdf a.example/deep"},
		{"deny", func(s *frontier.Settings) { s.Deny = []string{"deep$"}; s.Scope = "host" }, "a.example/x a.example/y.pdf"},
		{"allow", func(s *frontier.Settings) { s.Allow = []string{"/x"} }, "a.example/x"},
		{"extension", func(s *frontier.Settings) { s.SkipExt = []string{"pdf"}; s.Scope = "host" }, "a.example/x a.example/deep a.example/deeper"},
		{"nofollow", func(s *frontier.Settings) { s.IgnoreNofollow = true; s.Scope = "host" }, "a.example/x a.example/y.pdf a.example/deep a.example/deeper a.example/no"},
		{"cap", func(s *frontier.Settings) { s.MaxPerSite = 3; s.Scope = "host" }, "a.example/x a.example/y.pdf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, c.set)
			w.on("a.example/", func(rw http.ResponseWriter, rq *http.Request) {
				html("/x", "/y.pdf", "/deep", "http://www.a.example/in", "http://b.example/")(rw, rq)
				fmt.Fprint(rw, "<a rel=nofollow href=/no>n</a><a href='mailto:x@y'>m</a>")
			})
			w.page("a.example/deep", "/deeper")
			r.seed("http://a.example/")
			crawler := r.run()
			got := make(map[string]bool)
			for _, a := range w.requests("", false) {
				if got[a.host+a.path] = true; a.path == "/" && a.host == "a.example" {
					delete(got, a.host+a.path)
				}
			}
			for _, u := range strings.Fields(c.want) {
				if !got[u] {
					t.Errorf("%s was not asked for", u)
				}
				delete(got, u)
			}
			for u := range got {
				t.Errorf("%s was asked for", u)
			}
			if metric(t, crawler, `seine_crawl_links_refused_total{reason="scheme"}`) != "1" {
				t.Error("the mail address is not counted as refused")
			}
			checkIdle(t, crawler)
		})
	}
}

// TestOrder: the classes of a site, and its depth first where wanted.
func TestOrder(t *testing.T) {
	for order, want := range map[string]string{"breadth": "/ /first /a /b /a1 /b1", "depth": "/ /first /a /a1 /b /b1"} {
		t.Run(order, func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, func(s *frontier.Settings) {
				s.Order, s.Priority, s.VisitURLs = order, []string{"first=0"}, 1
			})
			r.cfg.Concurrency = 1
			w.page("/", "/a", "/b", "/first")
			w.page("/a", "/a1")
			w.page("/b", "/b1")
			r.seed("http://a.example/")
			r.run()
			var got []string
			for _, a := range w.requests("", false) {
				got = append(got, a.path)
			}
			have := strings.Join(got, " ")
			if order == "depth" && have == "/ /first /b /b1 /a /a1" {
				return // siblings may come in either order
			}
			if have != want {
				t.Errorf("order %s, want %s", have, want)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.on("a.example/", redirect("http://b.example/start")) // a seed may leave its site
	w.page("b.example/start", "/self", "/chain", "http://u:p@b.example/out", "/seen", "/bad")
	w.on("b.example/self", redirect("/self"))
	w.on("b.example/chain", redirect("/%63hain")) // the same URL, spelt otherwise
	w.page("b.example/%63hain")
	w.on("b.example/out", redirect("http://c.example/"))
	w.on("b.example/seen", redirect("/start"))
	w.on("b.example/bad", redirect("http://u:p@[::bad/"))
	for i := range 15 {
		w.on(fmt.Sprintf("d.example/h%d", i), redirect(fmt.Sprintf("/h%d", i+1)))
	}
	r.admit("http://a.example/", func(c *frontier.Candidate) { c.Meta, c.Depth = `{"k":1}`, 2 })
	r.seed("http://d.example/h0")
	crawler := r.run()
	got := r.store.by(t)
	first, target := got["http://a.example/"], got["http://b.example/start"]
	if first.Status != 302 || first.Location != "http://b.example/start" || first.Error != nil {
		t.Errorf("redirect: %+v", first)
	}
	if target.Redirects != 1 || target.Depth != 2 || string(target.Meta) != `{"k":1}` || target.Status != 200 {
		t.Errorf("target: %+v", target)
	}
	if rec := got["http://b.example/self"]; rec.Error == nil || rec.Error.Class != work.CauseRedirectLoop || rec.Depth != 3 || rec.Meta != nil {
		t.Errorf("redirect to itself: %+v", rec)
	}
	if w.times("http://b.example/%63hain") != 1 {
		t.Error("another spelling of the same URL was not followed once")
	}
	if w.times("http://c.example/") != 0 {
		t.Error("a redirect led out of scope")
	}
	if rec := got["http://b.example/seen"]; !rec.Seen || w.times("http://b.example/start") != 1 {
		t.Errorf("a target that is known: %+v", rec)
	}
	if rec := got["http://b.example/bad"]; strings.Contains(rec.Location, "u:p") || rec.Location == "" {
		t.Errorf("a Location that is none: %+v", rec)
	}
	if rec := got["http://d.example/h10"]; rec.Error == nil || rec.Error.Class != work.CauseRedirectLoop || rec.Redirects != 10 {
		t.Errorf("end of a chain: %+v", rec)
	}
	if _, more := got["http://d.example/h11"]; more {
		t.Error("more than ten redirects")
	}
	for url := range got {
		if strings.Contains(url, "u:p") {
			t.Errorf("credentials in a record: %s", url)
		}
	}
	r.checkEmpty()
	checkIdle(t, crawler)
}

// TestRetries: attempts, their delay, and how they end.
func TestRetries(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.on("a.example/always", text(500, ""))
	var n atomic.Int32
	w.on("a.example/once", func(rw http.ResponseWriter, rq *http.Request) {
		if n.Add(1) == 1 {
			rw.WriteHeader(502)
			return
		}
		html()(rw, rq)
	})
	w.on("b.example/cut", func(rw http.ResponseWriter, rq *http.Request) {
		rw.Header().Set("Content-Length", "100")
		rw.Header().Set("Content-Type", "text/html")
		rw.Write([]byte("<a href=/never>"))
		rw.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	r.seed("http://a.example/always", "http://a.example/once", "http://b.example/cut")
	crawler := r.run()
	got := r.store.by(t)
	if rec := got["http://a.example/always"]; rec.Error == nil || rec.Error.Class != work.CauseStatus || rec.Attempts != 4 || rec.Status != 500 {
		t.Errorf("always 500: %+v", rec)
	}
	if rec := got["http://a.example/once"]; rec.Error != nil || rec.Attempts != 2 || rec.Status != 200 {
		t.Errorf("once 502: %+v", rec)
	}
	if rec := got["http://b.example/cut"]; rec.Error == nil || rec.Error.Class != "short" || rec.Attempts != 4 {
		t.Errorf("cut: %+v", rec)
	}
	if w.times("http://b.example/never") != 0 {
		t.Error("a link of a page that failed was followed")
	}
	r.checkEmpty()
	checkIdle(t, crawler)
}

// TestBackOff: a site that fails again and again is asked ever less, and its
// other URLs keep their attempts; in the end it is given up.
func TestBackOff(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.GiveUp = 300 * time.Millisecond
	w.rest(text(502, ""))
	for i := range 40 {
		r.seed(fmt.Sprintf("http://down.example/p%d", i))
	}
	crawler := r.run()
	unreachable, asked := 0, len(w.requests("down.example", false))
	for _, rec := range r.store.by(t) {
		if rec.Error != nil && rec.Error.Class == work.CauseUnreachable {
			unreachable++
		}
	}
	if unreachable < 30 {
		t.Errorf("%d of 40 URLs are dead as unreachable", unreachable)
	}
	if asked > 30 {
		t.Errorf("a site that is down was asked %d times", asked)
	}
	r.checkEmpty()
	checkIdle(t, crawler)
}

// TestRetryAfter: the site's clock moves.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Robots = "ignore" })
	var first atomic.Int32
	w.on("busy.example/p0", func(rw http.ResponseWriter, rq *http.Request) {
		if first.Add(1) == 1 {
			rw.Header().Set("Retry-After", "1")
			rw.WriteHeader(503)
			return
		}
		html("/p1")(rw, rq)
	})
	w.page("busy.example/p1")
	r.seed("http://busy.example/p0")
	crawler := r.run()
	if len(r.store.by(t)) != 2 {
		t.Errorf("%d records", len(r.store.by(t)))
	}
	var page strings.Builder
	crawler.WriteMetrics(&page)
	for _, want := range []string{`answers_total{code="503"} 1`, `answers_total{code="200"} 2`, `pages_total{class="5xx"} 1`, `pages_total{class="2xx"} 2`} {
		if !strings.Contains(page.String(), "seine_crawl_"+want+"\n") {
			t.Errorf("%s is missing: an answer that is tried again counts too", want)
		}
	}
	log := w.requests("busy.example", false)
	if len(log) != 3 || log[1].at.Sub(log[0].at) < time.Second {
		t.Errorf("asked again before Retry-After: %v", log)
	}
}

// TestRetryAfterOfOthers: no other site waits for one that wants to be left alone.
func TestRetryAfterOfOthers(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Robots = "ignore" })
	r.cfg.ExitWhenDone = false
	w.on("busy.example/", func(rw http.ResponseWriter, rq *http.Request) {
		rw.Header().Set("Retry-After", "3600")
		rw.WriteHeader(503)
	})
	r.seed("http://busy.example/")
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "the site has its pause", func() bool { return r.stats().Waiting == 1 })
	w.tree("calm.example", 30)
	r.seed("http://calm.example/p0", "http://busy.example/p1")
	until(t, "another site is crawled", func() bool { return r.stats().Done == 30 })
	crawler.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if n := len(w.requests("busy.example", false)); n != 1 {
		t.Errorf("the site that wants to be left alone was asked %d times", n)
	}
}

func TestSinkFails(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.tree("a.example", 20)
	r.store.broken = errors.New("no disk")
	r.seed("http://a.example/p0")
	crawler := r.crawler()
	err := r.start(crawler)()
	if err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("ended with %v", err)
	}
	if s := r.stats(); s.Queued != 1 || s.Done != 0 || s.Open != 0 || s.Leases != 0 {
		t.Errorf("the page is not back: %+v", s)
	}
	checkIdle(t, crawler)
	r.store.broken = nil // the next one finds it
	r.run()
	if n := len(r.store.by(t)); n != 20 {
		t.Errorf("%d of 20 pages after the sink was mended", n)
	}
}

// TestSinkBlocks: nothing is settled before its record is in the sink, what
// waits is bounded, and all goes on afterwards.
func TestSinkBlocks(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.OpenBytes = 2000
	for i := range 60 {
		host := fmt.Sprintf("s%d.example", i)
		w.tree(host, 10)
		r.seed("http://" + host + "/p0")
	}
	r.store.hold = true
	crawler := r.crawler()
	wait := r.start(crawler)
	until(t, "flow control blocks", crawler.gate.IsBlocked)
	until(t, "requests rest", func() bool { return crawler.agenda.Busy() == 0 || crawler.writing.Load() == 0 })
	until(t, "the sink is named", func() bool { return crawler.Progress().Limit == watch.LimitSink })
	if s := r.stats(); s.Done != 0 {
		t.Errorf("%d pages are settled without a record", s.Done)
	}
	if n := r.store.waiting(); n > 2000/work.CandidateOverhead+r.cfg.Concurrency {
		t.Errorf("%d pages wait", n)
	}
	r.store.flush()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if n := len(r.store.by(t)); n != 600 {
		t.Errorf("%d of 600 pages", n)
	}
	checkIdle(t, crawler)
}

// slowSink keeps one record at a time, in order, and each for so long. A process that
// is killed loses those that wait.
type slowSink struct {
	*store
	each    time.Duration
	waiting chan func()
	most    atomic.Int64 // records that waited at once
	killed  atomic.Bool
}

func newSlowSink(t *testing.T, s *store, each time.Duration) *slowSink {
	slow := &slowSink{store: s, each: each, waiting: make(chan func(), 10_000)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for keep := range slow.waiting {
			time.Sleep(slow.each) // it is slow
			if !slow.killed.Load() {
				keep()
			}
		}
	}()
	t.Cleanup(func() { close(slow.waiting); <-ended })
	return slow
}

func (s *slowSink) Write(r *sink.Record, done func(error)) {
	rec := *r
	s.waiting <- func() { s.store.add(rec); done(nil) }
	s.most.Store(max(s.most.Load(), int64(len(s.waiting))))
}

// TestSlowSinkKilled: with an output that is slow, a fetcher that is killed again and
// again has at most those pages fetched twice that were under way or waited for the
// output, however many there are.
func TestSlowSinkKilled(t *testing.T) {
	t.Parallel()
	const sites, pages, kills, workers, waiting = 30, 20, 4, 4, 20
	w := newWeb(t)
	r := newRig(t, w, nil)
	s := frontier.DefaultSettings()
	s.Delay, s.Jitter, s.Robots = 0, 0, "ignore"
	var ahead atomic.Int64
	began := time.Now()
	q, err := memory.New(memory.Config{Layout: frontier.Layout{Shards: 2}, Settings: s, Now: func() time.Time {
		return began.Add(time.Since(began) + time.Duration(ahead.Load()))
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	r.queue = q
	r.cfg.Frontier, r.cfg.Concurrency, r.cfg.SinkPages = q, workers, waiting
	for i := range sites {
		host := fmt.Sprintf("s%d.example", i)
		w.tree(host, pages)
		r.seed("http://" + host + "/p0")
	}
	for range kills {
		slow := newSlowSink(t, r.store, time.Millisecond)
		r.cfg.Sink = slow
		before := r.store.urls()
		ctx, kill := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		c := r.crawler()
		go func() { ended <- c.Run(ctx) }()
		until(t, "a part of the crawl is done", func() bool { return r.store.urls() >= before+60 })
		slow.killed.Store(true)
		kill()
		<-ended
		if n := slow.most.Load(); n < waiting/2 || n > waiting+workers {
			t.Errorf("%d pages waited for the output at once, want about %d and at most %d", n, waiting, waiting+workers)
		}
		r.endLeases(&ahead)
	}
	r.cfg.Sink = r.store
	r.run()
	if n := r.store.urls(); n != sites*pages {
		t.Errorf("%d of %d pages have records", n, sites*pages)
	}
	extra := len(w.requests("", false)) - sites*pages
	if most := kills * (2*workers + waiting); extra > most {
		t.Errorf("%d pages were fetched twice after %d kills, want at most %d", extra, kills, most)
	}
	r.checkEmpty()
}

// TestSinkLags: no request starts while a page waits for the output for longer than
// it may.
func TestSinkLags(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.SinkWait = 20 * time.Millisecond
	w.rest(text(200, "x"))
	r.seed("http://s.example/first")
	r.store.hold = true
	c := r.crawler()
	wait := r.start(c)
	until(t, "a page waits for too long", c.gate.IsBlocked)
	until(t, "the sink is named", func() bool { return c.Progress().Limit == watch.LimitSink })
	r.seed("http://s1.example/late", "http://s2.example/late", "http://s3.example/late")
	for _, s := range c.shards {
		for range 2 {
			began := time.Now()
			until(t, "a shard is asked again", func() bool {
				now := time.Now()
				since, _ := s.SinceAnswer(now)
				return now.Add(-since).After(began)
			})
		}
	}
	flushed := time.Now()
	r.store.flush()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	for _, a := range w.requests("", false) {
		if a.path == "/late" && a.at.Before(flushed) {
			t.Errorf("%s was asked while a page waited for the output for too long", a.host)
		}
	}
	if n := len(r.store.by(t)); n != 4 {
		t.Errorf("%d of 4 pages", n)
	}
	checkIdle(t, c)
}

// TestRecordFields: optional fields, and those of a URL that was not asked for.
func TestRecordFields(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	r.cfg.Fields = sink.AllFields
	w.on("/robots.txt", text(200, "User-agent: seine\nDisallow: /no"))
	w.on("/", func(rw http.ResponseWriter, rq *http.Request) {
		rw.Header().Set("ETag", `"e"`)
		rw.Header().Set("Last-Modified", "then")
		html("/no", "http://other.example/")(rw, rq)
	})
	r.seed("http://a.example/")
	r.run()
	got := r.store.by(t)
	rec := got["http://a.example/"]
	if !strings.Contains(rec.Body, "<title>") || len(rec.LinksOut) != 2 || len(rec.Headers) < 3 || rec.ETag != `"e"` || rec.Modified != "then" || rec.Text == "" || rec.Links != 2 || rec.Bytes == 0 || rec.WireBytes == 0 {
		t.Errorf("fields: %+v", rec)
	}
	if rec := got["http://a.example/no"]; rec.Error == nil || rec.Error.Class != work.CauseRobots || rec.Attempts != 0 || rec.Status != 0 || rec.Body != "" || rec.Digest != "" || rec.Headers != nil {
		t.Errorf("forbidden: %+v", rec)
	}
}

// TestMaxText: the text of a record, and the values of its fields, end at the bound that
// is given, and the record says so; what waits counts among the open bytes until the
// record is in the sink.
func TestMaxText(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.on("/long", same("text/html", "<p>"+strings.Repeat("words of a text ", 50_000)))
	w.on("/short", same("text/html", "<p>words"))
	set, err := fields.Compile([]fields.Rule{{Name: "whole", Text: "whole"}})
	if err != nil {
		t.Fatal(err)
	}
	r.cfg.Fields, r.cfg.Rules, r.cfg.MaxText = sink.FieldText|sink.FieldSimHash, set, 300_000
	r.store.hold = true
	r.seed("http://a.example/long", "http://b.example/short")
	c := r.crawler()
	wait := r.start(c)
	until(t, "both pages wait for the output", func() bool { return r.store.waiting() == 2 })
	if n := c.gate.Bytes(); n < 600_000 || n > 700_000 {
		t.Errorf("%d bytes are open, want text and field of 300,000 each", n)
	}
	r.store.flush()
	until(t, "both are done", func() bool { return len(r.store.by(t)) == 2 })
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	long, short := r.store.by(t)["http://a.example/long"], r.store.by(t)["http://b.example/short"]
	if n := len(long.Text); n < 299_990 || n > 300_000 || !long.TextTruncated {
		t.Errorf("%d bytes of text, truncated: %v", n, long.TextTruncated)
	}
	if n := len(long.Fields); n < 299_990 || n > 300_100 {
		t.Errorf("%d bytes of fields", n)
	}
	if short.TextTruncated || short.Text != "words" {
		t.Errorf("short: %q, truncated: %v", short.Text, short.TextTruncated)
	}
	if want := fmt.Sprintf("%016x", simhash.Of([]byte(strings.Repeat("words of a text ", 50_000)))); long.SimHash != want {
		t.Errorf("simhash %s, want that of the whole text, %s", long.SimHash, want)
	}
	checkIdle(t, c)
}

// TestRules: rules make the fields of the pages of their sites, and of no others.
func TestRules(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	set, err := fields.Compile([]fields.Rule{
		{Name: "title", CSS: "h1", Site: "a.example"},
		{Name: "next", CSS: "a", Attr: "href", Type: "url", All: true, Site: "a.example"},
		{Name: "price", CSS: "i", Type: "number", Required: true, Site: "a.example"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.cfg.Rules, r.cfg.Fields = set, sink.FieldSimHash
	page := func(body string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/html; charset=koi8-r")
			io.WriteString(rw, body)
		}
	}
	w.on("a.example/", page("<h1>\xf0\xf2</h1><a href=/2>2</a><i>7.5</i>"))
	w.on("a.example/2", page("<h1>two</h1><i>none</i>"))
	w.on("a.example/3", text(200, "<h1>no page</h1>"))
	w.on("b.example/", page("<h1>b</h1>"))
	r.seed("http://a.example/", "http://a.example/3", "http://a.example/gone", "http://b.example/")
	r.run()
	got := r.store.by(t)
	for url, want := range map[string]string{
		"http://a.example/":     `{"title":"ПР","next":["http://a.example/2"],"price":7.5}`,
		"http://a.example/2":    `{"title":"two"}`,
		"http://a.example/3":    ``,
		"http://a.example/gone": ``,
		"http://b.example/":     ``,
	} {
		if rec := got[url]; string(rec.Fields) != want || rec.Body != "" {
			t.Errorf("%s: fields %s, want %s; body %q", url, rec.Fields, want, rec.Body)
		}
	}
	if sum := got["http://a.example/"].SimHash; len(sum) != 16 {
		t.Errorf("simhash %q", sum)
	}
	for i, want := range []fields.Count{{Found: 2}, {Found: 1}, {Found: 1, Failed: 1, Missing: 1}} {
		if c := set.Counts()[i]; c.Found != want.Found || c.Failed != want.Failed || c.Missing != want.Missing {
			t.Errorf("rule %d: %+v, want %+v", i, c, want)
		}
	}
}

// TestReferrer: a record names the page whose link admitted its URL, through a
// redirect too, where the crawl wants that, and without it only the redirect.
func TestReferrer(t *testing.T) {
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprint(kept), func(t *testing.T) {
			w := newWeb(t)
			r := newRig(t, w, func(s *frontier.Settings) { s.Referrer = kept })
			w.page("a.example/", "/list", "/moved")
			w.page("a.example/list", "/item", "/") // whose seed has none
			w.on("a.example/moved", redirect("/new"))
			w.page("a.example/new", "/last")
			w.on("a.example/last", redirect("/gone"))
			r.seed("http://usr:pw@a.example/")
			r.run()
			records := r.store.by(t)
			for url, want := range map[string][2]string{
				"": {}, "list": {"", ""}, "item": {"list", ""}, "moved": {"", ""}, "new": {"", "moved"}, "last": {"new", ""}, "gone": {"new", "last"},
			} {
				const site = "http://a.example/"
				rec, ok := records[site+url]
				referrer, from := site+want[0], site+want[1]
				if url == "" || !kept {
					referrer = ""
				}
				if want[1] == "" {
					from = ""
				}
				if !ok || rec.Referrer != referrer || rec.From != from {
					t.Errorf("kept %v: /%s has referrer %q and from %q, want %q and %q", kept, url, rec.Referrer, rec.From, referrer, from)
				}
			}
			if from := records[records["http://a.example/last"].Location].From; from != "http://a.example/last" {
				t.Errorf("location and from do not join: %q", from)
			}
		})
	}
}
