package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seine/extract/sink"
	"seine/frontier"
	"seine/frontier/memory"
)

// lookFor has a crawl look for duplicates.
func lookFor(rule string) func(*frontier.Settings) {
	return func(s *frontier.Settings) {
		s.Duplicates, s.Digest, s.Robots = rule, frontier.DigestSHA256, "ignore"
	}
}

// same serves one text, whatever the URL.
func same(kind, body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", kind)
		io.WriteString(rw, body)
	}
}

// TestDuplicatesMark: of URLs that bring one content one is first, and the records of
// the others say so; links of all are followed. What is no whole text with status 200
// is compared with nothing.
func TestDuplicatesMark(t *testing.T) {
	t.Parallel()
	onBoth(t, lookFor(frontier.DuplicatesMark), func(t *testing.T, w *web, r *rig) {
		w.page("/", "/1", "/2", "/3", "/empty1", "/empty2", "/gone1", "/gone2", "/bin1", "/bin2", "/moved1", "/moved2")
		for _, p := range []string{"/1", "/2", "/3"} {
			w.on(p, same("text/html", "<a href=/below/"+">x</a><a href=own>x</a>"))
			w.on("/empty"+p[1:], same("text/html", ""))
			w.on("/gone"+p[1:], text(404, "<a href=/never>gone</a>"))
			w.on("/bin"+p[1:], same("application/pdf", "%PDF-1.4"))
			w.on("/moved"+p[1:], redirect("/below/"))
		}
		w.page("/below/")
		w.page("/own")
		r.seed("http://a.example/")
		c := r.run()
		var marked []string
		for url, rec := range r.store.by(t) {
			if rec.Duplicate {
				marked = append(marked, url)
			}
		}
		if len(marked) != 2 || !strings.HasPrefix(marked[0], "http://a.example/") || len(marked[0]) != len("http://a.example/1") || len(marked[1]) != len(marked[0]) {
			t.Errorf("marked: %v, want two of /1, /2, /3", marked)
		}
		if n := metric(t, c, "seine_crawl_pages_duplicate_total"); n != "2" {
			t.Errorf("%s duplicates are counted, want 2", n)
		}
		if w.times("http://a.example/own") != 1 || w.times("http://a.example/below/") != 1 {
			t.Error("links were not followed")
		}
		r.checkEmpty()
		checkIdle(t, c)
	})
}

