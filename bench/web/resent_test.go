package web

import (
	"testing"
	"time"
)

// What a crawler sends once more after a reset, once and at once, is part of its
// attempt; more, later, or of another URL it is not.
func TestVerifyResent(t *testing.T) {
	w, err := New(Config{Seed: 1, Sites: 1, Pages: 300, Features: Slow})
	if err != nil {
		t.Fatal(err)
	}
	var reset, slow Expected
	for e := range w.Expect(Plan{}) {
		_, path := splitURL(e.URL)
		switch k, _, _ := w.resolve(0, []byte(path)); k {
		case kindReset:
			reset = e
		case kindSlow:
			slow = e
		}
	}
	if reset.URL == "" || slow.URL == "" {
		t.Fatal("no such URLs")
	}
	start := time.Unix(1_000_000, 0)
	judge := func(url string, after ...time.Duration) (repeated, early int) {
		t.Helper()
		var log []Request
		host, path := splitURL(url)
		for _, d := range after {
			log = append(log, Request{At: start.Add(d), Host: host, Target: path})
		}
		r, err := w.Verify(Plan{Attempts: 2, Delay: 2 * time.Second}, log, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.Repeated.Count, r.Early.Count
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		name            string
		url             string
		after           []time.Duration
		repeated, early int
	}{
		{"none resent", reset.URL, []time.Duration{0, 5000 * ms}, 0, 0},
		{"each resent", reset.URL, []time.Duration{0, 2 * ms, 5000 * ms, 5002 * ms}, 0, 0},
		{"resent twice", reset.URL, []time.Duration{0, 2 * ms, 4 * ms, 5000 * ms}, 1, 1},
		{"resent late", reset.URL, []time.Duration{0, 1500 * ms, 5000 * ms}, 1, 1},
		{"an attempt too many", reset.URL, []time.Duration{0, 2 * ms, 5000 * ms, 10000 * ms}, 1, 0},
		{"another URL", slow.URL, []time.Duration{0, 2 * ms}, 1, 1},
	} {
		if repeated, early := judge(c.url, c.after...); repeated != c.repeated || early != c.early {
			t.Errorf("%s: %d repeated, %d early", c.name, repeated, early)
		}
	}
}
