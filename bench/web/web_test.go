package web

import (
	"bytes"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The same seed is the same web in every process; this pins it down.
func TestDeterminism(t *testing.T) {
	a, err := New(Config{Seed: 1, Features: AllFeatures})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := New(Config{Seed: 1, Features: AllFeatures})
	other, _ := New(Config{Seed: 2, Features: AllFeatures})
	same := 0
	for site := range a.Sites() {
		for n := range a.Pages(site) {
			page := a.appendPage(nil, site, n)
			if !bytes.Equal(page, b.appendPage(nil, site, n)) {
				t.Fatalf("page %d of site %d differs", n, site)
			}
			if len(page) > 0 && bytes.Equal(page, other.appendPage(nil, site, n)) {
				same++
			}
		}
	}
	if same > 0 {
		t.Errorf("%d pages are the same with another seed", same)
	}
}

// Every URL of the model leads back to what it is made of, and is one URL only.
func TestURLsResolve(t *testing.T) {
	for _, length := range []int{0, 92} {
		w, err := New(Config{Seed: 3, Sites: 4, Pages: 3000, Features: AllFeatures, URLBytes: length})
		if err != nil {
			t.Fatal(err)
		}
		wantResolving(t, w)
	}
}

func wantResolving(t *testing.T, w *Web) {
	t.Helper()
	bytes, pages := 0, 0
	seen := map[string]bool{}
	for site := range w.Sites() {
		for n := range w.Pages(site) {
			for k := kindPage; k < kinds; k++ {
				step := 0
				if stepped[k] {
					step = 3
				}
				path := w.appendPath(nil, site, k, n, step)
				gotKind, gotN, gotStep := w.resolve(site, path)
				if gotKind != k || gotN != n || gotStep != step {
					t.Fatalf("%s is %v %d %d, not %v %d %d", path, gotKind, gotN, gotStep, k, n, step)
				}
				u := w.Host(site) + string(path)
				if k == kindPage {
					bytes, pages = bytes+len(w.URL(site, n)), pages+1
				}
				if seen[u] {
					t.Fatalf("%s twice", u)
				}
				seen[u] = true
			}
		}
		if got := w.siteOf(w.Host(site)); got != site {
			t.Errorf("host of site %d is of site %d", site, got)
		}
	}
	if mean := bytes / pages; w.cfg.URLBytes > 0 && (mean < w.cfg.URLBytes-5 || mean > w.cfg.URLBytes+5) {
		t.Errorf("URLs have %d bytes, not %d", mean, w.cfg.URLBytes)
	}
	for _, bad := range []string{"", "x", "/p", "/p1x", "/p01.html", "/news/p0.html", "/r/1", "/r/x/1", "/gone/1/2", "/gone/999999", "/item?id=", "//p1.html"} {
		if k, _, _ := w.resolve(0, []byte(bad)); k != kindNone {
			t.Errorf("%q is %v", bad, k)
		}
	}
	for _, bad := range []string{"", "s.example", "s01.example", "s4.example", "x0.example", "s0.example.com", "s-1.example"} {
		if w.siteOf(bad) != -1 {
			t.Errorf("%q is a site", bad)
		}
	}
}

func TestSizesFollowPowerLaw(t *testing.T) {
	w, err := New(Config{Sites: 1000, Pages: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for k := range w.Sites() {
		if total += w.Pages(k); k > 0 && w.Pages(k) > w.Pages(k-1) {
			t.Fatalf("site %d is larger than the one before", k)
		}
	}
	// A tenfold rank has 10^-1.25 of the size when the exponent is 1.8.
	if ratio := float64(w.Pages(9)) / float64(w.Pages(99)); ratio < 16 || ratio > 20 {
		t.Errorf("sites of rank 10 and 100: %d and %d", w.Pages(9), w.Pages(99))
	}
	if total < 99_000 || total > 101_000 {
		t.Errorf("%d pages", total)
	}
}

func TestLinksOfAPage(t *testing.T) {
	w, err := New(Config{Seed: 1, Sites: 1, Pages: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	links, fresh, exported := 0, 0, 0
	w.Links(0, 0, func([]byte) { exported++ })
	if exported != 62 {
		t.Errorf("%d links exported", exported)
	}
	known := map[link]bool{{kind: kindPage}: true}
	for n := range 1000 { // as long as there are new ones
		w.links(0, n, func(l link) {
			links++
			if !known[l] {
				fresh++
			}
			known[l] = true
		})
	}
	if links != 62_000 || fresh != 6000 {
		t.Errorf("%d links, %d new, on 1,000 pages", links, fresh)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{{Sites: -1}, {New: 2}, {New: math.NaN()}, {Exponent: 1}, {Exponent: math.NaN()}, {Features: 1 << 30}, {Scheme: "ftp"}, {CrawlDelay: -1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	f, err := ParseFeatures("gentle,traps")
	if err != nil || f != Gentle|Traps {
		t.Errorf("%v %v", f, err)
	}
	if f, err := ParseFeatures("all"); err != nil || f != AllFeatures || len(featureNames) != 12 {
		t.Errorf("%v %v", f, err)
	}
	if _, err := ParseFeatures("nice"); err == nil {
		t.Error("unknown feature taken")
	}
	w, _ := New(Config{Features: Redirects})
	for _, p := range []Plan{{Sites: []int{99}}, {Sites: []int{1}, AnyScope: true}, {MaxDepth: 1}} {
		if _, err := w.Verify(p, nil, nil); err == nil {
			t.Errorf("%+v was taken", p)
		}
	}
}

func TestHostileURLs(t *testing.T) {
	s := serve(t, Config{Seed: 1, Sites: 1, Pages: 50, Features: AllFeatures})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(path string) (*http.Response, error) {
		req, err := http.NewRequest("GET", "http://"+s.Addr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "s0.example"
		return client.Do(req)
	}
	for _, c := range []struct {
		path, retryAfter string
		statuses         []int
	}{
		{"/busy/2", "1", []int{503, 200, 200}},
		{"/busy/1", "1", []int{503, 503, 200}},
		{"/busy/3", "GMT", []int{429, 429, 200}},
		{"/broken/1", "", []int{500, 500}},
		{"/gone/1", "", []int{404}}, {"/gone/3", "", []int{410}}, {"/soft/1", "", []int{200}},
		{"/loop/1/0", "", []int{302}}, {"/hops/1/7", "", []int{302}}, {"/nothing", "", []int{404}},
	} {
		for i, want := range c.statuses {
			resp, err := get(c.path)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != want || (want == 429 || want == 503) != strings.Contains(resp.Header.Get("Retry-After"), c.retryAfter) && c.retryAfter != "" {
				t.Errorf("%s, request %d: %d, Retry-After %q", c.path, i+1, resp.StatusCode, resp.Header.Get("Retry-After"))
			}
		}
	}
	if _, err := get("/reset/1"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %v", err)
	}
	resp, err := get("/drip/1")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := resp.Body.Read(make([]byte, 10)); n != 1 {
		t.Errorf("drip: %d bytes, %v", n, err)
	}
	_ = resp.Body.Close()
	s.web.Forget()
	if len(s.web.Log()) != 0 || s.web.try(trial{0, 1, kindBusy}) != 1 {
		t.Error("Forget forgets nothing")
	}
}

func TestConnectTo(t *testing.T) {
	s := serve(t, Config{})
	if want := "*.example:80:" + s.Addr(); s.ConnectTo() != want {
		t.Errorf("%s", s.ConnectTo())
	}
	if got := s.web.Seeds(2, 0); !slices.Equal(got, []string{"http://s2.example/", "http://s0.example/"}) {
		t.Errorf("%v", got)
	}
	if _, err := s.web.Listen("nowhere"); err == nil {
		t.Error("listens nowhere")
	}
}

func BenchmarkAppendPage(b *testing.B) {
	for name, f := range map[string]Features{"bare": 0, "gentle": Gentle} {
		b.Run(name, func(b *testing.B) {
			w, err := New(Config{Seed: 1, Sites: 1000, Pages: 1_000_000, Features: f})
			if err != nil {
				b.Fatal(err)
			}
			var buf []byte
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n = (n + 7919) % w.Pages(0)
				buf = w.appendPage(buf[:0], 0, n)
			}
			b.ReportMetric(float64(len(buf)), "page-B")
		})
	}
}
