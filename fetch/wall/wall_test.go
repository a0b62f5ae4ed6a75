package wall

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// head is a Header.
type head [][2]string

func (h head) Field(i int) (name, value []byte) {
	if i >= len(h) {
		return nil, nil
	}
	return []byte(h[i][0]), []byte(h[i][1])
}

// answer is a fixture: an answer as it is on the wire, its lines ended by LF.
type answer struct {
	name, vendor string
	status       int
	head         head
	body         []byte
}

// answers reads the fixtures of a kind. The name of a file begins with its vendor.
func answers(t testing.TB, kind string) (list []answer) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", kind, "*.http"))
	if err != nil || len(files) == 0 {
		t.Fatal(kind, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), nil)
		if err != nil {
			t.Fatal(file, err)
		}
		a := answer{name: filepath.Base(file), status: resp.StatusCode}
		a.vendor, _, _ = strings.Cut(a.name, "_")
		for name, values := range resp.Header {
			for _, v := range values {
				a.head = append(a.head, [2]string{name, v})
			}
		}
		if a.body, err = io.ReadAll(resp.Body); err != nil {
			t.Fatal(file, err)
		}
		list = append(list, a)
	}
	return list
}

// The figures that the manual states are those of the fixtures.
func TestFigures(t *testing.T) {
	s, m := Default(), new(Scratch)
	vendors, judged := make(map[string]bool), map[string][4]int{}
	for _, kind := range []string{"certain", "likely", "pages"} {
		for _, a := range answers(t, kind) {
			v := s.Judge(m, a.status, a.head, a.body)
			if kind != "pages" {
				vendors[a.vendor] = true
			}
			if kind != "pages" && v.Sure >= Likely && v.Vendor != a.vendor {
				t.Errorf("%s/%s is of %s", kind, a.name, v.Vendor)
			}
			if want := map[string]Certainty{"certain": Certain, "likely": Likely}[kind]; want != v.Sure && (want != None || v.Sure != Hint) {
				t.Logf("%s/%s is %s", kind, a.name, v.Sure)
			}
			n := judged[kind]
			n[v.Sure]++
			judged[kind] = n
		}
	}
	sum := func(kind string) (n int) {
		for _, c := range judged[kind] {
			n += c
		}
		return n
	}
	certain, walls := judged["certain"][Certain], sum("certain")+sum("likely")
	found := certain + judged["certain"][Likely] + judged["likely"][Certain] + judged["likely"][Likely]
	wrong := judged["pages"][Certain] + judged["pages"][Likely]
	if sure := judged["likely"][Certain] + judged["pages"][Certain]; sure != 0 {
		t.Errorf("%d answers count as certain that are not", sure)
	}
	got := fmt.Sprintf("%d walls of %d vendors and %d pages that look alike: recall %d%% (%d of %d), precision %d%% (%d of %d)",
		walls, len(vendors), sum("pages"), 100*found/walls, found, walls, 100*found/(found+wrong), found, found+wrong)
	text, err := os.ReadFile(filepath.Join("..", "crawl", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), got) {
		t.Errorf("fetch/crawl/README.md does not say: %s", got)
	}
}

// Each rule of the table is met by a fixture of its vendor, with all its signs.
func TestTable(t *testing.T) {
	all := append(append(answers(t, "certain"), answers(t, "likely")...), answers(t, "pages")...)
	for i, r := range table {
		if r.Source == "" {
			t.Errorf("rule %d of %s has no source", i, r.Vendor)
		}
		if r.Sure == Hint {
			continue
		}
		s := new(Set)
		s.addRule(&r)
		s.marks.compile()
		met := false
		for _, a := range all {
			met = met || a.vendor == r.Vendor && s.Judge(new(Scratch), a.status, a.head, a.body).Sure == r.Sure
		}
		if !met {
			t.Errorf("no fixture meets rule %d of %s: %q %q", i, r.Vendor, r.Header, r.Body)
		}
	}
}

func TestJudge(t *testing.T) {
	s, m := Default(), new(Scratch)
	long := strings.Repeat("x", Bytes)
	for _, c := range []struct {
		status int
		head   head
		body   string
		want   Verdict
	}{
		{200, nil, "", Verdict{}},
		{403, head{{"CF-Mitigated", "Challenge"}}, "", Verdict{"cloudflare", Certain}},
		{403, head{{"cf-mitigated", "block"}}, "", Verdict{}},
		{403, head{{"cf-mitigated-not", "challenge"}}, "", Verdict{}},
		{200, head{{"x-amzn-waf-action", "challenge"}}, "", Verdict{"aws-waf", Likely}}, // another status than documented
		{403, head{{"Server", "cloudflare"}}, "", Verdict{"cloudflare", Hint}},
		{200, head{{"Server", "cloudflare"}}, "", Verdict{}},
		{403, head{{"set-cookie", "a=b"}, {"set-cookie", "_pxhd=1"}}, "", Verdict{"human", Hint}}, // one of several
		{429, nil, "<TITLE>Vercel Security CHECKPOINT</TITLE>", Verdict{"vercel", Certain}},
		{429, nil, long[:Bytes-46] + "<title>vercel security checkpoint</title>", Verdict{"vercel", Certain}},
		{429, nil, long[:Bytes-40] + "<title>vercel security checkpoint</title>", Verdict{}}, // it goes on behind what is read
		{200, nil, "<title>client challenge</title>", Verdict{}},                             // the other mark is missing
	} {
		if got := s.Judge(m, c.status, c.head, []byte(c.body)); got != c.want {
			t.Errorf("%d %v %.60s: %v, want %v", c.status, c.head, c.body, got, c.want)
		}
	}
}

