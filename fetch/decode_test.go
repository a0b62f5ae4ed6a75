package fetch

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func read(tb testing.TB, path ...string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// serveEncoded fetches a body under an encoding.
func serveEncoded(tb testing.TB, encoding string, body []byte, change func(*Config)) (*Client, *Response, []byte) {
	tb.Helper()
	s := answers(tb, answer(encoding, body, false), false)
	c := newClient(tb, change)
	resp, h, err := get(c, s.url)
	if err != nil {
		tb.Fatal(encoding, err)
	}
	return c, resp, h.body
}

func TestRealBodies(t *testing.T) {
	dir := testdata(t, "compressed")
	pages := map[string][]byte{} // the deflate samples are of another version of the page
	for _, tc := range []struct{ file, encoding string }{
		{"html-gzip.bin", "gzip"},
		{"html-br.bin", "br"},
		{"html-zlibdeflate.bin", "deflate"},
		{"html-rawdeflate.bin", "deflate"},
		{"html-gzip-deflate.bin", "gzip, deflate"},
		{"html-gzip-deflate-gzip.bin", "gzip, deflate, gzip"},
		{"html-zstd-static-content-size.bin", "zstd"},
		{"html-zstd-static-no-content-size.bin", "zstd"},
		{"html-zstd-streaming-no-content-size.bin", "zstd"},
		{"feed-sample1.xml.gz", "gzip"},
	} {
		_, resp, body := serveEncoded(t, tc.encoding, read(t, dir, tc.file), nil)
		if resp.Truncated {
			t.Errorf("%s: cut for %s after %d bytes", tc.file, resp.Cut, len(body))
		}
		group := "html"
		switch {
		case strings.HasPrefix(tc.file, "feed"):
			group = "feed"
			pages[group] = read(t, dir, "feed-sample1.xml")
		case tc.encoding == "deflate":
			group = "deflate"
		}
		if pages[group] == nil {
			pages[group] = body
			if !bytes.Contains(body, []byte("</html>")) {
				t.Errorf("%s: no page, %d bytes", tc.file, len(body))
			}
		}
		if want := pages[group]; !bytes.Equal(body, want) {
			t.Errorf("%s: %d bytes, not the page of %d", tc.file, len(body), len(want))
		}
	}
}

func TestRealBrokenBodies(t *testing.T) {
	dir := testdata(t, "compressed")
	for _, tc := range []struct {
		file string
		want []byte // nil: at least something
	}{
		{"truncated-crc-error.gz", nil},
		{"truncated-crc-error-short.gz", nil},
		{"unexpected-eof.gz", latin1(read(t, dir, "unexpected-eof-output.txt"))},
	} {
		c, resp, body := serveEncoded(t, "gzip", read(t, dir, tc.file), nil)
		if !resp.Truncated || resp.Cut != ClassDecode || c.Stats().Idle != 0 {
			t.Errorf("%s: %+v", tc.file, resp)
		}
		if tc.want != nil && !bytes.Equal(body, tc.want) || len(body) == 0 {
			t.Errorf("%s: %d bytes, want %d", tc.file, len(body), len(tc.want))
		}
	}
}

// latin1 undoes the reading of bytes as Latin-1 in which a sample is stored.
func latin1(utf8 []byte) []byte {
	var b []byte
	for _, r := range string(utf8) {
		b = append(b, byte(r))
	}
	return b
}

// TestBrokenBodies: what was decoded before the fault arrives, with the flag.
func TestBrokenBodies(t *testing.T) {
	plain := page(100_000)
	for _, enc := range []string{"gzip", "br", "zstd", "deflate", "raw"} {
		whole := encode(t, enc, plain)
		header := strings.Replace(enc, "raw", "deflate", 1)
		for _, tc := range []struct {
			name string
			body []byte
		}{
			{"cut", whole[:len(whole)/2]},
			{"cut in the head", whole[:1]},
			{"damaged", append(bytes.Clone(whole[:len(whole)/2]), bytes.Repeat([]byte{0xff}, 64)...)},
			{"not encoded", []byte("\x01plain text that nobody compressed")},
		} {
			c, resp, body := serveEncoded(t, header, tc.body, nil)
			if !resp.Truncated || resp.Cut != ClassDecode || !bytes.HasPrefix(plain, body) && tc.name != "damaged" && tc.name != "not encoded" {
				t.Errorf("%s %s: %q after %d bytes", enc, tc.name, resp.Cut, len(body))
			}
			// The pooled decoder is fit for the next body.
			s := answers(t, answer(header, whole, false), false)
			if resp, h, err := get(c, s.url); err != nil || resp.Truncated || !bytes.Equal(h.body, plain) {
				t.Errorf("%s after %s: %v %q", enc, tc.name, err, resp.Cut)
			}
		}
		if _, resp, body := serveEncoded(t, header, nil, nil); resp.Truncated || len(body) != 0 {
			t.Errorf("%s: an empty body is no fault: %+v", enc, resp)
		}
	}
	for _, tail := range []string{"\x00\x00", "garbage"} {
		if _, resp, body := serveEncoded(t, "gzip", append(encode(t, "gzip", plain), tail...), nil); resp.Truncated || !bytes.Equal(body, plain) {
			t.Errorf("gzip with tail %q: %+v", tail, resp)
		}
	}
	two := append(encode(t, "gzip", plain[:500]), encode(t, "gzip", plain[500:])...)
	if _, resp, body := serveEncoded(t, "gzip", two, nil); resp.Truncated || !bytes.Equal(body, plain) {
		t.Errorf("two members: %+v, %d bytes", resp, len(body))
	}
	s := answers(t, answer("gzip, gzip, gzip, gzip, gzip, gzip", plain, false), false)
	if _, _, err := get(newClient(t, nil), s.url); class(err) != ClassProtocol {
		t.Errorf("six encodings: %v", err)
	}
}

// A small limit is reached to the byte where a first piece alone is far larger.
func TestSmallLimit(t *testing.T) {
	plain := page(300_000)
	for _, enc := range []string{"gzip", "br", "zstd", "deflate", "gzip, gzip"} {
		body := plain
		for _, step := range strings.Split(enc, ", ") {
			body = encode(t, step, body)
		}
		_, resp, got := serveEncoded(t, enc, body, func(cfg *Config) { cfg.MaxBody = 1000 })
		if !bytes.Equal(got, plain[:1000]) || resp.Cut != ClassBodySize {
			t.Errorf("%s: %d bytes, cut for %q", enc, len(got), resp.Cut)
		}
	}
}

// A body is judged by its own codes, whatever the decoder read before: this one has
// no codes of distances and uses one.
func TestNothingOfTheBodyBefore(t *testing.T) {
	broken := "\x1f\x8b\b\x00\x00\x00\x00\x00\x00\x03\r\xc0\x01\t\x00\x00\x00\x80\xa0\xad\xfd?\x91\xc4E\xe5\x98\xad\x04\x00\x00\x00"
	c := newClient(t, nil)
	for range 10 {
		plain := page(5000)
		resp, h, err := get(c, answers(t, answer("gzip", encode(t, "gzip", plain), false), false).url)
		if err != nil || resp.Truncated || !bytes.Equal(h.body, plain) {
			t.Fatal(err, resp.Cut)
		}
		resp, h, err = get(c, answers(t, answer("gzip", []byte(broken), false), false).url)
		if err != nil || resp.Cut != ClassDecode {
			t.Fatalf("%v, cut for %q, %q", err, resp.Cut, h.body)
		}
	}
}

// TestBombs: memory stays flat while a bomb goes off, and it ends at the limit.
func TestBombs(t *testing.T) {
	bombs := map[string][]byte{}
	huge := make([]byte, 64<<20)
	for _, enc := range []string{"gzip", "br", "zstd", "deflate"} {
		bombs["own "+enc] = encode(t, enc, huge)
	}
	bombs["own gzip, gzip"] = encode(t, "gzip", bombs["own gzip"])
	huge = nil
	t.Run("own", func(t *testing.T) { explode(t, bombs) })
	t.Run("real", func(t *testing.T) {
		dir := testdata(t, "compressed")
		real := map[string][]byte{}
		for _, enc := range []string{"gzip", "br", "zstd", "deflate"} {
			real["real "+enc] = read(t, dir, "bomb-"+enc+".bin")
		}
		explode(t, real)
	})
}

func explode(t *testing.T, bombs map[string][]byte) {
	for name, body := range bombs {
		_, encoding, _ := strings.Cut(name, " ")
		s := answers(t, answer(encoding, body, false), false)
		c := newClient(t, nil)
		h := &counter{}
		var resp Response
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		if err := c.Do(t.Context(), &Request{URL: s.url}, &resp, h); err != nil {
			t.Fatal(name, err)
		}
		runtime.ReadMemStats(&after)
		if resp.Cut != ClassBodySize || h.n != 10<<20 {
			t.Errorf("%s: %q after %d bytes", name, resp.Cut, h.n)
		}
		// All that was allocated, kept or not: the windows and the buffers.
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 40<<20 {
			t.Errorf("%s: %d MB allocated", name, grown>>20)
		}
	}
}
