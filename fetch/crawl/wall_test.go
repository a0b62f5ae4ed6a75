package crawl

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/extract/sink"
	"seine/fetch/wall"
	"seine/frontier"
)

// answered answers with a status, headers such as "server: nginx", and a body.
func answered(status int, body string, headers ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			rw.Header().Add(name, value)
		}
		rw.WriteHeader(status)
		io.WriteString(rw, body)
	}
}

// checkpoint is a page that only a wall is, and leads somewhere.
const checkpoint = `<html><head><title>Bots</title><link rel="stylesheet" href="/.within.website/x/xess/xess.css"></head><body><a href='/beyond'>x</a>`

// gzipped is text in gzip.
func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

// TestWall: a certain wall is no page, however it arrives; it is tried again, and dead of
// its own cause. What is likely one, or a hint, is marked and read.
func TestWall(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *frontier.Settings) {
		s.Sitemaps, s.Duplicates = true, frontier.DuplicatesMark
	}, func(t *testing.T, w *web, r *rig) {
		r.cfg.MaxTries, r.cfg.Fields = 2, sink.AllFields
		var mu sync.Mutex
		bodies := make(map[string]int)
		r.cfg.Handler = func(_ context.Context, p *Page) error {
			mu.Lock()
			defer mu.Unlock()
			bodies[p.URL] = len(p.Body) + len(p.Links())
			if p.Facts != nil {
				bodies[p.URL] += len(p.Facts.Title)
			}
			return nil
		}
		w.on("header.example/", answered(200, "<title>x</title><a href='/beyond'>x</a>", "cf-mitigated: challenge", `ETag: "w"`))
		w.on("same.example/", answered(200, "<title>x</title><a href='/beyond'>x</a>", "cf-mitigated: challenge"))
		w.on("gzip.example/", answered(200, gzipped(checkpoint), "Content-Encoding: gzip"))
		w.on("long.example/", answered(200, checkpoint+strings.Repeat("<a href='/beyond2'>x</a>", 500)))
		w.on("empty.example/", answered(202, "", "x-amzn-waf-action: challenge"))
		w.on("refused.example/", answered(403, checkpoint))
		w.on("retried.example/", answered(503, checkpoint))
		w.on("split.example/", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			for i := range len(checkpoint) {
				io.WriteString(rw, checkpoint[i:i+1])
				rw.(http.Flusher).Flush()
			}
		})
		w.on("moved.example/", redirect("http://target.example/w"))
		w.on("target.example/w", answered(200, checkpoint))
		w.on("away.example/", answered(302, "", "location: https://validate.perfdrive.com/?ssa=1"))
		w.on("list.example/robots.txt", text(200, "Sitemap: http://list.example/map.xml"))
		w.on("list.example/", html())
		w.on("list.example/map.xml", answered(200, "http://list.example/listed", "sg-captcha: challenge", "Content-Type: text/plain"))
		walled := map[string]string{
			"header": "cloudflare", "same": "cloudflare", "gzip": "anubis", "long": "anubis", "empty": "aws-waf", "refused": "anubis", "retried": "anubis", "split": "anubis", "away": "radware",
		}
		for host := range walled {
			r.seed("http://" + host + ".example/")
		}
		r.seed("http://moved.example/", "http://list.example/")

		w.on("likely.example/", answered(200, "<title>Just a moment...</title><a href='/beyond'>x</a>"))
		w.on("likely.example/beyond", html())
		w.on("hint.example/", answered(403, "<title>no</title>", "server: cloudflare"))
		w.on("plain.example/", answered(200, "<title>Captchas</title><a href='/beyond'>x</a>"+strings.Repeat("y", 3*wall.Bytes), `ETag: "p"`))
		w.on("plain.example/beyond", html())
		w.on("paid.example/", answered(402, "pay", "crawler-price: USD 0.01", "PAYMENT-REQUIRED: e30="))
		r.seed("http://likely.example/", "http://hint.example/", "http://plain.example/", "http://paid.example/")

		c := r.run()
		got := r.store.by(t)
		check := func(url, vendor string) {
			t.Helper()
			rec, there := got[url]
			if !there || rec.Error == nil || rec.Error.Class != frontier.CauseWall || !strings.Contains(rec.Error.Text, "a wall of "+vendor) {
				t.Errorf("%s: %v %+v", url, there, rec.Error)
				return
			}
			if rec.Wall == nil || *rec.Wall != (sink.Wall{Vendor: vendor, Sure: true}) || rec.Attempts != 2 || w.times(url) != 2 {
				t.Errorf("%s: %+v, %d attempts, %d requests", url, rec.Wall, rec.Attempts, w.times(url))
			}
			if rec.Body+rec.Title+rec.Text+rec.Digest+rec.ETag+rec.SimHash != "" || rec.Links != 0 || rec.LinksOut != nil || rec.Duplicate || rec.Location != "" {
				t.Errorf("%s has content: %+v", url, rec)
			}
			if bodies[url] != 0 {
				t.Errorf("the handler got %s as a page", url)
			}
		}
		for host, vendor := range walled {
			check("http://"+host+".example/", vendor)
		}
		check("http://target.example/w", "anubis")
		check("http://list.example/map.xml", "siteground")
		for _, a := range w.requests("", false) {
			if strings.HasPrefix(a.path, "/beyond") && a.host != "likely.example" && a.host != "plain.example" || a.path == "/listed" {
				t.Errorf("%s%s was asked for, a link of a wall", a.host, a.path)
			}
		}
		if rec := got["http://moved.example/"]; rec.Error != nil || rec.Wall != nil || rec.Location != "http://target.example/w" {
			t.Errorf("the redirect: %+v", rec)
		}
		if rec := got["http://likely.example/"]; rec.Error != nil || rec.Wall == nil || *rec.Wall != (sink.Wall{Vendor: "cloudflare"}) || rec.Links != 1 || rec.Title == "" || rec.Digest == "" || w.times("http://likely.example/beyond") != 1 {
			t.Errorf("a likely wall: %+v", rec)
		}
		if rec := got["http://hint.example/"]; rec.Error != nil || rec.Wall != nil || rec.WallHint != "cloudflare" || rec.Digest == "" {
			t.Errorf("a hint: %+v", rec)
		}
		plain := got["http://plain.example/"]
		if plain.Error != nil || plain.Wall != nil || plain.WallHint != "" || plain.Links != 1 || plain.ETag != `"p"` || plain.Bytes != int64(len(plain.Body)) || w.times("http://plain.example/beyond") != 1 {
			t.Errorf("a page: %+v", plain)
		}
		if bodies["http://plain.example/"] == 0 {
			t.Error("the handler did not get the page")
		}
		paid := got["http://paid.example/"]
		if want := [][2]string{{"crawler-price", "USD 0.01"}, {"payment-required", "e30="}}; paid.Error == nil || paid.Error.Class != frontier.CausePayment || paid.Attempts != 1 || !slices.Equal(paid.Price, want) || paid.Body != "pay" {
			t.Errorf("a page that costs money: %+v", paid)
		}
		r.checkEmpty()
		checkIdle(t, c)
	})
}