// TestDuplicatesSkip: a site whose pages are endless copies of one ends with the
// second; what a handler added there is followed all the same.
func TestDuplicatesSkip(t *testing.T) {
	t.Parallel()
	onBoth(t, lookFor(frontier.DuplicatesSkip), func(t *testing.T, w *web, r *rig) {
		w.rest(same("text/html", "<a href=deeper/>once more</a>"))
		r.cfg.Fields = sink.FieldBody | sink.FieldHeaders
		r.cfg.Handler = func(_ context.Context, p *Page) error {
			if strings.HasSuffix(p.URL, "/1/deeper/") {
				p.RefuseLinks(func(string) bool { return false })
				return p.Add(Candidate{URL: "/added/"})
			}
			return nil
		}
		r.seed("http://a.example/1/")
		c := r.run()
		var got []string
		for url, rec := range r.store.by(t) {
			got = append(got, fmt.Sprint(strings.TrimPrefix(url, "http://a.example"), rec.Duplicate, rec.Links, len(rec.Body), len(rec.Headers) > 0))
		}
		slices.Sort(got)
		if want := []string{"/1/deeper/true 1 29 true", "/1/false 1 29 true", "/added/true 1 29 true"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if n := metric(t, c, `seine_crawl_links_refused_total{reason="duplicate"}`); n != "2" {
			t.Errorf("%s links are not followed, want 2", n)
		}
		checkIdle(t, c)
	})
}

// killer ends a crawler as if it were killed, before or after the n-th of some step.
type killer struct {
	Frontier
	step string
	left atomic.Int64
	kill func()
}

var errKilled = errors.New("killed")

// at runs a step, unless the process dies before it, or right behind it.
func (k *killer) at(step string, run func() error) error {
	if k.step != "before "+step && k.step != "after "+step || k.left.Add(-1) != 0 {
		if k.left.Load() < 0 && k.step != "" { // it is dead
			return errKilled
		}
		return run()
	}
	if strings.HasPrefix(k.step, "after") {
		run() //nolint:errcheck // nobody hears of it
	}
	k.kill()
	return errKilled
}

func (k *killer) Duplicates(ctx context.Context, shard int, list []frontier.Content, d []bool) error {
	return k.at("asking", func() error { return k.Frontier.Duplicates(ctx, shard, list, d) })
}

func (k *killer) Admit(ctx context.Context, shard int, list []frontier.Candidate, v []frontier.Verdict) error {
	return k.at("admitting", func() error { return k.Frontier.Admit(ctx, shard, list, v) })
}

func (k *killer) Settle(ctx context.Context, shard int, list []frontier.Settlement) ([]frontier.Settled, error) {
	var done []frontier.Settled
	err := k.at("settling", func() (err error) { done, err = k.Frontier.Settle(ctx, shard, list); return err })
	return done, err
}

// TestDuplicatesKilled: a fetcher is killed before and after each step of a page, and
// another goes on. No page is a duplicate of itself, one that was first stays first,
// and nothing is missing.
func TestDuplicatesKilled(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"/": "<a href=/1>x</a><a href=/2>x</a>", "/1": "<a href=/x>the same</a>", "/2": "<a href=/x>the same</a>", "/x": "<a href=/y>x</a>", "/y": "end",
	}
	for _, step := range []string{"before asking", "after asking", "before recording", "after recording", "before admitting", "after admitting", "before settling", "after settling"} {
		for n := range int64(3) {
			t.Run(fmt.Sprint(step, n), func(t *testing.T) {
				w := newWeb(t)
				for path, body := range pages {
					w.on(path, same("text/html", body))
				}
				r := newRig(t, w, nil)
				s := frontier.DefaultSettings()
				s.Delay, s.Jitter, s.VisitURLs = 0, 0, 2
				lookFor(frontier.DuplicatesSkip)(&s)
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
				k := &killer{Frontier: q, step: step}
				k.left.Store(n + 1)
				r.cfg.Frontier, r.cfg.Sink, r.cfg.Exact = k, recordingUntil{r.store, k}, false
				r.seed("http://a.example/")
				ctx, kill := context.WithCancel(t.Context())
				k.kill = kill
				if err := r.crawler().Run(ctx); err != nil && ctx.Err() == nil {
					t.Fatal(err)
				}
				kill()
				r.endLeases(&ahead)
				r.cfg.Frontier, r.cfg.Sink = q, r.store
				r.run()
				answers := map[string]map[bool]bool{}
				r.store.mu.Lock()
				defer r.store.mu.Unlock()
				for _, rec := range r.store.records {
					path := strings.TrimPrefix(rec.URL, "http://a.example")
					if answers[path] == nil {
						answers[path] = map[bool]bool{}
					}
					answers[path][rec.Duplicate] = true
				}
				for path := range pages {
					if len(answers[path]) != 1 {
						t.Errorf("%s: records say of duplicates: %v, want one answer", path, answers[path])
					}
				}
				if answers["/1"][true] == answers["/2"][true] {
					t.Errorf("/1: %v, /2: %v; one is first", answers["/1"], answers["/2"])
				}
				for _, path := range []string{"/", "/x", "/y"} {
					if answers[path][true] {
						t.Errorf("%s is a duplicate of itself", path)
					}
				}
				r.checkEmpty()
			})
		}
	}
}

// endLeases moves a clock ahead until the leases of a fetcher that was killed have ended.
func (r *rig) endLeases(ahead *atomic.Int64) {
	r.t.Helper()
	q := r.queue
	for shard := 0; shard < q.Shards() || r.stats().Leases > 0; shard++ {
		ahead.Add(int64(time.Second)) // more at once would be a gap in which nobody could extend
		reply, err := q.Tick(r.t.Context(), shard%q.Shards(), frontier.TickRequest{MaxExpired: 100})
		if err == nil {
			_, err = q.Reap(r.t.Context(), shard%q.Shards(), reply.Expired)
		}
		if err != nil || shard > 1000 {
			r.t.Fatal("the leases do not end: ", err)
		}
	}
}

