package fetch

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// curlDiffers are the oddities that curl reads and we do not, or otherwise, and
// why. A generated answer with none of them must be read as curl reads it.
var curlDiffers = map[string]string{
	"two":                 "two different lengths are refused (RFC 9112, section 6.3); curl takes the last",
	"two listed":          "two different lengths are refused; curl takes the first",
	"hex":                 "no number is no length, as in browsers; curl takes the digits before the x",
	"blank inside":        "no number is no length, as in browsers; curl takes the digits before the blank",
	"CR first":            "a CR alone ends no line (RFC 9112, section 2.2); curl ends the header there",
	"last junk":           "0z is no size, for 0x1f would end a page in silence",
	"chunked folded":      "a folded line is one line (RFC 9112, section 5.2); curl takes the coding for empty",
	"chunked blank":       "a blank before the colon is not part of the name, as in browsers; curl knows no such field",
	"folded first":        "a line that begins with a blank belongs to the one before (RFC 9112, section 5.2), be that a coding",
	"old+chunk junk":      "HTTP/1.0 knows no chunks: only a body that begins like one in chunks is read as one",
	"old+chunk ext blank": "see old+chunk junk",
	"old+chunk blank":     "see old+chunk junk",
	"old+chunk words":     "see old+chunk junk",
	"smaller+identity":    "a coding that is none leaves the length in force, as in browsers; curl reads to the end of the connection",
	"smaller+TE none":     "see smaller+identity",
	"smaller+TE empty":    "see smaller+identity",
	"smaller+TE twice":    "see smaller+identity",
	"larger+identity":     "a body shorter than its length is cut, as in browsers; curl reads to the end of the connection",
	"larger+TE none":      "see larger+identity",
	"larger+TE empty":     "see larger+identity",
	"larger+TE twice":     "see larger+identity",
}

// odd is one answer made of oddities.
type odd struct {
	text []byte
	tags []string
}

func (o *odd) has(tags map[string]string) bool {
	return len(o.listed(tags)) > 0
}

// listed are the entries of tags that o has.
func (o *odd) listed(tags map[string]string) (all []string) {
	for entry := range tags {
		has := true
		for t := range strings.SplitSeq(entry, "+") {
			has = has && slices.Contains(o.tags, t)
		}
		if has {
			all = append(all, entry)
		}
	}
	return all
}

// maker makes answers at random, most of their parts as they should be.
type maker struct {
	*rand.Rand
	tags []string
}

// choice is one way to write a part; those with a tag are odd.
type choice struct{ tag, text string }

// pick takes a plain choice in three of four cases, else any.
func (m *maker) pick(plain string, odd ...choice) string {
	if m.IntN(4) > 0 {
		return plain
	}
	c := odd[m.IntN(len(odd))]
	if c.tag != "" {
		m.tags = append(m.tags, c.tag)
	}
	return c.text
}

const oddBody = "<title>Kept</title><a href=\"/next\">n</a>"

