package fetch

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// encode compresses b as a server would under one name; "raw" is deflate
// without the zlib frame.
func encode(tb testing.TB, name string, b []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	var err error
	var w interface {
		Write([]byte) (int, error)
		Close() error
	}
	switch name {
	case "":
		return b
	case "gzip":
		w = gzip.NewWriter(&out)
	case "br":
		w = brotli.NewWriter(&out)
	case "zstd":
		w, err = zstd.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "raw":
		w, err = flate.NewWriter(&out, 6)
	default:
		tb.Fatal(name)
	}
	if err != nil {
		tb.Fatal(err)
	}
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// answer frames a body with a length or, chunked, in pieces.
func answer(encoding string, body []byte, chunked bool) string {
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	if encoding != "" {
		head += "Content-Encoding: " + encoding + "\r\n"
	}
	if !chunked {
		return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
	}
	var b strings.Builder
	b.WriteString(head + "Transfer-Encoding: chunked\r\n\r\n")
	for len(body) > 0 {
		n := min(len(body), 700)
		fmt.Fprintf(&b, "%x;ext=1\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	b.WriteString("0\r\nX-Trailer: yes\r\n\r\n")
	return b.String()
}

var nestings = []struct {
	header string
	steps  []string // applied in order
}{
	{"", nil},
	{"identity", nil},
	{"UTF-8", nil},
	{"gzip", []string{"gzip"}},
	{"X-GZip", []string{"gzip"}},
	{"br", []string{"br"}},
	{"zstd", []string{"zstd"}},
	{"deflate", []string{"deflate"}},
	{"deflate", []string{"raw"}},
	{"gzip, br", []string{"gzip", "br"}},
	{"deflate,gzip , zstd", []string{"raw", "gzip", "zstd"}},
	{"br, gzip, deflate, zstd", []string{"br", "gzip", "deflate", "zstd"}},
}

// TestBodyLimit holds that a body is cut one byte past the limit and not
// before, whatever its encoding and framing, compressible or not.
func TestBodyLimit(t *testing.T) {
	const limit = 50_000
	noise := make([]byte, limit+1)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(noise)
	text := bytes.Repeat([]byte("seine "), limit/6+1)
	for _, enc := range nestings {
		for _, plain := range [][]byte{noise, text} {
			for _, size := range []int{0, 1, limit - 1, limit, limit + 1} {
				for _, chunked := range []bool{false, true} {
					name := fmt.Sprintf("%s %d chunked=%v", enc.header, size, chunked)
					body := plain[:size]
					for _, step := range enc.steps {
						body = encode(t, step, body)
					}
					s := answers(t, answer(enc.header, body, chunked), false)
					c := newClient(t, func(cfg *Config) { cfg.MaxBody = limit })
					resp, h, err := get(c, s.url)
					if err != nil {
						t.Fatal(name, err)
					}
					cut := ""
					if size > limit {
						cut = ClassBodySize
						if len(enc.steps) == 0 {
							cut = ClassBodyWire
						}
					}
					if resp.Truncated != (cut != "") || resp.Cut != cut {
						t.Errorf("%s: truncated %v, cut %q", name, resp.Truncated, resp.Cut)
					}
					if want := plain[:min(size, limit)]; !bytes.Equal(h.body, want) || resp.Bytes != int64(len(want)) {
						t.Errorf("%s: %d bytes of %d", name, len(h.body), len(want))
					}
					if cut == "" && resp.WireBytes != int64(len(body)) {
						t.Errorf("%s: %d bytes on the wire of %d", name, resp.WireBytes, len(body))
					}
					if idle := c.Stats().Idle; (idle == 1) != (cut == "") {
						t.Errorf("%s: %d idle connections", name, idle)
					}
				}
			}
		}
	}
}

// TestWireLimit: padding that inflates to nothing ends at the wire limit.
// TestInnerLimit: what one encoding yields to the next is bounded as well.
// Here it is empty gzip members without end, of which nothing ever comes out.
func TestInnerLimit(t *testing.T) {
	bomb := bytes.Repeat(encode(t, "gzip", nil), 1<<18)
	for encoding, body := range map[string][]byte{
		"gzip, gzip":             encode(t, "gzip", bomb),
		"gzip, br":               encode(t, "br", bomb),
		"gzip, zstd":             encode(t, "zstd", bomb),
		"gzip, deflate, deflate": encode(t, "deflate", encode(t, "deflate", bomb)),
	} {
		_, resp, got := serveEncoded(t, encoding, body, func(cfg *Config) { cfg.MaxBody = 1 << 20 })
		if len(got) != 0 || !resp.Truncated || resp.Cut != ClassBodySize {
			t.Errorf("%s, %d bytes on the wire: %d bytes, cut %q", encoding, len(body), len(got), resp.Cut)
		}
	}
}

func TestWireLimit(t *testing.T) {
	empty := encode(t, "gzip", nil)
	body := bytes.Repeat(empty, 300_000/len(empty))
	s := answers(t, answer("gzip", body, true), false)
	c := newClient(t, func(cfg *Config) { cfg.MaxBody = 100_000 })
	resp, h, err := get(c, s.url)
	if err != nil || resp.Cut != ClassBodyWire || len(h.body) != 0 || resp.WireBytes != maxWire(c.cfg.MaxBody) {
		t.Fatalf("%v %+v %d", err, resp, len(h.body))
	}
}

func TestHeaderLimits(t *testing.T) {
	const limit = 20_000
	build := func(size int) string {
		head := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nX: "
		return head + strings.Repeat("x", size-len(head)-4) + "\r\n\r\nok"
	}
	for _, tc := range []struct {
		name, answer, class string
	}{
		{"limit-1", build(limit - 1), ""},
		{"limit", build(limit), ""},
		{"limit+1", build(limit + 1), ClassHeaderSize},
		{"twice", build(2 * limit), ClassHeaderSize},
		{"endless line", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 10*limit), ClassHeaderSize},
		{"endless lines", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: x\r\n", limit), ClassHeaderSize},
		{"endless status", "HTTP/1.1 200 " + strings.Repeat("x", 10*limit), ClassHeaderSize},
		{"interim", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 600) + okAnswer, ClassProtocol},
		{"interim large", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: "+strings.Repeat("x", 1000)+"\r\n\r\n", 30) + okAnswer, ClassHeaderSize},
		{"98 lines", "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 2\r\n" + strings.Repeat("X: x\r\n", 98) + "\r\nok", ""},
		{"101 lines", "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 2\r\n" + strings.Repeat("X: x\r\n", 99) + "\r\nok", ClassHeaderCount},
	} {
		for _, small := range []bool{false, true} { // the limit below the read buffer too
			s := answers(t, tc.answer, false)
			c := newClient(t, func(cfg *Config) { cfg.MaxHeader, cfg.MaxHeaderCount = limit, 100 })
			if small {
				c.readers.New = func() any { return bufio.NewReaderSize(nil, 4*limit) }
			}
			_, h, err := get(c, s.url)
			if class(err) != tc.class || (h.began == 1) != (tc.class == "") {
				t.Errorf("%s, wide buffer %v: %v", tc.name, small, err)
			}
			if err != nil && c.Stats().Idle != 0 {
				t.Errorf("%s: connection kept", tc.name)
			}
		}
	}
}
