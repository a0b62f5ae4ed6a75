package frontier

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"seine/frontier/canon"
)

func must(t *testing.T, method string, header [][2]string, body string) Request {
	t.Helper()
	r, err := NewRequest(method, header, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRequest: the parts come back, a body without a type is a form, a plain GET is
// nothing, and what is made of the parts is the same request.
func TestRequest(t *testing.T) {
	form := [2]string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, c := range []struct {
		method string
		header [][2]string
		body   string
		want   [][2]string
		stored string
	}{
		{"", nil, "", nil, ""},
		{"GET", nil, "", nil, ""},
		{"HEAD", nil, "", nil, `{"method":"HEAD"}`},
		{"get", nil, "", nil, `{"method":"get"}`},
		{"GET", [][2]string{{"X-A", "ä \\ \" &"}, {"x-a", ""}}, "", [][2]string{{"X-A", "ä \\ \" &"}, {"x-a", ""}}, `{"header":[["X-A","ä \\ \" &"],["x-a",""]]}`},
		{"POST", nil, "a=1&b=<2>", [][2]string{form}, `{"method":"POST","header":[["Content-Type","application/x-www-form-urlencoded"]],"body":"a=1&b=<2>"}`},
		{"PUT", [][2]string{{"content-type", "x/y"}}, "\xff\n", [][2]string{{"content-type", "x/y"}}, `{"method":"PUT","header":[["content-type","x/y"]],"body":"/wo=","body_encoding":"base64"}`},
		{"", nil, "q", [][2]string{form}, `{"header":[["Content-Type","application/x-www-form-urlencoded"]],"body":"q"}`},
	} {
		r := must(t, c.method, c.header, c.body)
		if string(r) != c.stored {
			t.Errorf("%+v is stored as %s", c, string(r))
		}
		method, header, body := r.Parts()
		if method != cmp.Or(c.method, "GET") || !slices.Equal(header, c.want) || string(body) != c.body {
			t.Errorf("%+v is %s %q %q", c, method, header, body)
		}
		if again := must(t, method, header, string(body)); again != r {
			t.Errorf("%s, once more: %s", string(r), string(again))
		}
		if read, err := readRequest([]byte(r)); err != nil || read != r {
			t.Errorf("%s is read as %s, %v", string(r), string(read), err)
		}
	}
}

func TestRequestRefused(t *testing.T) {
	header := func(name, value string) [][2]string { return [][2]string{{name, value}} }
	for _, c := range []struct {
		method string
		header [][2]string
		body   string
		why    string
	}{
		{"CONNECT", nil, "", `method "CONNECT"`},
		{"TRACE", nil, "", `method "TRACE"`},
		{"trace", nil, "", `method "trace"`},
		{"GET /x HTTP/1.1\r\n", nil, "", "method"},
		{"", header("host", "secret"), "", `header "host" is set by the crawler itself`},
		{"", header("User-Agent", "secret"), "", `header "User-Agent" is set`},
		{"", header("CONTENT-LENGTH", "9"), "", `header "CONTENT-LENGTH" is set`},
		{"", header("X", "secret\r\nY: z"), "", `header "X" has`},
		{"", header("X", "secret\xff"), "", `header "X" has`},
		{"", header("X Y", "secret"), "", "a header has a name that is not allowed"},
		{"", header("", "secret"), "", "a header has a name that is not allowed"},
		{"POST", header("X", strings.Repeat("a", 4000)), strings.Repeat("b", 100), "have 4150 bytes, at most 4096"},
		{"POST", header("Content-Type", ""), strings.Repeat("b", MaxRequest-len("POSTContent-Type")+1), "have 4097 bytes"},
	} {
		if r, err := NewRequest(c.method, c.header, []byte(c.body)); err == nil || !strings.Contains(err.Error(), c.why) || strings.Contains(err.Error(), "secret") || r != "" {
			t.Errorf("%q %q: %q, %v", c.method, c.header, string(r), err)
		}
	}
	must(t, "POST", header("Content-Type", ""), strings.Repeat("b", MaxRequest-len("POSTContent-Type")))
	for text, why := range map[string]string{
		`"POST"`: "must be a JSON object", `{"method":"POST","secret":1}`: "must be a JSON object", `{"header":{"X":"secret"}}`: "must be a JSON object",
		`{"body":"secret","body_encoding":"base64"}`: "no base64", `{"body":"x","body_encoding":"gzip"}`: `"gzip"`, `{"method":"TRACE"}`: "TRACE",
	} {
		if r, err := readRequest([]byte(text)); err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %s, %v, want %q", text, string(r), err, why)
		}
	}
}

// TestRequestFingerprint: method and body count, headers do not, and the site's half is
// always that of the URL.
func TestRequestFingerprint(t *testing.T) {
	url := canon.FingerprintOf([]byte("a.example"), []byte("https://a.example/x"))
	seen := map[canon.Fingerprint]Request{url: ""}
	for _, r := range []Request{
		must(t, "POST", nil, ""), must(t, "POST", nil, "a"), must(t, "POST", nil, "b"), must(t, "GET", nil, "a"), must(t, "HEAD", nil, ""), must(t, "PUT", nil, "a"),
	} {
		fp := r.Fingerprint(url)
		if other, known := seen[fp]; known || fp.Site != url.Site {
			t.Errorf("%q has the fingerprint of %q, or another site's", string(r), string(other))
		}
		seen[fp] = r
	}
	for r, same := range map[Request]Request{
		must(t, "GET", [][2]string{{"X", "1"}}, ""):                               "",
		must(t, "POST", [][2]string{{"X", "1"}, {"Content-Type", "x/y"}}, "a"):    must(t, "POST", nil, "a"),
		must(t, "POST", [][2]string{{"Authorization", "1"}}, "").WithoutSecrets(): must(t, "POST", nil, ""),
	} {
		if r.Fingerprint(url) != same.Fingerprint(url) {
			t.Errorf("%q is another than %q", string(r), string(same))
		}
	}
}

// TestRequestOfRedirect: what turns to GET has no body and nothing that describes one, and
// headers and bodies go to no other origin.
func TestRequestOfRedirect(t *testing.T) {
	header := [][2]string{{"content-type", "x/y"}, {"X", "1"}, {"Content-Language", "de"}}
	put, get, head := must(t, "PUT", header, "a"), must(t, "GET", header[1:2], ""), must(t, "HEAD", header[1:2], "")
	for _, c := range []struct {
		r          Request
		status     int
		sameOrigin bool
		to         Request
		ok         bool
	}{
		{"", 307, false, "", true},
		{put, 301, true, get, true},
		{put, 302, true, get, true},
		{put, 303, true, get, true},
		{put, 302, false, "", true},
		{put, 307, true, put, true},
		{put, 308, true, put, true},
		{put, 307, false, "", false},
		{must(t, "POST", nil, ""), 308, false, "", false},
		{must(t, "GET", nil, "a"), 307, false, "", false},
		{must(t, "GET", nil, "a"), 303, false, "", true},
		{get, 302, true, get, true},
		{get, 307, false, "", true},
		{head, 303, true, head, true},
		{head, 302, false, must(t, "HEAD", nil, ""), true},
		{head, 308, false, must(t, "HEAD", nil, ""), true},
	} {
		if to, ok := c.r.Redirected(c.status, c.sameOrigin); to != c.to || ok != c.ok {
			t.Errorf("%q, %d, same origin %v: %q %v, want %q %v", string(c.r), c.status, c.sameOrigin, string(to), ok, string(c.to), c.ok)
		}
	}
	for method, safe := range map[string]bool{"": true, "HEAD": true, "OPTIONS": true, "POST": false, "DELETE": false, "get": false} {
		if r := must(t, method, nil, ""); r.IsSafe() != safe {
			t.Errorf("%s is safe: %v", method, !safe)
		}
	}
}

// TestRequestIsSecret: a request prints as its method, alone and inside others.
func TestRequestIsSecret(t *testing.T) {
	r := must(t, "POST", [][2]string{{"X-Token", "secret"}}, "secret")
	e := Entry{URL: "https://a.example/", Request: r}
	for _, format := range []string{"%v", "%s", "%+v", "%q"} {
		if text := fmt.Sprintf(format, e) + fmt.Sprintf(format, &Candidate{Request: r}) + fmt.Sprintf(format, r); strings.Contains(text, "secret") || !strings.Contains(text, "POST") {
			t.Error(format, text)
		}
	}
}

// TestRequestOfElement: an element brings its request, which decides the fingerprint, and
// is written with it.
func TestRequestOfElement(t *testing.T) {
	m := NewMaker(Layout{Shards: 2}.Complete())
	plain, err := m.Element("https://a.example/x")
	if err != nil {
		t.Fatal(err)
	}
	text := `{"url":"https://a.example/x","request":{"method":"POST","header":[["X","é"],["Content-Type","x/y"]],"body":"a"}}`
	it, err := m.Element(text)
	want := must(t, "POST", [][2]string{{"X", "é"}, {"Content-Type", "x/y"}}, "a")
	if err != nil || it.Request != want || it.Fingerprint != want.Fingerprint(plain.Fingerprint) || it.Fingerprint == plain.Fingerprint || it.Entry().Request != want {
		t.Errorf("%+v, %v", it, err)
	}
	again, err := m.Element(string(AppendElement(nil, &it.Candidate)))
	if err != nil || again.Candidate != it.Candidate {
		t.Errorf("%+v, %v, want %+v", again, err, it)
	}
	e := it.Entry()
	exported, err := m.Element(string(AppendExported(nil, &e, "", "", "")))
	if err != nil || exported.Request != want || exported.Fingerprint != it.Fingerprint {
		t.Errorf("%+v, %v", exported, err)
	}
	if _, err := m.Element(`{"url":"https://a.example/x","request":{"header":[["Host","b"]]}}`); err == nil || !strings.Contains(err.Error(), "Host") {
		t.Error(err)
	}
	for _, header := range []string{`[["X"]]`, `[["X","1","2"]]`, `[[]]`, `[null]`, `[["X: secret",""]]`, `[["X","secret\n"]]`} {
		if it, err := m.Element(`{"url":"https://a.example/x","request":{"header":` + header + `}}`); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %q, %v", header, string(it.Request), err)
		}
	}
}

// TestElementManual: the manual lists the keys of an element.
func TestElementManual(t *testing.T) {
	text, err := os.ReadFile("../cmd/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n| key | meaning |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for line := range strings.Lines(table) {
		keys := strings.Split(line, "|")[1]
		for i, key := range strings.Split(keys, "`") {
			if i%2 == 1 {
				listed = append(listed, key)
			}
		}
	}
	known := strings.Split(elementKeys, ", ")
	slices.Sort(listed)
	slices.Sort(known)
	if !ok || !slices.Equal(listed, known) {
		t.Errorf("the manual lists %q, an element has %q", listed, known)
	}
}

// TestPlainGetAllocations: a plain GET, as nearly every URL is, costs no memory.
func TestPlainGetAllocations(t *testing.T) {
	r, ok := Request(""), true
	if n := testing.AllocsPerRun(100, func() {
		method, header, body := r.Parts()
		ok = ok && r.IsGet() && r.IsSafe() && method == "GET" && header == nil && len(body) == 0
	}); n != 0 || !ok {
		t.Errorf("%v allocations, %v", n, ok)
	}
}
