package fetch

import (
	"bytes"
	"testing"
)

// TestRequestLimits: a request's own limit counts, above and below the client's.
func TestRequestLimits(t *testing.T) {
	body := page(60_000)
	for _, enc := range []string{"", "gzip"} {
		s := answers(t, answer(enc, encode(t, enc, body), false), false)
		c := newClient(t, func(cfg *Config) { cfg.MaxBody = 1000 })
		for max, want := range map[int64]int{0: 1000, 500: 500, 59_999: 59_999, 60_000: 60_000, 1 << 20: 60_000} {
			var resp Response
			h := &collector{}
			err := c.Do(t.Context(), &Request{URL: s.url, MaxBody: max}, &resp, h)
			if err != nil || !bytes.Equal(h.body, body[:want]) || resp.Truncated != (want < len(body)) {
				t.Errorf("%q, %d: %v, %d bytes, truncated %v", enc, max, err, len(h.body), resp.Truncated)
			}
		}
	}
}

// TestRaw: a raw body comes with its codings on, and Decode undoes them.
func TestRaw(t *testing.T) {
	plain := page(60_000)
	c := newClient(t, nil)
	for _, enc := range []string{"gzip", "br", "zstd", "deflate", "utf-8"} {
		coded := plain
		if enc != "utf-8" { // which is no coding, but often said
			coded = encode(t, enc, plain)
		}
		s := answers(t, answer(enc, coded, true), false)
		var resp Response
		h := &collector{}
		if err := c.Do(t.Context(), &Request{URL: s.url, Raw: true}, &resp, h); err != nil || !bytes.Equal(h.body, coded) {
			t.Fatalf("%s: %v, %d bytes", enc, err, len(h.body))
		}
		for max, want := range map[int64]int{1 << 20: 60_000, 60_000: 60_000, 59_999: 59_999, 10: 10} {
			got, cut, err := Decode(resp.Header.Get("Content-Encoding"), h.body, max)
			if err != nil || !bytes.Equal(got, plain[:want]) || cut != (want < len(plain)) {
				t.Errorf("%s: %v, %d bytes of %d, cut %v", enc, err, len(got), max, cut)
			}
		}
		if enc == "utf-8" {
			continue
		}
		for _, broken := range [][]byte{plain, coded[:len(coded)/2]} {
			if got, cut, err := Decode(enc, broken, 1<<20); err == nil || cut {
				t.Errorf("%s, broken: %d bytes, cut %v", enc, len(got), cut)
			}
		}
	}
}
