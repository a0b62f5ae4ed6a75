package ask

import (
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/canon"
	"seine/frontier/memory"
)

// TestStats: the end of a crawl is the later of what its rate and what its largest
// site say, and unknown where nothing is fetched.
func TestStats(t *testing.T) {
	f, err := memory.New(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stats := func(by string) *Progress {
		t.Helper()
		p, err := Stats(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if p.State != "ready" || !strings.Contains(p.ETA.By, by) {
			t.Errorf("%s: %+v", p.State, p.ETA)
		}
		return p
	}
	if p := stats("nothing is left"); !p.ETA.Known {
		t.Error("an empty crawl has no end")
	}
	if eta, err := Estimate(t.Context(), f, &frontier.Report{Settings: &frontier.Settings{}, Feed: 7}); err != nil || eta.Known || eta.By != "unknown: 7 elements wait in the feed" {
		t.Errorf("with a feed: %+v, %v", eta, err)
	}
	var batch []frontier.Candidate
	for _, path := range []string{"1", "2", "3", "4"} {
		url := "http://a.example/" + path
		batch = append(batch, frontier.Candidate{URL: url, Site: "a.example", Fingerprint: canon.FingerprintOf([]byte("a.example"), []byte(url))})
	}
	if err := f.Admit(t.Context(), 0, batch, make([]frontier.Verdict, len(batch))); err != nil {
		t.Fatal(err)
	}
	if p := stats("unknown: nothing is fetched"); p.ETA.Known || p.ETA.Slowest != Span(4*time.Second) {
		t.Errorf("%+v", p.ETA)
	}
	m := frontier.NewMember(frontier.KindFetcher, "v1")
	m.Rate, m.Limit = 0.5, "politeness"
	if _, err := f.Announce(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	p := stats("4 URLs at 0.5 a second")
	if p.ETA.Left != Span(8*time.Second) || p.Rate != 0.5 || p.Limits["politeness"] != 1 || p.Versions["v1"] != 1 {
		t.Errorf("%+v", p)
	}
	m.Limit = frontier.LimitReplica
	if _, err := f.Announce(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if p, err := Stats(t.Context(), f); err != nil || !strings.HasPrefix(p.State, "not ready: fetchers whose new URLs no replica acknowledges: 1;") {
		t.Errorf("%v, %+v", err, p)
	}
	m.Limit = "politeness"
	m.Rate = 100
	if _, err := f.Announce(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if p := stats("4 URLs of a.example at its delay of 1s"); p.ETA.Left != Span(4*time.Second) {
		t.Errorf("%+v", p.ETA)
	}
	// The trend of what is left counts, where fetchers know it.
	for _, c := range []struct {
		growth   float64
		maxPages int64
		recrawl  []string
		by       string
		left     time.Duration // 0 = not known
	}{
		{-0.25, 0, nil, "4 URLs are left, 0.2 fewer a second", 16 * time.Second},
		{-100, 0, nil, "a.example at its delay", 4 * time.Second},
		{3, 0, nil, "unknown: more URLs are found than fetched, 3.0 a second", 0},
		{3, 500, nil, "500 pages to --max-pages at 100.0 a second", 5 * time.Second},
		{-0.25, 500, nil, "500 pages to --max-pages", 5 * time.Second},
		{-0.25, 50_000, nil, "4 URLs are left", 16 * time.Second},
		{-0.25, 0, []string{".=1h"}, "unknown: pages are recrawled", 0},
		{-0.25, 500, []string{".=1h"}, "500 pages to --max-pages", 5 * time.Second},
	} {
		m.Growth = c.growth
		if _, err := f.Announce(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Set(t.Context(), func(s *frontier.Settings) error { s.MaxPages, s.Recrawl = c.maxPages, c.recrawl; return nil }); err != nil {
			t.Fatal(err)
		}
		if p := stats(c.by); p.ETA.Known != (c.left > 0) || p.ETA.Left != Span(c.left) {
			t.Errorf("%+v: %+v", c, p.ETA)
		}
	}
	if _, err := f.Announce(t.Context(), frontier.NewMember(frontier.KindSeeder, "v1")); err != nil {
		t.Fatal(err)
	}
	stats("unknown: seeds are still being admitted")
}
