package warc

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/nlnwa/gowarc/v2"

	"seine/extract/sink"
	"seine/extract/sink/frame"
	"seine/extract/sink/sinktest"
)

// entry is a record as a reader sees it.
type entry struct {
	Type, ID, URL, Truncated, Refers string
	Payload                          string // SHA-256 of it, content coding undone
	Size                             int
	Problems                         []string
}

// byPython reads files by a reader of testdata/read.py.
func byPython(t *testing.T, reader string, paths ...string) (all []entry) {
	t.Helper()
	cmd := exec.Command(sinktest.Python(t), append([]string{"testdata/read.py", reader}, paths...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(out) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// byGowarc reads files by gowarc, which checks all that the standard asks for.
func byGowarc(t *testing.T, paths ...string) (all []entry) {
	t.Helper()
	for _, p := range paths {
		r, err := gowarc.NewWarcFileReader(p, 0, gowarc.WithSyntaxErrorPolicy(gowarc.ErrFail), gowarc.WithUnknownRecordTypePolicy(gowarc.ErrFail),
			gowarc.WithBlockErrorPolicy(gowarc.ErrFail), gowarc.WithSpecViolationPolicy(gowarc.ErrWarn))
		if err != nil {
			t.Fatal(err)
		}
		for {
			rec, _, validation, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s after %d: %v", p, len(all), err)
			}
			if err := rec.ValidateDigest(validation); err != nil {
				t.Error(err)
			}
			h := rec.WarcHeader()
			e := entry{Type: h.Get("WARC-Type"), ID: "<" + strings.Trim(h.Get("WARC-Record-ID"), "<>") + ">", URL: h.Get("WARC-Target-URI"), Truncated: h.Get("WARC-Truncated"), Refers: h.Get("WARC-Refers-To")}
			for _, err := range *validation {
				// It digests chunks too, which are no part of the payload.
				if !chunkedURL(e.URL) || !strings.HasPrefix(err.Error(), "payload: wrong digest") {
					e.Problems = append(e.Problems, err.Error())
				}
			}
			all = append(all, e)
			rec.Close()
		}
		r.Close()
	}
	return all
}

// chunkedURL names the pages of the tests that come in chunks.
func chunkedURL(url string) bool {
	return strings.HasSuffix(url, "/chunked") || strings.HasSuffix(url, "/repeated") || strings.HasSuffix(url, "/both")
}

func deflated(body string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, body)
	z.Close()
	return b.String()
}

// Three readers that know nothing of us read the same records, find every digest
// as it should be, and get the payloads that were served.
func TestIndependentReaders(t *testing.T) {
	want := map[string]string{} // URL -> SHA-256 of the payload
	var pages []*sink.Record
	add := func(url, head, wire, payload string) {
		sum := sha256.Sum256([]byte(payload))
		want[url] = hex.EncodeToString(sum[:])
		pages = append(pages, page(url, head, wire))
	}
	add("http://a.example/plain", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\n", "hello", "hello")
	add("http://a.example/chunked", chunkedHead, "5\r\nhello\r\n6\r\n chunk\r\n0\r\n\r\n", "hello chunk")
	z := deflated("hello gzip")
	add("http://a.example/gzip", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n", z, "hello gzip")
	add("http://a.example/both", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
		"4\r\n"+z[:4]+"\r\n"+strings.ToLower(hexLen(len(z)-4))+"\r\n"+z[4:]+"\r\n0\r\n\r\n", "hello gzip")
	add("http://a.example/cookie?q=%C3%A4", "HTTP/1.1 404 No\r\nSet-Cookie: a=b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n", "h\u00e4llo", "h\u00e4llo")
	add("http://a.example/empty", "HTTP/1.1 301 Moved\r\nLocation: /plain\r\nContent-Length: 0\r\n\r\n", "", "")
	big := strings.Repeat("0123456789abcdef\n", 100_000)
	add("http://a.example/big", plainHead, big, big)
	cut := page("http://a.example/cut", plainHead, "cut sho")
	cut.Exchange.Cut = "disconnect"
	none := sinktest.Record(1)
	none.URL, none.Exchange, none.Error = "http://b.example/", nil, &sink.Error{Class: "dns", Text: "no such host"}
	pages = append(pages, cut, none, page("http://a.example/repeated", chunkedHead, "5\r\nhello\r\n0\r\n\r\n"), page("http://a.example/revisit", plainHead, "hello"))

	want["http://a.example/repeated"] = want["http://a.example/plain"] // in other framing: stored once more
	for _, k := range kinds {
		dir := t.TempDir()
		s := open(t, Config{Dir: dir, Prefix: "crawl", Kind: k, RotateSize: 10_000})
		for _, p := range pages {
			put(t, s, p)
		}
		shut(t, s)
		paths := files(t, dir)
		var ours []string
		for _, b := range blocks(t, paths...) {
			ours = append(ours, b.fields["WARC-Record-ID"])
			if sum := b.fields["WARC-Payload-Digest"]; strings.HasSuffix(b.fields["WARC-Target-URI"], "chunked") && sum != "" && sum != "sha256:"+want[b.fields["WARC-Target-URI"]] {
				t.Errorf("%v", b.fields) // no other reader checks it without the chunks
			}
		}
		slices.Sort(ours)
		readers := map[string][]entry{"fastwarc": byPython(t, "fastwarc", paths...)}
		if k == frame.Gzip { // the others read no zstd
			readers["warcio"] = byPython(t, "warcio", paths...)
			readers["gowarc"] = byGowarc(t, paths...)
		}
		for reader, all := range readers {
			var ids []string
			for _, e := range all {
				ids = append(ids, e.ID)
				if len(e.Problems) > 0 {
					t.Errorf("%s: %s %s: %v", reader, e.Type, e.URL, e.Problems)
				}
				if e.Type == "response" && reader != "gowarc" && e.URL != cut.URL && e.Payload != want[e.URL] {
					t.Errorf("%s: %s has another payload, of %d bytes", reader, e.URL, e.Size)
				}
				if (e.URL == cut.URL && e.Type == "response") != (e.Truncated == "disconnect") {
					t.Errorf("%s: %+v", reader, e)
				}
			}
			if slices.Sort(ids); !slices.Equal(ids, ours) {
				t.Errorf("%s: %d records, we wrote %d", reader, len(ids), len(ours))
			}
		}
	}
}

func hexLen(n int) string {
	return strings.TrimLeft(hex.EncodeToString([]byte{byte(n >> 8), byte(n)}), "0")
}

// cdxj reads an index: URL -> its line.
func cdxj(t *testing.T, text []byte) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	for sc := bufio.NewScanner(bytes.NewReader(text)); sc.Scan(); {
		i := strings.IndexByte(sc.Text(), '{')
		if i < 0 {
			continue
		}
		var f map[string]string
		if err := json.Unmarshal(sc.Bytes()[i:], &f); err != nil {
			t.Fatal(err)
		}
		out[f["url"]] = f
	}
	return out
}

// cdxj-indexer makes an index whose lines lead to the records.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir, Prefix: "crawl"})
	for i := range 20 {
		put(t, s, sinktest.Record(i))
	}
	shut(t, s)
	paths := files(t, dir)
	out, err := exec.Command(sinktest.Python(t), append([]string{"-m", "cdxj_indexer.main"}, paths...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	index := cdxj(t, out)
	if len(index) != 20 {
		t.Fatalf("%d URLs in %s", len(index), out)
	}
	for i := range 20 {
		if f := index[sinktest.Record(i).URL]; f["status"] != "200" || f["mime"] != "text/html" || f["filename"] != filepath.Base(paths[0]) {
			t.Errorf("%v", f)
		}
	}
}