func (m *maker) status() string {
	line := m.pick("HTTP/1.1 200 OK",
		choice{"old", "HTTP/1.0 200 OK"}, choice{"", "HTTP/1.1 200"}, choice{"", "HTTP/1.1 200 "},
		choice{"status blanks", "HTTP/1.1  200 OK"}, choice{"status glued", "HTTP/1.1 200OK"}, choice{"status tab", "HTTP/1.1 200\tOK"},
		choice{"status case", "http/1.1 200 OK"}, choice{"status 1.2", "HTTP/1.2 200 OK"}, choice{"status 2", "HTTP/2 200 OK"},
		choice{"status 2.0", "HTTP/2.0 200 OK"}, choice{"status long", "HTTP/1.1 2000 OK"}, choice{"status control", "HTTP/1.1 200 O\x01K"},
		choice{"status latin", "HTTP/1.1 200 \xe9"}, choice{"status tab before", "HTTP/1.1\t200 OK"}, choice{"status NUL", "HTTP/1.1 200 O\x00K"})
	return m.pick("", choice{"interim", "HTTP/1.1 100 Continue\r\n\r\n"}, choice{"interim fields", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"},
		choice{"interim LF", "HTTP/1.1 100 Continue\n\n"}) + line
}

func (m *maker) field() string {
	return m.pick("Server: x",
		choice{"no colon", "Some words here"}, choice{"no name", ": x"}, choice{"name blanks", "Some Name: x"}, choice{"name blank", "Name : x"},
		choice{"name odd", "N@m\xe9: x"}, choice{"control", "X-A: a\x01b"}, choice{"bare CR", "X-A: a\rb"}, choice{"tab", "X-A: a\tb"},
		choice{"delete", "X-A: a\x7fb"}, choice{"folded", "X-A: a\r\n b"}, choice{"folded LF", "X-A: a\n\tb"}, choice{"latin", "X-A: \xe9"},
		choice{"NUL", "X-A: \x00"}, choice{"empty value", "X-A:"}, choice{"long", "X-A: " + strings.Repeat("x", 9000)},
		choice{"CR first", "\rX-A: b"}, choice{"close", "Connection: close"}, choice{"keep", "Connection: keep-alive"}, choice{"trailer", "Trailer: Content-Length"},
		choice{"upgrade", "Upgrade: h2c"}, choice{"type twice", "Content-Type: text/html"}, choice{"folded first", " x: y"}, choice{"slash", "/x: y"})
}

// sized are the fields and the body of an answer with a length.
func (m *maker) sized() (string, string) {
	n := len(oddBody)
	length := m.pick(fmt.Sprintf("Content-Length: %d", n),
		choice{"none", "X: y"}, choice{"twice", fmt.Sprintf("Content-Length: %d\r\ncontent-length: %d", n, n)}, choice{"list", fmt.Sprintf("Content-Length: %d, %d", n, n)},
		choice{"two", fmt.Sprintf("Content-Length: %d\r\nContent-Length: %d", n, n-1)}, choice{"two listed", fmt.Sprintf("Content-Length: %d,%d", n, n-1)},
		choice{"empty", "Content-Length: "}, choice{"bare", "Content-Length:"}, choice{"plus", fmt.Sprintf("Content-Length: +%d", n)}, choice{"minus", fmt.Sprintf("Content-Length: -%d", n)},
		choice{"junk", fmt.Sprintf("Content-Length: %dx", n)}, choice{"word", "Content-Length: many"}, choice{"zeros", fmt.Sprintf("Content-Length: 000%d", n)},
		choice{"huge", "Content-Length: 99999999999999999999"}, choice{"blank before colon", fmt.Sprintf("Content-Length : %d", n)},
		choice{"empty and real", fmt.Sprintf("Content-Length: \r\nContent-Length: %d", n)}, choice{"real and empty", fmt.Sprintf("Content-Length: %d,", n)},
		choice{"larger", fmt.Sprintf("Content-Length: %d", n+5)}, choice{"smaller", fmt.Sprintf("Content-Length: %d", n-5)}, choice{"folded length", fmt.Sprintf("Content-Length:\r\n %d", n)},
		choice{"hex", "Content-Length: 0x28"}, choice{"blank inside", "Content-Length: 4 0"}, choice{"semicolon", fmt.Sprintf("Content-Length: %d;", n)})
	coding := m.pick("", choice{"identity", "Transfer-Encoding: identity\r\n"}, choice{"TE none", "Transfer-Encoding: none\r\n"}, choice{"TE empty", "Transfer-Encoding: \r\n"},
		choice{"TE unknown", "Transfer-Encoding: foo\r\n"}, choice{"TE twice", "Transfer-Encoding: identity\r\nTransfer-Encoding: identity\r\n"},
		choice{"TE gzip lie", "Transfer-Encoding: gzip\r\n"})
	return coding + length, oddBody
}

// chunked are the fields and the body of an answer in chunks.
func (m *maker) chunked(tb testing.TB) (string, string) {
	body := oddBody
	coding := m.pick("Transfer-Encoding: chunked",
		choice{"", "transfer-encoding:Chunked"}, choice{"chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"}, choice{"chunked listed", "Transfer-Encoding: chunked, chunked"},
		choice{"identity chunked", "Transfer-Encoding: identity, chunked"}, choice{"chunked identity", "Transfer-Encoding: chunked, identity"}, choice{"chunked comma", "Transfer-Encoding: chunked,"},
		choice{"chunked length", "Content-Length: 7\r\nTransfer-Encoding: chunked"}, choice{"chunked lengths", "Content-Length: 7\r\nTransfer-Encoding: chunked\r\nContent-Length: 8"},
		choice{"chunked bad length", "Transfer-Encoding: chunked\r\nContent-Length: x"}, choice{"chunked param", "Transfer-Encoding: chunked;q=1"}, choice{"chunked quoted", `Transfer-Encoding: "chunked"`},
		choice{"chunked blank", "Transfer-Encoding : chunked"}, choice{"chunked folded", "Transfer-Encoding:\r\n chunked"}, choice{"gzip chunked", "Transfer-Encoding: gzip, chunked"},
		choice{"unknown chunked", "Transfer-Encoding: foo, chunked"}, choice{"xchunked", "Transfer-Encoding: xchunked"}, choice{"chunked control", "Transfer-Encoding: \x0bchunked"})
	if strings.HasSuffix(coding, "gzip, chunked") {
		body = string(encode(tb, "gzip", []byte(body)))
	}
	var b strings.Builder
	for at := 0; at < len(body); {
		n := min(1+m.IntN(30), len(body)-at)
		size := m.pick(fmt.Sprintf("%x", n), choice{"", fmt.Sprintf("%X", n)}, choice{"", fmt.Sprintf("%06x", n)}, choice{"", fmt.Sprintf("%x;a=b", n)}, choice{"", fmt.Sprintf(`%x;a="b"`, n)},
			choice{"chunk blank", fmt.Sprintf("%x ", n)}, choice{"chunk ext blank", fmt.Sprintf("%x ; a", n)}, choice{"chunk junk", fmt.Sprintf("%xz", n)}, choice{"chunk words", fmt.Sprintf("%x z", n)},
			choice{"chunk 0x", fmt.Sprintf("0x%x", n)}, choice{"chunk blank before", fmt.Sprintf(" %x", n)}, choice{"chunk minus", fmt.Sprintf("-%x", n)}, choice{"chunk none", ""}, choice{"chunk zeros", fmt.Sprintf("%020x", n)})
		b.WriteString(size + m.pick("\r\n", choice{"chunk LF", "\n"}, choice{"chunk CRCRLF", "\r\r\n"}))
		b.WriteString(body[at:at+n] + m.pick("\r\n", choice{"data LF", "\n"}, choice{"data CRCRLF", "\r\r\n"}, choice{"data none", ""}))
		at += n
	}
	b.WriteString(m.pick("0", choice{"", "000"}, choice{"", "0;x"}, choice{"last blank", "0 "}, choice{"last junk", "0z"}) + m.pick("\r\n", choice{"last LF", "\n"}))
	b.WriteString(m.pick("", choice{"trailers", "X-A: b\r\n"}, choice{"trailer length", "Content-Length: 5\r\n"}, choice{"trailer coding", "Transfer-Encoding: x\r\n"},
		choice{"trailer words", "no colon\r\n"}, choice{"trailer LF", "X-A: b\n"}, choice{"trailer type", "Content-Type: a/b\r\nLocation: /x\r\n"}))
	b.WriteString(m.pick("\r\n", choice{"end LF", "\n"}, choice{"end none", ""}, choice{"end more", "\r\nHTTP/1.1 200 OK\r\n\r\n"}))
	return coding, b.String()
}

func (m *maker) answer(tb testing.TB) odd {
	m.tags = nil
	framing, body := m.sized()
	if m.IntN(2) == 0 {
		m.tags = nil
		framing, body = m.chunked(tb)
	}
	lines := []string{m.status(), "Content-Type: text/html"}
	for range m.IntN(3) {
		lines = append(lines, m.field())
	}
	at := 1 + m.IntN(len(lines))
	lines = append(lines[:at], append([]string{framing}, lines[at:]...)...)
	head := strings.Join(lines, "\r\n") + "\r\n\r\n"
	switch m.pick("", choice{"LF all", "all"}, choice{"LF one", "one"}, choice{"LF end", "end"}, choice{"CRCRLF", "crcr"}, choice{"CR CRLF end", "crend"}) {
	case "all":
		head = strings.ReplaceAll(head, "\r\n", "\n")
	case "one":
		for n := m.IntN(strings.Count(head, "\r\n")); ; n-- {
			i := strings.Index(head, "\r\n")
			if n == 0 {
				head = strings.ReplaceAll(head[:i]+"\n"+head[i+2:], "\v\v", "\r\n")
				break
			}
			head = head[:i] + "\v\v" + head[i+2:]
		}
	case "end":
		head = head[:len(head)-2] + "\n"
	case "crcr":
		head = strings.Replace(head, "\r\n", "\r\r\n", 1)
	case "crend":
		head = head[:len(head)-2] + "\r\r\n"
	}
	return odd{[]byte(head + body), append([]string(nil), m.tags...)}
}

// TestCurl holds that what curl reads with status 200 is read here, and as curl
// reads it.
func TestCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no curl; scripts/setup installs it")
		}
		t.Skip("SKIPPED: no curl; scripts/setup installs it")
	}
	const answers = 6000
	m := &maker{Rand: rand.New(rand.NewPCG(1, 2))}
	all := make([]odd, answers)
	for i := range all {
		all[i] = m.answer(t)
	}
	s := serveRaw(t, func(s *rawServer, _ int, nc net.Conn) {
		if req, ok := s.request(bufio.NewReader(nc)); ok {
			var i int
			if _, err := fmt.Sscanf(req, "GET /%d ", &i); err == nil && i < len(all) {
				nc.Write(all[i].text)
				nc.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, nc)
			}
		}
	})
	dir := t.TempDir()
	c := newClient(t, nil)
	read, differ := 0, map[string]int{}
	for next := 0; next < answers; {
		reported := askCurl(t, curl, s.url, dir, next, answers)
		if len(reported) == 0 {
			t.Fatalf("curl said nothing of answer %d", next)
		}
		for _, r := range reported {
			next++
			if r.exit != 0 || r.status != 200 {
				continue
			}
			read++
			want, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(r.nr)))
			if err != nil && !os.IsNotExist(err) { // of an empty body there is none
				t.Fatal(err)
			}
			o := &all[r.nr]
			resp, h, err := get(c, fmt.Sprintf("%s/%d", s.url, r.nr))
			switch same := err == nil && resp.Status == 200 && bytes.Equal(h.body, want); {
			case same:
			case o.has(curlDiffers):
				for _, entry := range o.listed(curlDiffers) {
					differ[entry]++
				}
			default:
				t.Errorf("%v: %v, status %d, %q, curl %q:\n%q", o.tags, err, resp.Status, h.body, want, o.text)
			}
		}
	}
	if read < answers/4 {
		t.Errorf("curl read only %d of %d answers", read, answers)
	}
	t.Logf("%d answers, %d read by curl, read otherwise: %v", answers, read, differ)
}

type curled struct{ nr, exit, status int }

// askCurl fetches the answers from..to-1 into files and reports what became of
// them; some faults make curl stop there, so the report may be short.
func askCurl(t *testing.T, curl, url, dir string, from, to int) (all []curled) {
	var urls strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&urls, "url = \"%s/%d\"\noutput = \"%s/%d\"\n", url, i, dir, i)
	}
	cmd := exec.Command(curl, "-q", "-s", "-m", "20", "--noproxy", "*", "-K", "-", "-w", "%{url_effective} %{exitcode} %{http_code}\n")
	cmd.Stdin = strings.NewReader(urls.String())
	table, _ := cmd.Output() // its code is that of the last transfer
	for line := range strings.Lines(string(table)) {
		var r curled
		if _, err := fmt.Sscanf(strings.TrimPrefix(line, url), "/%d %d %d", &r.nr, &r.exit, &r.status); err != nil || r.nr != from+len(all) {
			t.Fatalf("curl reported %q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}