// TestWallsOff: where the crawl does not tell walls apart, each answer is the site's own.
func TestWallsOff(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, func(s *frontier.Settings) { s.Walls = frontier.WallsOff })
	w.on("/robots.txt", answered(403, checkpoint, "cf-mitigated: challenge"))
	w.on("/", answered(200, checkpoint, "cf-mitigated: challenge"))
	w.on("/beyond", html())
	r.seed("http://a.example/")
	r.run()
	if rec := r.store.by(t)["http://a.example/"]; rec.Error != nil || rec.Wall != nil || rec.Title != "Bots" || w.times("http://a.example/beyond") != 1 {
		t.Errorf("%+v", rec)
	}
}

// TestOwnWallRules: a crawler's own rules count.
func TestOwnWallRules(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	var err error
	if r.cfg.Walls, err = wall.Compile([]wall.Rule{{Vendor: "acme", Sure: wall.Certain, Header: []string{"x-acme: wall"}}}); err != nil {
		t.Fatal(err)
	}
	r.cfg.MaxTries = 1
	w.on("/", answered(200, "x", "X-Acme: wall 3"))
	r.seed("http://a.example/")
	r.run()
	if rec := r.store.by(t)["http://a.example/"]; rec.Wall == nil || rec.Wall.Vendor != "acme" || rec.Error == nil {
		t.Errorf("%+v", rec)
	}
}