// recordingUntil is a sink whose process may die before or after a record.
type recordingUntil struct {
	*store
	k *killer
}

func (s recordingUntil) Write(r *sink.Record, done func(error)) {
	if s.k.at("recording", func() error { s.store.add(*r); return nil }) == nil {
		done(nil)
	}
}

// TestDuplicatesSilent: while a shard is silent the pages whose contents are of it
// go on, as if they were first.
func TestDuplicatesSilent(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, lookFor(frontier.DuplicatesMark))
	w.rest(same("text/html", "one text for all"))
	for i := range 40 {
		r.seed(fmt.Sprintf("http://s%d.example/", i))
	}
	m := &silentContents{Frontier: r.queue}
	r.cfg.Frontier = m
	c := r.run()
	if n := metric(t, c, "seine_crawl_pages_unasked_total"); n != "40" || len(r.store.by(t)) != 40 {
		t.Errorf("%s pages were not asked for, %d have records, want 40", n, len(r.store.by(t)))
	}
	r.checkEmpty()
	checkIdle(t, c)
}

// silentContents answers no question for contents.
type silentContents struct{ Frontier }

func (m *silentContents) Duplicates(ctx context.Context, _ int, _ []frontier.Content, _ []bool) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestDuplicatesUnfollowed: a page whose links the crawl does not follow hides no link
// of another page with the same content.
func TestDuplicatesUnfollowed(t *testing.T) {
	t.Parallel()
	const body = "<a href=http://b.example/next>the same</a>"
	notAbove := func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Robots-Tag", "nofollow")
		same("text/html", body)(rw, r)
	}
	for name, c := range map[string]struct {
		first func(*frontier.Candidate)
		serve http.HandlerFunc
	}{
		"greatest depth": {func(c *frontier.Candidate) { c.URL, c.Depth = "http://b.example/first", 1 }, same("text/html", body)},
		"out of scope":   {func(c *frontier.Candidate) {}, same("text/html", body)},
		"nofollow":       {func(c *frontier.Candidate) { c.URL = "http://b.example/first" }, notAbove},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, lookFor(frontier.DuplicatesSkip), func(t *testing.T, w *web, r *rig) {
				if _, _, err := r.queue.Set(t.Context(), func(s *frontier.Settings) error { s.MaxDepth = 1; return nil }); err != nil {
					t.Fatal(err)
				}
				w.on("/first", c.serve)
				w.rest(same("text/html", body))
				first := frontier.Candidate{URL: "http://a.example/first"}
				c.first(&first)
				r.admit(first.URL, func(c *frontier.Candidate) { c.Depth, c.Seed = first.Depth, false })
				r.run()
				if w.times("http://b.example/next") != 0 {
					t.Fatal("the link of the first page was followed")
				}
				r.admit("http://b.example/second", func(c *frontier.Candidate) { c.Depth, c.Seed = 0, false })
				r.run()
				if w.times("http://b.example/next") != 1 {
					t.Error("the link of the second page was not followed, though nobody followed it before")
				}
			})
		})
	}
}

// TestDuplicatesSeeds: the links of seeds are followed, whatever their content.
func TestDuplicatesSeeds(t *testing.T) {
	t.Parallel()
	onBoth(t, lookFor(frontier.DuplicatesSkip), func(t *testing.T, w *web, r *rig) {
		for _, p := range []string{"/1/", "/2/", "/3/"} {
			w.on(p, same("text/html", "<a href=below>x</a>"))
			w.on(p+"below", text(200, p))
		}
		r.seed("http://a.example/1/", "http://a.example/2/", "http://a.example/3/")
		r.run()
		duplicates := 0
		for _, rec := range r.store.by(t) {
			if rec.Duplicate {
				duplicates++
			}
		}
		for _, p := range []string{"/1/", "/2/", "/3/"} {
			if w.times("http://a.example"+p+"below") != 1 {
				t.Errorf("the link of the seed %s was not followed", p)
			}
		}
		if duplicates != 2 {
			t.Errorf("%d records say duplicate, want 2", duplicates)
		}
	})
}
