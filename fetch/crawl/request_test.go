package crawl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/extract/sink"
	"seine/frontier"
)

// methods counts the requests for pages, as "METHOD host/path body token cookie".
type methods struct {
	mu   sync.Mutex
	seen map[string]int
}

func (m *methods) note(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	text := strings.Join(strings.Fields(fmt.Sprintf("%s %s%s %s %s %s", r.Method, r.Host, r.URL.RequestURI(), body, r.Header.Get("X-Token"), r.Header.Get("Content-Type"))), " ")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[text]++
	return text
}

// times is how often one of them came.
func (m *methods) times(text string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[text]
}

func (m *methods) check(t *testing.T, want map[string]int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !maps.Equal(m.seen, want) {
		for text, n := range want {
			if m.seen[text] != n {
				t.Errorf("%s came %d times, want %d", text, m.seen[text], n)
			}
		}
		for text, n := range m.seen {
			if want[text] == 0 {
				t.Errorf("%s came %d times", text, n)
			}
		}
	}
}

// post is a candidate whose headers are secret.
func post(url, body string) Candidate {
	return Candidate{URL: url, Method: "POST", Header: [][2]string{{"X-Token", "secret"}}, Body: []byte(body)}
}

// recordTap sees each record before its store does, whose memory is used again.
type recordTap struct {
	*store
	see func(*sink.Record)
}

func (t recordTap) Write(r *sink.Record, done func(error)) {
	t.see(r)
	t.store.Write(r, done)
}

// TestRequests: a handler posts forms and gives headers. The same form goes out once, and
// redirects keep or change it as their status says. Rules of robots.txt bind. Headers are
// in no record and no log.
func TestRequests(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *frontier.Settings) { s.Scope = "any" }, func(t *testing.T, w *web, r *rig) {
		var log bytes.Buffer
		r.cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		r.cfg.Exchanges = true
		r.cfg.Fields = sink.AllFields
		r.cfg.Sink = recordTap{r.store, func(rec *sink.Record) {
			e := rec.Exchange
			if rec.ArchiveOnly || e == nil || len(e.Request) == 0 {
				return
			}
			method := strings.Fields(string(e.Request))[0]
			if method == "GET" && rec.Request+rec.Method != "" || method != "GET" && (rec.Method != method || len(rec.Request) != 16) {
				t.Errorf("a %s of %s has method %q, request %q", method, rec.URL, rec.Method, rec.Request)
			}
			if strings.Contains(string(e.Request), "secret") && !slices.ContainsFunc(e.Secrets, func(s string) bool { return strings.EqualFold(s, "X-Token") }) {
				t.Errorf("%s: %q are secret", rec.URL, e.Secrets)
			}
		}}
		m := methods{seen: map[string]int{}}
		w.on("a.example/robots.txt", text(200, "User-agent: *\nDisallow: /no"))
		w.rest(func(rw http.ResponseWriter, r *http.Request) {
			m.note(r)
			if status := strings.TrimPrefix(r.URL.Path, "/to"); len(status) == 3 {
				target := "/at" + status
				if r.URL.RawQuery != "" {
					target = r.URL.RawQuery
				}
				rw.Header().Set("Location", target)
				n := 0
				fmt.Sscan(status, &n)
				rw.WriteHeader(n)
				return
			}
			if r.URL.Path == "/same" && r.Method == "POST" {
				rw.Header().Set("Location", "/same")
				rw.WriteHeader(303)
				return
			}
			html()(rw, r)
		})
		r.cfg.Handler = func(_ context.Context, p *Page) error {
			if err := p.Emit("x"); err != nil {
				return err
			}
			if p.URL != "http://a.example/" {
				return nil
			}
			other := post("/form", "q=1")
			other.Header[0][1] = "another"
			list := []Candidate{
				post("/form", "q=1"), other, post("/form", "q=2"), post("/form", "q=1"), {URL: "/form"}, post("/no", "q"),
				{URL: "/get", Header: [][2]string{{"x-token", "secret"}, {"User-agent2", "x"}}}, {URL: "/get"}, {URL: "/head", Method: "HEAD"},
				{URL: "/json", Method: "PUT", Header: [][2]string{{"Content-Type", "application/json"}}, Body: []byte("{}")},
				post("/same", "q"),
				post("/to301", "q"), post("/to302", "q"), post("/to303", "q"), post("/to307", "q"), post("/to308", "q"),
				post("/to302?http://b.example/302", "q"), post("/to307?http://b.example/307", "q"),
				{URL: "/to307?http://b.example/get", Header: [][2]string{{"X-Token", "secret"}}},
			}
			for _, c := range list {
				if err := p.Add(c); err != nil {
					return err
				}
			}
			return nil
		}
		r.seed("http://a.example/")
		r.run()
		const form = " secret application/x-www-form-urlencoded"
		want := map[string]int{
			"GET a.example/": 1, "POST a.example/form q=1" + form: 1, "POST a.example/form q=2" + form: 1, "GET a.example/form": 1,
			"GET a.example/get secret": 1, "HEAD a.example/head": 1, "PUT a.example/json {} application/json": 1,
			"POST a.example/same q" + form: 1, "GET a.example/same secret": 1,
			"POST a.example/to301 q" + form: 1, "GET a.example/at301 secret": 1, "POST a.example/to302 q" + form: 1, "GET a.example/at302 secret": 1,
			"POST a.example/to303 q" + form: 1, "GET a.example/at303 secret": 1, "POST a.example/to307 q" + form: 1, "POST a.example/at307 q" + form: 1,
			"POST a.example/to308 q" + form: 1, "POST a.example/at308 q" + form: 1,
			"POST a.example/to302?http://b.example/302 q" + form: 1, "GET b.example/302": 1,
			"POST a.example/to307?http://b.example/307 q" + form: 1,
			"GET a.example/to307?http://b.example/get secret":    1, "GET b.example/get": 1,
		}
		m.check(t, want)

		ids, keys, refused := map[string]bool{}, map[string]bool{}, 0
		for _, rec := range r.store.records {
			if rec.ArchiveOnly {
				continue
			}
			line := string(rec.AppendJSON(nil, sink.AllFields))
			if strings.Contains(line, "secret") {
				t.Error(line)
			}
			var read struct{ Method, Request string }
			if err := json.Unmarshal([]byte(line), &read); err != nil {
				t.Fatal(err)
			}
			if ids[rec.URL+read.Request] || rec.Items == nil || keys[rec.Items[0].Key] {
				t.Errorf("a second %s, or one of its item: %s", rec.URL, line)
			}
			ids[rec.URL+read.Request], keys[rec.Items[0].Key] = true, true
			if rec.Refused == "request" {
				refused++
			}
		}
		if refused != 1 || len(ids) != len(want)+1 {
			t.Errorf("%d redirects refused, %d records, want %d", refused, len(ids), len(want)+1)
		}
		if text := log.String(); strings.Contains(text, "secret") || !strings.Contains(text, "method=POST") {
			t.Error("the log has a secret, or no method")
		}
		r.checkEmpty()
	})
}