// TestWallRobots: a robots.txt that is a wall is none: nothing of its site is fetched.
func TestWallRobots(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"with status 200": answered(200, "User-agent: *\nAllow: /", "cf-mitigated: challenge"),
		"refused":         answered(403, "", "x-vercel-mitigated: deny"),
		"by its body":     answered(403, checkpoint),
		"gzip":            answered(200, gzipped(checkpoint), "Content-Encoding: gzip"),
		"long":            answered(401, checkpoint+strings.Repeat("x", 700<<10)),
		"by its redirect": answered(302, "", "location: https://validate.perfdrive.com/?ssa=1"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, nil, func(t *testing.T, w *web, r *rig) {
				r.cfg.GiveUp = 200 * time.Millisecond
				w.on("/robots.txt", answer)
				r.seed("http://a.example/x", "http://a.example/y")
				c := r.run()
				if n := len(w.requests("", false)); n != 0 {
					t.Errorf("%d pages were asked for", n)
				}
				got := r.store.by(t)
				if len(got) != 2 {
					t.Errorf("%d records", len(got))
				}
				for url, rec := range got {
					if rec.Error == nil || rec.Error.Class != frontier.CauseWall {
						t.Errorf("%s: %+v", url, rec.Error)
					}
				}
				r.checkEmpty()
				checkIdle(t, c)
			})
		})
	}
}

// TestRefusedRobotsBroken: a robots.txt that is refused with a body that breaks off is still
// refused: there are no rules.
func TestRefusedRobotsBroken(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.on("/robots.txt", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "1000")
		rw.WriteHeader(404)
		io.WriteString(rw, "<title>none")
	})
	w.on("/", html())
	r.seed("http://a.example/")
	r.run()
	if rec := r.store.by(t)["http://a.example/"]; rec.Error != nil || rec.Status != 200 {
		t.Errorf("%+v", rec)
	}
}

// TestWallRecrawled: a wall in place of a page that was fetched before leaves its validators
// and its schedule.
func TestWallRecrawled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *frontier.Settings) { s.Recrawl, s.Robots = []string{".=20ms..50ms"}, "ignore" }, func(t *testing.T, w *web, r *rig) {
		r.cfg.MaxTries, r.cfg.ExitWhenDone = 2, false
		tap := &recrawlTap{Frontier: r.cfg.Frontier, waits: make(map[string][]time.Duration)}
		r.cfg.Frontier = tap
		var mu sync.Mutex
		var conditions []string
		w.on("/", func(rw http.ResponseWriter, req *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			conditions = append(conditions, req.Header.Get("If-None-Match"))
			rw.Header().Set("ETag", `"v1"`)
			switch n := len(conditions); {
			case n == 1:
				html("/beyond")(rw, req)
			case n <= 3:
				answered(200, checkpoint, fmt.Sprintf(`ETag: "wall%d"`, n))(rw, req)
			default:
				rw.WriteHeader(http.StatusNotModified)
			}
		})
		r.seed("http://a.example/")
		c := r.crawler()
		wait := r.start(c)
		until(t, "the page is fetched behind the wall", func() bool { return len(r.store.of("http://a.example/")) >= 3 })
		c.Stop()
		if err := wait(); err != nil {
			t.Fatal(err)
		}
		list := r.store.of("http://a.example/")
		if first := list[0]; first.Error != nil || first.ETag != `"v1"` || first.Links != 1 {
			t.Errorf("the page: %+v", first)
		}
		if second := list[1]; second.Error == nil || second.Error.Class != frontier.CauseWall || second.Wall == nil || second.ETag != "" || second.HasContent() || second.Unchanged {
			t.Errorf("the wall: %+v", second)
		}
		if third := list[2]; third.Status != http.StatusNotModified || !third.Unchanged || third.Wall != nil {
			t.Errorf("behind the wall: %+v", third)
		}
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"", `"v1"`, `"v1"`, `"v1"`}; !slices.Equal(conditions[:4], want) {
			t.Errorf("asked with %q", conditions)
		}
		if waits := tap.of("http://a.example/"); waits[0] != 20*time.Millisecond || waits[1] != 20*time.Millisecond {
			t.Errorf("it waits %v", waits)
		}
	})
}
