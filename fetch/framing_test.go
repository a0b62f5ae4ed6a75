package fetch

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"
)

// lenientAnswers are answers that are read though they are not written as they should
// be: each kind, with what the counter calls it.
var lenientAnswers = []struct{ name, answer, body, what string }{
	{"LF alone", "HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 5\n\nhello", "hello", "line_end"},
	{"one LF", "HTTP/1.1 200 OK\r\nContent-Type: text/html\nContent-Length: 5\r\n\r\nhello", "hello", "line_end"},
	{"LF at the end", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\nhello", "hello", "line_end"},
	{"LF in the body's place", "HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 9\n\na\r\n\r\nbody", "a\r\n\r\nbody", "line_end"},
	{"two CR", "HTTP/1.1 200 OK\r\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\r\nhello", "hello", "line_end"},
	{"LF interim", "HTTP/1.1 103 Early\nLink: </x>\n\nHTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 5\n\nhello", "hello", "line_end"},
	{"LF in an interim answer", "HTTP/1.1 103 Early\r\nLink: </x>\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello", "hello", "line_end"},
	{"LF in an interim answer before a large header", "HTTP/1.1 103 Early\nLink: </x>\n\nHTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-A: " +
		strings.Repeat("x", 9000) + "\r\nContent-Length: 5\r\n\r\nhello", "hello", "line_end"},
	{"CR in the reason", "HTTP/1.1 200 OK\rContent-Length: 3\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello", "hello", "value"},
	{"control byte in a length", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\x01\r\nContent-Length: 5\r\n\r\nhello", "hello", "length"},
	{"no colon", "HTTP/1.1 200 OK\r\nSome words\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello", "hello", "line"},
	{"no name", "HTTP/1.1 200 OK\r\n: x\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello", "hello", "line"},
	{"odd name", "HTTP/1.1 200 OK\r\nN\xe9 m: x\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello", "hello", "line"},
	{"name with a blank", "HTTP/1.1 200 OK\r\nContent Length: 3\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello", "hello", "line"},
	{"blank before the colon", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length : 5\r\n\r\nhello", "hello", "name"},
	{"begins with a blank", "HTTP/1.1 200 OK\r\n X-A: b\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello", "hello", "line"},
	{"folded length", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length:\r\n 5\r\n\r\nhello", "hello", "line"},
	{"control", "HTTP/1.1 200 OK\r\nX-A: a\x01b\x7f\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello", "hello", "value"},
	{"CR", "HTTP/1.1 200 OK\r\nX-A: a\rContent-Length: 2\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello", "hello", "value"},
	{"status", "HTTP/1.1 200OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello", "hello", "status"},
	{"two lengths", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "hello", "length"},
	{"listed length", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5, 05 ,,5\r\n\r\nhello", "hello", "length"},
	{"chunked and length", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", "length"},
	{"chunked and no length", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", "length"},
	{"identity", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", "hello", "coding"},
	{"none", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: none\r\nContent-Length: 5\r\n\r\nhello", "hello", "coding"},
	{"empty coding", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding:\r\nContent-Length: 5\r\n\r\nhello", "hello", "coding"},
	{"chunked twice", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", "coding"},
	{"chunked listed", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: identity, chunked, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", "coding"},
	{"chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", "coding"},
	{"LF in chunk lines", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n3\nhel\n2;x\nlo\n0\n\n", "hello", "chunk"},
	{"one LF in chunk lines", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\n", "hello", "chunk"},
	{"junk behind a size", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5z\r\nhello\r\n0\r\n\r\n", "hello", "chunk"},
	{"trailer without colon", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nwords\r\n\r\n", "hello", "chunk"},
}

// trapped answers the first request on each of its connections with one answer,
// and behind it another that nobody asked for.
func trapped(tb testing.TB, answer string) *rawServer {
	const evil = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nevil"
	return serveRaw(tb, func(s *rawServer, nr int, nc net.Conn) {
		br := bufio.NewReader(nc)
		for i := 0; ; i++ {
			if _, ok := s.request(br); !ok {
				return
			}
			if i > 0 {
				io.WriteString(nc, evil)
				continue
			}
			io.WriteString(nc, answer)
		}
	})
}

// TestLenient: each kind of oddity is read, counted, and the last on its
// connection, directly and through a proxy: what the server says next there is
// no answer to a later request.
func TestLenient(t *testing.T) {
	for _, tc := range lenientAnswers {
		for _, proxied := range []bool{false, true} {
			s := trapped(t, tc.answer)
			set := metrics.NewSet()
			c := newClient(t, func(cfg *Config) {
				cfg.Metrics = set
				if proxied {
					cfg.Proxies = []string{s.url}
				}
			})
			url := s.url
			if proxied {
				url = "http://page.example/"
			}
			for i := range 3 {
				resp, h, err := get(c, url)
				if err != nil || string(h.body) != tc.body || resp.Truncated || resp.Type != "text/html" {
					t.Errorf("%s, %d, proxy %v: %v, %q %+v", tc.name, i, proxied, err, h.body, resp)
				}
			}
			if s.connections() != 3 || c.Stats().Idle != 0 || c.Stats().StaleRetries != 0 {
				t.Errorf("%s, proxy %v: %d connections, %+v", tc.name, proxied, s.connections(), c.Stats())
			}
			if n := set.GetOrCreateCounter(fmt.Sprintf(`seine_fetch_lenient_total{what=%q}`, tc.what)).Get(); n != 3 {
				t.Errorf("%s: counted %d times as %s", tc.name, n, tc.what)
			}
		}
	}
}

// TestLenientLater: the same on a connection that was kept, where what follows
// comes together with the odd answer or when the next request has gone out.
func TestLenientLater(t *testing.T) {
	const evil = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nevil"
	for _, tc := range lenientAnswers {
		for _, behind := range []string{"", evil} {
			s := serveRaw(t, func(s *rawServer, nr int, nc net.Conn) {
				br := bufio.NewReader(nc)
				for i := 0; ; i++ {
					if _, ok := s.request(br); !ok {
						return
					}
					io.WriteString(nc, [...]string{okAnswer, okAnswer, tc.answer + behind, evil, evil}[min(i, 4)])
				}
			})
			c := newClient(t, nil)
			for i := range 7 {
				want := "hello"
				if i%3 == 2 {
					want = tc.body
				}
				if _, h, err := get(c, s.url); err != nil || string(h.body) != want {
					t.Errorf("%s, request %d: %v %q", tc.name, i, err, h.body)
				}
			}
			if st := c.Stats(); s.connections() != 3 || st.Reused != 4 {
				t.Errorf("%s: %d connections, %+v", tc.name, s.connections(), st)
			}
		}
	}
}

// TestOddTunnel: a proxy's answer to CONNECT is read as any other, and nothing
// behind it is taken for the server's.
func TestOddTunnel(t *testing.T) {
	secure := serveTLS(t, tlsServer(selfSigned("127.0.0.1")), nil)
	for answer, ok := range map[string]bool{
		"HTTP/1.0 200 Connected\n\n": true,
		"HTTP/1.1 200 OK\r\nwords\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n": true,
		"HTTP/1.1 103 Early\n\nHTTP/1.1 200 OK\n\n":                                  true,
		"HTTP/1.1 200 OK\n\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil":        false,
		"HTTP/1.1 200 O\x00K\r\n\r\n":                                                false,
		"SSH-2.0-x\r\n":                                                              false,
	} {
		p := &fakeProxy{to: strings.TrimPrefix(secure.url, "https://")}
		p.rawServer = serveRaw(t, func(s *rawServer, _ int, nc net.Conn) {
			br := bufio.NewReader(nc)
			if _, asked := s.request(br); asked {
				io.WriteString(nc, answer)
				p.bridge(nc, br)
			}
		})
		c := newClient(t, func(cfg *Config) { cfg.InsecureSkipVerify, cfg.Proxies = true, []string{p.url} })
		_, h, err := get(c, "https://page.example/")
		if ok && (err != nil || string(h.body) != "hello") || !ok && class(err) != ClassProxy {
			t.Errorf("%q: %v %q", answer, err, h.body)
		}
	}
}

// TestLenientSkipped: a body that the caller does not want leaves no connection
// behind either.
func TestLenientSkipped(t *testing.T) {
	for _, tc := range lenientAnswers {
		s := trapped(t, tc.answer)
		c := newClient(t, nil)
		var resp Response
		if err := c.Do(t.Context(), &Request{URL: s.url}, &resp, &collector{refuse: true}); err != nil || c.Stats().Idle != 0 {
			t.Errorf("%s: %v, %d connections kept", tc.name, err, c.Stats().Idle)
		}
	}
}

// TestKept: what is odd to look at but leaves no doubt keeps its connection.
func TestKept(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	for _, answer := range []string{
		head + "X-A: b\r\n c\r\n\td\r\nContent-Length: 5\r\n\r\nhello",
		head + "Trailer: Content-Length\r\nContent-Length: 5\r\n\r\nhello",
		head + "X-A:\r\nContent-Length:5\r\n\r\nhello",
		head + "X-A: caf\xe9\tx\r\nContent-Length:   005  \r\n\r\nhello",
		"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
		"\r\n" + head + "content-length: 5\r\n\r\nhello",
		head + "Transfer-Encoding: CHUNKED\r\n\r\n3;a=\"b\"\r\nhel\r\n002\r\nlo\r\n000;x\r\nContent-Length: 1\r\nTransfer-Encoding: x\r\nLocation: /y\r\n\r\n",
		head + "Content-Type: text/html\r\nContent-Length: 5\r\n\r\nhello",
	} {
		s := answers(t, answer, false)
		c := newClient(t, nil)
		for range 3 {
			resp, h, err := get(c, s.url)
			if err != nil || string(h.body) != "hello" || resp.Location != "" {
				t.Errorf("%q: %v %q", answer, err, h.body)
			}
		}
		if s.connections() != 1 {
			t.Errorf("%q: %d connections", answer, s.connections())
		}
	}
}

// TestRefused: what leaves two readings is refused, for good, and says why.
func TestRefused(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
	for _, tc := range []struct{ answer, says string }{
		{head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "two different Content-Length"},
		{head + "Content-Length: 5, 6\r\n\r\nhello!", "two different Content-Length"},
		{"HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: \nContent-Length: 6\n\nhello!", "two different Content-Length"},
		{head + "X-A: \x00\r\nContent-Length: 5\r\n\r\nhello", "NUL"},
		{head + "X\x00: a\r\nContent-Length: 5\r\n\r\nhello", "NUL"},
		{"HTTP/1.1 200 O\x00K\r\nContent-Length: 5\r\n\r\nhello", "NUL"},
		{head + "Transfer-Encoding: chunked\r\n\r\n;\r\nhello\r\n0\r\n\r\n", "chunk size"},
		{head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0x1f\r\n\r\n", "chunk size"},
		{head + "Transfer-Encoding: chunked\r\n\r\n8000000000000000\r\nhello\r\n0\r\n\r\n", "chunk size"},
		{head + "Transfer-Encoding: chunked, gzip\r\n\r\nhello", "Transfer-Encoding"},
		{head + "Transfer-Encoding: foo, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "Transfer-Encoding"},
		{head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n" + strings.Repeat("X-A: b\r\n", 20_000), "trailers"},
		{"HTTP/1.1 20 OK\r\n\r\nhello", "status"},
	} {
		s := answers(t, tc.answer, true)
		c := newClient(t, nil)
		_, _, err := get(c, s.url)
		if class(err) != ClassProtocol || err.(*Error).Retry || !strings.Contains(err.Error(), tc.says) || c.Stats().Idle != 0 {
			t.Errorf("%q: %v", tc.answer[:min(len(tc.answer), 200)], err)
		}
	}
}

// TestTransferCoded: a coding of the transfer lies around that of the content.
func TestTransferCoded(t *testing.T) {
	plain := page(50_000)
	for _, tc := range []struct{ content, transfer string }{{"", "gzip, chunked"}, {"br", "gzip, chunked"}, {"", "deflate"}, {"", "gzip, deflate, chunked"}} {
		body, fields := plain, "Transfer-Encoding: "+tc.transfer+"\r\n"
		if tc.content != "" {
			body, fields = encode(t, tc.content, body), fields+"Content-Encoding: "+tc.content+"\r\n"
		}
		coded, chunked := strings.CutSuffix(tc.transfer, ", chunked")
		for name := range strings.SplitSeq(coded, ", ") {
			body = encode(t, name, body)
		}
		if chunked {
			body = fmt.Appendf(nil, "%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		}
		s := answers(t, "HTTP/1.1 200 OK\r\n"+fields+"\r\n"+string(body), true)
		resp, h, err := get(newClient(t, nil), s.url)
		if err != nil || !bytes.Equal(h.body, plain) || resp.Truncated {
			t.Errorf("%+v: %v, %d bytes", tc, err, len(h.body))
		}
	}
}

// TestHeadPieces: where a head is cut on its way makes no difference.
func TestHeadPieces(t *testing.T) {
	for _, tc := range lenientAnswers {
		var got []string
		for step := 1; step < 4; step++ {
			in := bufio.NewReaderSize(&pieces{tc.answer, step}, 4*readBuffer)
			h := header{}
			h.clear()
			fr, err := readHead(in, &h, 4*readBuffer)
			if err != nil {
				t.Fatal(tc.name, err)
			}
			body, err := io.ReadAll(&framed{in: in, kind: fr.kind, left: fr.left, room: 1000})
			if err != nil || string(body) != tc.body {
				t.Errorf("%s in steps of %d: %v %q", tc.name, step, err, body)
			}
			text := fmt.Sprintf("%+v", fr)
			h.Each(func(name, value string) { text += fmt.Sprintf("\n%q: %q", name, value) })
			got = append(got, text)
		}
		if got[0] != got[1] || got[1] != got[2] {
			t.Errorf("%s: %q", tc.name, got)
		}
	}
}

// pieces gives a text step bytes at a time.
type pieces struct {
	text string
	step int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b, p.text[:min(p.step, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}

// TestWebCases reads the whole answers of the shared cases that are pages.
func TestWebCases(t *testing.T) {
	dir := testdata(t, "webcases")
	for _, name := range []string{"N27", "N34", "N35.a", "N36.a", "N37.a", "X06.a", "X09.a", "X09.c", "X09.e", "page", "next"} {
		raw, err := os.ReadFile(filepath.Join(dir, name+".raw"))
		if err != nil {
			t.Fatal(err)
		}
		s := answers(t, string(raw), true)
		c := newClient(t, nil)
		resp, h, err := get(c, s.url)
		if err != nil || !strings.HasPrefix(string(h.body), "<title>") || resp.Truncated || !c.Accepts(resp) || !strings.HasPrefix(resp.Type, "text/html") {
			t.Errorf("%s: %v %q %+v", name, err, h.body, resp)
		}
	}
}

// BenchmarkHead compares reading a usual head and an odd one.
func BenchmarkHead(b *testing.B) {
	usual := "HTTP/1.1 200 OK\r\nServer: x\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 0\r\n" +
		"Last-Modified: Mon, 02 Jan 2006 15:04:05 GMT\r\nEtag: \"0123456789abcdef\"\r\nCache-Control: max-age=600\r\n\r\n"
	for name, text := range map[string]string{"usual": usual, "odd": strings.ReplaceAll(usual, "\r", "")} {
		b.Run(name, func(b *testing.B) {
			src := strings.NewReader(text)
			in := bufio.NewReaderSize(src, 2*readBuffer)
			h := header{}
			b.ReportAllocs()
			for b.Loop() {
				src.Reset(text)
				in.Reset(src)
				h.clear()
				if _, err := readHead(in, &h, 2*readBuffer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestWidens: a body that fills its buffer is read on in larger pieces, one that
// trickles is not; both come whole, and no byte beyond.
func TestWidens(t *testing.T) {
	whole := strings.Repeat("0123456789abcdef", 20_000)
	chunked := ""
	for rest := whole; rest != ""; rest = rest[min(len(rest), 30_011):] {
		piece := rest[:min(len(rest), 30_011)]
		chunked += fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
	}
	for step, widened := range map[int]bool{1 << 20: true, 1000: false} {
		for _, tc := range []struct {
			sent string
			f    framed
		}{
			{whole + "more", framed{kind: byLength, left: int64(len(whole))}},
			{chunked + "0\r\n\r\n" + "more", framed{kind: inChunks, room: 10}},
			{whole, framed{kind: untilClose}},
		} {
			src, wide := &pieces{tc.sent, step}, false
			f := tc.f
			f.in = bufio.NewReaderSize(src, readBuffer)
			f.widen = func() *bufio.Reader {
				wide = true
				return bufio.NewReaderSize(src, wideBuffer)
			}
			got, err := io.ReadAll(&f)
			if err != nil || string(got) != whole || wide != widened {
				t.Errorf("kind %d in steps of %d: %v, %d bytes of %d, widened: %v", f.kind, step, err, len(got), len(whole), wide)
			}
			if f.kind != untilClose {
				if rest, err := io.ReadAll(io.MultiReader(f.in, src)); err != nil || string(rest) != "more" {
					t.Errorf("kind %d in steps of %d: behind the body stands %d bytes", f.kind, step, len(rest))
				}
			}
		}
	}
}