// TestRequestRefused: a request that cannot be made is an error of Add, without secrets.
func TestRequestRefused(t *testing.T) {
	w := newWeb(t)
	r := newRig(t, w, nil)
	w.rest(html())
	r.cfg.Handler = func(_ context.Context, p *Page) error {
		for why, c := range map[string]Candidate{
			`header "Host" is set by the crawler itself`: {URL: "/x", Header: [][2]string{{"Host", "secret"}}},
			`header "user-agent" is set`:                 {URL: "/x", Header: [][2]string{{"user-agent", "secret"}}},
			"at most 4096 are allowed":                   {URL: "/x", Method: "POST", Body: make([]byte, 4100)},
			`method "TRACE" is refused`:                  {URL: "/x", Method: "TRACE"},
			`header "X" has a value`:                     {URL: "/x", Header: [][2]string{{"X", "secret\n"}}},
		} {
			if err := p.Add(c); err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "http://a.example/x") {
				t.Errorf("%v, want %s", err, why)
			}
		}
		return nil
	}
	r.seed("http://a.example/")
	r.run()
	if n := r.store.urls(); n != 1 {
		t.Errorf("%d URLs", n)
	}
}

// TestRequestComesBack: what failed, and what was under way when its crawler ended, is
// the same request the next time.
func TestRequestComesBack(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r := newLeaseRig(t, w, shortLease, func(s *frontier.Settings) { s.Scope = "any" })
	m := methods{seen: map[string]int{}}
	hang := make(chan struct{})
	w.rest(func(rw http.ResponseWriter, req *http.Request) {
		text := m.note(req)
		switch {
		case req.URL.Path == "/fails" && m.times(text) == 1:
			rw.WriteHeader(503)
			return
		case req.URL.Path == "/hangs" && m.times(text) == 1:
			close(hang)
			<-req.Context().Done()
			return
		}
		html()(rw, req)
	})
	r.cfg.Handler = func(_ context.Context, p *Page) error {
		if p.URL != "http://a.example/" {
			return nil
		}
		return errors.Join(p.Add(post("/fails", "q")), p.Add(post("http://b.example/hangs", "q")))
	}
	r.seed("http://a.example/")
	c := r.crawler()
	wait := r.start(c)
	<-hang
	crash := errors.New("crash")
	c.Abort(crash)
	if err := wait(); !errors.Is(err, crash) {
		t.Fatal(err)
	}
	r.run()
	const form = " q secret application/x-www-form-urlencoded"
	if n := m.times("POST b.example/hangs" + form); n != 2 {
		t.Errorf("what was under way came %d times", n)
	}
	if n := m.times("POST a.example/fails" + form); n < 2 {
		t.Errorf("what failed came %d times", n)
	}
	r.checkEmpty()
}

// TestRequestsAreRecrawled: a GET with headers is made again by its rule, with headers and
// conditions. A POST is not.
func TestRequestsAreRecrawled(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	r, _ := recrawling(t, w, ".=1ms")
	m := methods{seen: map[string]int{}}
	conditional := make(chan string, 1000)
	w.rest(func(rw http.ResponseWriter, req *http.Request) {
		m.note(req)
		rw.Header().Set("ETag", `"1"`)
		if req.URL.Path == "/get" && req.Header.Get("If-None-Match") != "" {
			select {
			case conditional <- req.Header.Get("X-Token") + req.Header.Get("If-None-Match"):
			default:
			}
		}
		html()(rw, req)
	})
	r.cfg.Handler = func(_ context.Context, p *Page) error {
		return errors.Join(p.Add(post("/post", "q")), p.Add(Candidate{URL: "/get", Header: [][2]string{{"X-Token", "secret"}, {"if-none-match", "mine"}}}))
	}
	r.seed("http://a.example/")
	c := r.crawler()
	wait := r.start(c)
	for range 3 {
		select {
		case got := <-conditional:
			if got != `secret"1"` && got != "secretmine" { // the first fetch has the handler's
				t.Errorf("condition %q", got)
			}
		case <-time.After(time.Minute):
			t.Fatal("the GET does not come again")
		}
	}
	c.Stop()
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	if n := m.times("POST a.example/post q secret application/x-www-form-urlencoded"); n != 1 {
		t.Errorf("the POST came %d times", n)
	}
}
