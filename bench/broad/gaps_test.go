package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"seine/bench/load"
)

const ms = time.Millisecond

func TestGaps(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }
	for _, c := range []struct {
		what string
		hits []hit
		want gaps
	}{
		{"other sites do not count", []hit{{site: load.Address(0), at: at(0)}, {site: load.Address(1), at: at(ms)}, {site: load.Address(0), at: at(time.Second)}}, gaps{least: time.Second}},
		{"too short, in any order", []hit{{site: load.Address(0), at: at(900 * ms)}, {site: load.Address(0), at: at(0)}}, gaps{short: 1, least: 900 * ms}},
		{"the first was seen late", []hit{{site: load.Address(0), at: at(100 * ms), late: 150 * ms}, {site: load.Address(0), at: at(time.Second)}}, gaps{least: 1050 * ms}},
		{"the second was seen late", []hit{{site: load.Address(0), at: at(0)}, {site: load.Address(0), at: at(900 * ms), late: 150 * ms}}, gaps{short: 1, least: 900 * ms}},
		{"nobody knows", []hit{{site: load.Address(0), at: at(0), late: -1}, {site: load.Address(0), at: at(900 * ms)}}, gaps{unknown: 1, least: time.Hour}},
	} {
		if got := judge(c.hits, time.Second); got != c.want {
			t.Errorf("%s: %+v, not %+v", c.what, got, c.want)
		}
	}
}

// A request is divided over the time until the next one.
func TestAsked(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }
	var hits []hit
	for s := range 3 { // in step, each 0.4 s; the last stops after a second
		for i := range 20 {
			if s < 2 || i < 3 {
				hits = append(hits, hit{site: load.Address(s), at: at(time.Duration(i) * 400 * ms)})
			}
		}
	}
	judge(hits, time.Second)
	for _, from := range []time.Duration{1000 * ms, 1199 * ms, 1201 * ms} {
		if n := asked(hits, at(from), at(from+5*time.Second)); n < 24.99 || n > 25.01 {
			t.Errorf("from %v on %v requests in 5 s of two sites", from, n)
		}
	}
}

func TestLateness(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }
	l, kept, first := make(lateness), way{worker: 7}, way{worker: 7, first: true}
	for _, p := range []struct {
		way
		seen, sent time.Duration
	}{
		{kept, 60 * ms, 30 * ms}, {kept, 0, -10 * ms},
		{kept, 160 * ms, 150 * ms}, {kept, 160 * ms, 70 * ms}, {kept, 170 * ms, 140 * ms}, // it stood still from 70 ms on
		{kept, time.Second, time.Second},
		{first, 150 * ms, 5 * ms}, {first, 180 * ms, 175 * ms},
	} {
		if err := l.add(p.way, at(p.seen), strconv.FormatInt(at(p.sent).UnixNano(), 10)); err != nil {
			t.Fatal(err)
		}
	}
	l.sort()
	for _, c := range []struct {
		what string
		way  way
		at   time.Duration
		want time.Duration
	}{
		{"since the probe before was sent", kept, 20 * ms, 31 * ms},
		{"probes seen at once say nothing of each other", kept, 160 * ms, 131 * ms},
		{"any probe before may be the last one sent", kept, 175 * ms, 26 * ms},
		{"those whose connection waits wait longer", first, 170 * ms, 166 * ms},
		{"probes too far", kept, 500 * ms, -1},
		{"before all", kept, -ms, -1},
		{"after all", kept, 2 * time.Second, -1},
		{"of another worker", way{worker: 8}, 20 * ms, -1},
	} {
		if got := l.at(c.way, at(c.at)); got != c.want {
			t.Errorf("%s: %v, not %v", c.what, got, c.want)
		}
	}
}

// What nginx logs is read back: sites, times, and how late it was.
func TestOrigin(t *testing.T) {
	t.Run("http", func(t *testing.T) { testOrigin(t, row{sites: 3, pages: 2}) })
	t.Run("https", func(t *testing.T) { testOrigin(t, row{sites: 3, pages: 2, https: true}) })
	t.Run("https late", func(t *testing.T) { testOrigin(t, row{sites: 3, pages: 2, https: true, late: time.Millisecond}) })
}

func testOrigin(t *testing.T, r row) {
	dir := t.TempDir()
	o, err := serve(dir, &r)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{}}}
	defer client.CloseIdleConnections()
	scheme := "http://"
	if r.https {
		scheme = "https://"
		text, err := os.ReadFile(filepath.Join(dir, "roots.pem"))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(text)
		client.Transport.(*http.Transport).TLSClientConfig.RootCAs = roots
	}
	for i := range r.sites {
		for _, path := range []string{"/robots.txt", "/", "/p1"} {
			answer, err := client.Get(scheme + load.Address(i).String() + ":" + strconv.Itoa(o.port()) + path)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, answer.Body) //nolint:errcheck // else the connection is not kept
			answer.Body.Close()
		}
	}
	hits, err := o.stop()
	if err != nil {
		t.Fatal(err)
	}
	pages := make(map[string]int)
	for _, h := range hits {
		if h.page {
			pages[h.site.String()]++
		}
	}
	if len(hits) != 9 || len(pages) != 3 || pages[load.Address(2).String()] != 2 {
		t.Errorf("%d requests, pages %v", len(hits), pages)
	}
	if since := time.Since(hits[0].at); since < 0 || since > time.Minute {
		t.Errorf("seen %v ago", since)
	}
}

// Sites have addresses of their own.
func TestSites(t *testing.T) {
	seen := make(map[string]bool)
	for _, i := range []int{0, 255, 256, 65535, 65536, 999999} {
		a := load.Address(i)
		if !a.IsLoopback() || seen[a.String()] {
			t.Errorf("site %d is %v", i, a)
		}
		seen[a.String()] = true
	}
}
