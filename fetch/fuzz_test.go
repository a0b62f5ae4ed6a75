package fetch

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// FuzzTarget: whatever the URL, what would go out is one request line and the
// headers meant, and the parts parse back.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"http://a/", "https://u:p@a.example:8443/x?y#z", "http://[::1]:80/", "http://a\r\n/", "http://a/ \r\nX: y", "http://a@b@c/é"} {
		f.Add(s)
	}
	c, err := New(Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { c.Close() })
	f.Fuzz(func(t *testing.T, u string) {
		var tg target
		if tg.parse(u) != nil {
			return
		}
		out, err := c.appendRequest(nil, &tg, new(Request), nil)
		if err != nil {
			t.Fatal(err)
		}
		x := exchange{c: c, out: out, head: len(out)}
		x.seal()
		out = x.out
		lines := strings.Split(string(out), "\r\n")
		want := 7
		if tg.user != "" {
			want++
		}
		if len(lines) != want || strings.Count(string(out), "\n") != want-1 || lines[len(lines)-1] != "" {
			t.Fatalf("%q", out)
		}
		if parts := strings.Split(lines[0], " "); len(parts) != 3 || parts[0] != "GET" || parts[1][0] != '/' || parts[2] != "HTTP/1.1" {
			t.Fatalf("%q", lines[0])
		}
		for i := range out {
			if out[i] >= 0x7f {
				t.Fatalf("%q", out)
			}
		}
	})
}

// FuzzHead: what lies behind a head does not change how it is read, and a head
// that is whole is read without waiting for more.
func FuzzHead(f *testing.F) {
	for _, odd := range lenientAnswers {
		f.Add([]byte(odd.answer))
	}
	f.Add([]byte(okAnswer))
	f.Add([]byte("HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\n\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		read := func(b []byte) (framing, string, int, error) {
			src := bytes.NewReader(b)
			in := bufio.NewReaderSize(src, readBuffer)
			h := header{}
			h.clear()
			fr, err := readHead(in, &h, readBuffer)
			if err != nil {
				return fr, "", 0, err
			}
			text := fmt.Sprint(h.status)
			h.Each(func(name, value string) { text += fmt.Sprintf("\n%q: %q", name, value) })
			return fr, text, len(b) - src.Len() - in.Buffered(), nil
		}
		fr, text, end, err := read(b)
		if err != nil {
			return
		}
		alone, textAlone, endAlone, err := read(b[:end])
		if err != nil || alone != fr || textAlone != text || endAlone != end {
			t.Fatalf("%q: %+v %q %d, alone %+v %q %d %v", b, fr, text, end, alone, textAlone, endAlone, err)
		}
	})
}

// FuzzAnswer: no bytes of a server make Do hang, panic or overstep its limits.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(okAnswer))
	f.Add([]byte(answer("", []byte("hello"), true)))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Encoding: gzip, br\r\n\r\n\x1f\x8b\x08"))
	f.Add([]byte("HTTP/1.1 301 Moved\r\nlocation: /x\r\nContent-Length: 0\r\n\r\n"))
	for _, odd := range lenientAnswers {
		f.Add([]byte(odd.answer))
	}
	for _, enc := range []string{"gzip", "br", "zstd", "deflate"} {
		f.Add([]byte(answer(enc, encode(f, enc, page(3000)), false)))
	}
	c, err := New(Config{AllowNet: loopback, MaxBody: 2000, FetchTimeout: 5 * time.Second})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { c.Close() })
	f.Fuzz(func(t *testing.T, say []byte) {
		s := serveRaw(t, func(s *rawServer, _ int, nc net.Conn) {
			if _, ok := s.request(bufio.NewReader(nc)); ok {
				nc.Write(say)
				nc.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, nc)
			}
		})
		resp, h, err := get(c, s.url)
		if k := class(err); k == "?" || k == ClassTimeout || k == ClassIdle || k == ClassFirstByte {
			t.Fatal(err)
		}
		if len(h.body) > 2000 || resp.Bytes != int64(len(h.body)) || h.began > 1 || resp.Truncated != (resp.Cut != "") {
			t.Fatalf("%+v, %d bytes", resp, len(h.body))
		}
		if len(s.requests()) != 1 {
			t.Fatal("not one request")
		}
	})
}