// What find sees is what a plain search sees, wherever the marks stand.
func FuzzMarks(f *testing.F) {
	f.Add("x <Title>Just a moment...</title>", "access denied")
	f.Fuzz(func(t *testing.T, text, mark string) {
		s := Default()
		m := &marks{texts: append([]string{}, s.marks.texts...)}
		if mark = lowered(mark); len(mark) >= leastMark && len(mark) <= mostMark {
			m.add(mark)
		}
		m.compile()
		found := make([]bool, m.len())
		some := m.find(found, []byte(text))
		low := lowered(text)
		for i, mark := range m.texts {
			if want := strings.Contains(low, mark); found[i] != want || want && !some {
				t.Errorf("%q in %q: %v", mark, text, found[i])
			}
		}
	})
}

func TestCompile(t *testing.T) {
	own := []Rule{
		{Vendor: "acme", Sure: Certain, Status: []int{200}, Header: []string{"X-Acme: Wall"}, At: "a.yaml:3"},
		{Vendor: "acme", Body: []string{"<title>ACME gate"}},
		{Vendor: "acme", Sure: Hint, Header: []string{"x-gate"}},
		{Vendor: "acme", Body: []string{"<title>Überprüfung"}},
	}
	s, err := Compile(own)
	if err != nil {
		t.Fatal(err)
	}
	m := new(Scratch)
	for _, c := range []struct {
		head head
		body string
		want Verdict
	}{
		{head{{"x-acme", "a wall"}}, "", Verdict{"acme", Certain}},
		{nil, "<title>Acme Gate</title>", Verdict{"acme", Likely}},
		{head{{"X-Gate", ""}}, "", Verdict{"acme", Hint}},
		{nil, "<TITLE>Überprüfung</TITLE>", Verdict{"acme", Likely}},
		{head{{"x-gate", "1"}, {"cf-mitigated", "challenge"}}, "", Verdict{"cloudflare", Certain}},
	} {
		if got := s.Judge(m, 200, c.head, []byte(c.body)); got != c.want {
			t.Errorf("%v %s: %v, want %v", c.head, c.body, got, c.want)
		}
	}
	for _, c := range []struct {
		rule Rule
		want string
	}{
		{Rule{Vendor: "Acme", Header: []string{"x"}}, `b.yaml:7: rule of "Acme": vendor is "Acme", must be up to 32 small letters`},
		{Rule{Header: []string{"x"}}, "vendor is"},
		{Rule{Vendor: "a"}, "there must be a header or a body mark"},
		{Rule{Vendor: "a", Header: []string{": x"}}, "must be NAME: TEXT or NAME"},
		{Rule{Vendor: "a", Body: []string{"short"}}, `body mark "short" must have 8 to 200 bytes`},
		{Rule{Vendor: "a", Header: []string{"x"}, Status: []int{99}}, "status is 99, must be 100 to 999"},
		{Rule{Vendor: "a", Header: make([]string, 9)}, "there are more than 8 signs"},
	} {
		c.rule.At = "b.yaml:7"
		if _, err := Compile([]Rule{c.rule}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.rule, err, c.want)
		}
	}
	many := make([]Rule, mostRules+1)
	for i := range many {
		many[i] = own[2]
	}
	if _, err := Compile(many); err == nil || !strings.Contains(err.Error(), "must be at most 100") {
		t.Error(err)
	}
	var c Certainty
	for _, text := range []string{"", "none", "sure"} {
		if err := c.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	if err := errors.Join(c.UnmarshalText([]byte("certain"))); err != nil || c != Certain {
		t.Error(c, err)
	}
}

// ordinary is what a page looks like that is none.
var ordinary = head{
	{"Date", "Mon, 30 Nov 2026 11:00:00 GMT"}, {"Content-Type", "text/html; charset=utf-8"}, {"Content-Length", "40000"}, {"Connection", "keep-alive"},
	{"Server", "cloudflare"}, {"Cache-Control", "max-age=600"}, {"ETag", `"5f3"`}, {"Last-Modified", "Sun, 29 Nov 2026 11:00:00 GMT"}, {"Vary", "Accept-Encoding"},
	{"CF-RAY", "0-FRA"}, {"Set-Cookie", "session=0123456789abcdef; path=/; HttpOnly"}, {"Strict-Transport-Security", "max-age=31536000"}, {"Content-Encoding", "gzip"}, {"X-Frame-Options", "DENY"},
}

// fields are an ordinary header whose Field allocates nothing.
type fields [][2][]byte

func (h fields) Field(i int) (name, value []byte) {
	if i >= len(h) {
		return nil, nil
	}
	return h[i][0], h[i][1]
}

func ordinaryPage() (Header, []byte) {
	var h fields
	for _, f := range ordinary {
		h = append(h, [2][]byte{[]byte(f[0]), []byte(f[1])})
	}
	start := `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Shoes, boots and sandals | Shop</title>`
	for i := 0; len(start) < Bytes; i++ {
		start += fmt.Sprintf(`<link rel="stylesheet" href="/assets/css/part-%d.css?v=%d" media="screen"><script src="/assets/js/chunk-%d.js" defer></script>`, i, i*7, i)
	}
	return h, []byte(start)
}

func TestNoAllocs(t *testing.T) {
	s, m := Default(), new(Scratch)
	h, body := ordinaryPage()
	if v := s.Judge(m, 200, h, body); v != (Verdict{}) {
		t.Error(v)
	}
	if n := testing.AllocsPerRun(100, func() { s.Judge(m, 200, h, body) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A page that is none costs less than 2 us.
func BenchmarkPage(b *testing.B) {
	s, m := Default(), new(Scratch)
	h, body := ordinaryPage()
	b.ReportAllocs()
	for b.Loop() {
		s.Judge(m, 200, h, body)
	}
}
