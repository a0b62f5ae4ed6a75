package cookie

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"seine/frontier/canon"
)

const (
	now  = 1_000_000
	most = 4096
	date = "Thu, 01 Jan 2026 00:00:00 GMT" // by the clock of some server
)

// request is the Request for a URL.
func request(t testing.TB, url string) Request {
	t.Helper()
	var u canon.URL
	if err := canon.NewParser(canon.Config{}).Parse(&u, []byte(url)); err != nil {
		t.Fatal(err)
	}
	return RequestTo(&u)
}

// TestWhere: which requests get back what one answer set.
func TestWhere(t *testing.T) {
	for _, c := range []struct{ at, set, to, want string }{
		{"http://a.example/", "n=v", "http://a.example/x/y", "n=v"},
		{"http://a.example/", "n=v", "http://b.a.example/", ""}, // host-only
		{"http://a.example/", "n=v", "https://a.example:8443/", "n=v"},
		{"http://b.a.example/", "n=v; Domain=a.example", "http://a.example/", "n=v"},
		{"http://b.a.example/", "n=v; domain=.A.Example", "http://c.d.a.example/", "n=v"},
		{"http://b.a.example/", "n=v; Domain=a.example", "http://ba.example/", ""},
		{"http://b.a.example/", "n=v; Domain=c.a.example", "http://c.a.example/", ""},
		{"http://b.a.example/", "n=v; Domain=c.b.a.example", "http://b.a.example/", ""},
		{"http://a.example/", "n=v; Domain=", "http://b.a.example/", ""},
		{"http://a.example/", "n=v; Domain=example", "http://a.example/", ""}, // a public suffix
		{"http://a.co.uk/", "n=v; Domain=co.uk", "http://a.co.uk/", ""},
		{"http://me.github.io/", "n=v; Domain=github.io", "http://me.github.io/", ""},
		{"http://github.io/", "n=v; Domain=github.io", "http://github.io/", "n=v"}, // its own host
		{"http://github.io/", "n=v; Domain=github.io", "http://me.github.io/", ""},
		{"http://127.0.0.1/", "n=v; Domain=127.0.0.1", "http://127.0.0.1/", "n=v"},
		{"http://127.0.0.1/", "n=v; Domain=0.0.1", "http://127.0.0.1/", ""},
		{"http://[::1]/", "n=v; Domain=[::1]", "http://[::1]/", "n=v"},
		{"http://a.example/x/y", "n=v", "http://a.example/x/z/", "n=v"},
		{"http://a.example/x/y", "n=v", "http://a.example/x", "n=v"},
		{"http://a.example/x/y", "n=v", "http://a.example/xy", ""},
		{"http://a.example/x", "n=v", "http://a.example/", "n=v"},
		{"http://a.example/x", "n=v; Path=/y", "http://a.example/y?z", "n=v"},
		{"http://a.example/x", "n=v; Path=/y/", "http://a.example/y/z", "n=v"},
		{"http://a.example/x", "n=v; Path=/y/", "http://a.example/y", ""},
		{"http://a.example/x/", "n=v; Path=y", "http://a.example/x", "n=v"},
		{"http://a.example/", "n=v; Secure", "http://a.example/", ""},
		{"http://a.example/", "n=v; secure; HttpOnly; SameSite=Strict; Odd=1", "https://a.example/", "n=v"},
		{"http://a.example/", ` n[1] = "v, w" ;Path=/`, "http://a.example/", `n[1]="v, w"`},
		{"http://a.example/", "n=v=w", "http://a.example/", "n=v=w"},
		{"http://a.example/", "n=", "http://a.example/", "n="},
		{"http://a.example/", "n=\xe4", "http://a.example/", "n=\xe4"},
		{"http://a.example/", "n", "http://a.example/", ""},
		{"http://a.example/", "=v", "http://a.example/", ""},
		{"http://a.example/", "n=v\x01w", "http://a.example/", ""},
		{"http://a.example/", "", "http://a.example/", ""},
	} {
		var j Jar
		j.Take(request(t, c.at), []string{c.set}, date, now, most)
		for _, jar := range []Jar{j, Decode(j.Encode())} {
			if got := jar.Header(request(t, c.to), "", now); got != c.want {
				t.Errorf("%s sets %q: %s gets %q, want %q", c.at, c.set, c.to, got, c.want)
			}
		}
	}
}

// TestHowLong: a cookie lives so long from when it came, whatever the clock of its
// server shows.
func TestHowLong(t *testing.T) {
	for _, c := range []struct {
		set, date string
		seconds   int64 // 0 = none is kept, -1 = for ever
	}{
		{"", date, -1},
		{"Max-Age=60", date, 60},
		{"Max-Age=0", date, 0},
		{"Max-Age=-1", date, 0},
		{"Max-Age=99999999999999", date, maxAge},
		{"Max-Age=soon", date, -1},
		{"Expires=Thu, 01 Jan 2026 00:01:00 GMT", date, 60},
		{"Expires=Thu, 01-Jan-2026 00:01:00 GMT", date, 60},
		{"Expires=Thu, 01-Jan-26 00:01:00 GMT", date, 60},
		{"Expires=Thursday, 01-Jan-26 00:01:00 GMT", date, 60},
		{"Expires=Thu Jan  1 00:01:00 2026", date, 60},
		{"Expires=Thu, 01 Jan 1970 00:00:00 GMT", date, 0},
		{"Expires=Thu, 01-Jan-70 00:00:01 GMT", date, 0},
		{"Expires=Thu, 01 Jan 2200 00:00:00 GMT", date, maxAge},
		{"Expires=later", date, -1},
		{`Expires="Thu, 01 Jan 2026 00:01:00 GMT"`, date, 60},
		{"Expires=Thu, 01 Jan 2026 00:02:00 GMT; Expires=Thu, 01 Jan 2026 00:01:00 GMT", date, 60}, // the last counts
		{"Expires=Thu, 01 Jan 2026 00:01:00 GMT; Expires=later", date, 60},
		{"Max-Age=007", date, 7},
		{"Max-Age=-99999999999999999999", date, 0},
		{"Max-Age=99999999999999999999", date, maxAge},
		{"Max-Age=+5", date, -1},
		{"Max-Age=-", date, -1},
		{"Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60", date, 60}, // Max-Age counts
		{"Expires=" + time.Now().Add(time.Hour+time.Second/2).UTC().Format(time.RFC1123), "", 3600},
	} {
		var j Jar
		r := request(t, "http://a.example/")
		j.Take(r, []string{"n=old"}, date, now, most)
		j.Take(r, []string{"n=v; " + c.set}, c.date, now, most)
		alive := func(after int64) bool { return j.Header(r, "", now+after) == "n=v" }
		slack := int64(0)
		if c.date == "" {
			slack = 60
		}
		switch {
		case c.seconds == 0 && j.Encode() != "":
			t.Errorf("%q: is still there", c.set)
		case c.seconds < 0 && !alive(1e9):
			t.Errorf("%q: is gone", c.set)
		case c.seconds > 0 && (!alive(c.seconds-1-slack) || alive(c.seconds+slack)):
			t.Errorf("%q: does not live for %d s", c.set, c.seconds)
		}
	}
}

// TestDate holds the algorithm of RFC 6265, section 5.1.1, with the forms that servers
// send to end a cookie.
func TestDate(t *testing.T) {
	past, err := os.ReadFile("../../../shared/testdata/webcases2/cookie-expires.txt")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	for form := range strings.Lines(string(past)) {
		if d, ok := parseDate(strings.TrimRight(form, "\n")); !ok || d.Unix() > 1 || d.Unix() < 0 {
			t.Errorf("%q: %v, %v", form, d, ok)
		}
	}
	for form, want := range map[string]string{
		"Thu, 01 Jan 1970 00:00:00 GMT":       "1970-01-01T00:00:00Z",
		"Thu, 1 Jan 1970 00:00:00":            "1970-01-01T00:00:00Z",
		"Thu, 01-Jan-1970 00:00:01 GMT":       "1970-01-01T00:00:01Z",
		"thu, 01-jan-70 00:00:01 gmt":         "1970-01-01T00:00:01Z",
		"Thu, 01 Jan 1970 0:0:0 GMT":          "1970-01-01T00:00:00Z",
		"Thu Jan  1 00:00:00 1970":            "1970-01-01T00:00:00Z",
		"Thursday, 01-January-1970 0:00:00 Z": "1970-01-01T00:00:00Z",
		"1 Jan 1970 00:00:00 +0000":           "1970-01-01T00:00:00Z",
		"1970 Jan 01 00:00:00":                "1970-01-01T00:00:00Z",
		"Jan 01 1970 00:00:00":                "1970-01-01T00:00:00Z",
		"00:00:00 01 1970 Jan":                "1970-01-01T00:00:00Z",
		"01 Jan 69 00:00:00":                  "2069-01-01T00:00:00Z",
		"01 Jan 1601 00:00:00":                "1601-01-01T00:00:00Z",
		"29 Feb 2024 23:59:59x":               "2024-02-29T23:59:59Z",
		"Thu,01/Jan/1970;00:00:00":            "1970-01-01T00:00:00Z",
		"1st Jan 1970 00:00:00":               "1970-01-01T00:00:00Z",
		"01 Jan 1600 00:00:00":                "",
		"29 Feb 2023 00:00:00":                "",
		"31 Apr 2023 00:00:00":                "",
		"00 Jan 2023 00:00:00":                "",
		"32 Jan 2023 00:00:00":                "",
		"01 Jan 2023 24:00:00":                "",
		"01 Jan 2023 00:60:00":                "",
		"01 Jan 2023 00:00:60":                "",
		"01 Jan 2023 00:00":                   "",
		"01 Jan 2023 000:00:00":               "",
		"01 anf 2023 00:00:00":                "",
		"01 Jan 20233 00:00:00":               "",
		"001 Jan 2023 00:00:00":               "", // 001 is the year, so no day is left
		"2000-01-01":                          "",
		"0":                                   "",
		"-1":                                  "",
		"":                                    "",
	} {
		d, ok := parseDate(form)
		if got := d.Format(time.RFC3339); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %v %v, want %q", form, got, ok, want)
		}
	}
}

// TestOrder: the longest paths first, then the oldest; a new value keeps the age.
func TestOrder(t *testing.T) {
	var j Jar
	r := request(t, "http://a.example/x/y")
	if !j.Take(r, []string{"a=1; Path=/", "b=1; Path=/x", "c=1; Path=/"}, date, now, most) {
		t.Error("not changed")
	}
	if j.Take(r, []string{"b=1; Path=/x"}, date, now, most) || j.Take(r, []string{"z=1; Max-Age=0"}, date, now, most) {
		t.Error("changed")
	}
	j.Take(r, []string{"a=2; Path=/", "a=3; Path=/x"}, date, now, most)
	for given, want := range map[string]string{
		"":               "b=1; a=3; a=2; c=1",
		"a=9":            "a=9; b=1; c=1",
		" c = 1;x;a=; ":  " c = 1;x;a=; b=1",
		"b=; c=2; a=1;;": "b=; c=2; a=1;;",
	} {
		if got := j.Header(r, given, now); got != want {
			t.Errorf("given %q: %q, want %q", given, got, want)
		}
	}
}

// TestMost: the oldest go; what is too large alone is not taken, and takes nothing away.
func TestMost(t *testing.T) {
	var j Jar
	r := request(t, "http://a.example/")
	for i := range 100 {
		j.Take(r, []string{fmt.Sprintf("n%d=%s", i, strings.Repeat("v", 100))}, date, now, most)
		if n := len(j.Encode()); n > most {
			t.Fatalf("%d bytes", n)
		}
	}
	j.Take(r, []string{"big=" + strings.Repeat("v", most)}, date, now, most)
	got := j.Header(r, "", now)
	if n := strings.Count(got, "; ") + 1; n < 30 || !strings.Contains(got, "n99=") || strings.Contains(got, "n0=") || strings.Contains(got, "big") {
		t.Errorf("%d cookies: %s", n, got)
	}
	j.Take(r, []string{"short=1; Max-Age=10"}, date, now, most)
	j.Take(r, []string{"other=1"}, date, now+10, most)
	if strings.Contains(j.Encode(), "short") {
		t.Error("what is over is stored")
	}
}

// FuzzDecode: whatever is stored is read, and what is read is stored as it was.
func FuzzDecode(f *testing.F) {
	var j Jar
	j.Take(Request{Host: "a.example", Path: "/"}, []string{"a=1; Max-Age=100; Secure", "b=2; Domain=a.example"}, date, now, most)
	f.Add(j.Encode())
	f.Add("1")
	f.Add("2" + j.Encode()[1:])
	f.Fuzz(func(t *testing.T, stored string) {
		j := Decode(stored)
		again := Decode(j.Encode())
		if fmt.Sprint(again) != fmt.Sprint(j) {
			t.Errorf("%v, then %v", j, again)
		}
		j.Header(Request{Host: "a.example", Path: "/"}, "", now)
	})
}

// FuzzTake: whatever a server sends, what is stored stays in its bounds, and can be
// sent.
func FuzzTake(f *testing.F) {
	f.Add("a=b; Domain=a.example; Path=/; Expires=Thu, 01-Jan-26 00:01:00 GMT; Max-Age=1", date)
	f.Fuzz(func(t *testing.T, line, date string) {
		var j Jar
		r := Request{Host: "b.a.example", Path: "/x/y", Secure: true}
		j.Take(r, []string{line, "z=1"}, date, now, 300)
		if len(j.Encode()) > 300 || fmt.Sprint(Decode(j.Encode())) != fmt.Sprint(j) {
			t.Errorf("%q", j.Encode())
		}
		if h := j.Header(r, "", now); strings.ContainsAny(h, "\r\n\x00") {
			t.Errorf("%q", h)
		}
	})
}

func BenchmarkHeader(b *testing.B) {
	var j Jar
	r := Request{Host: "a.example", Path: "/"}
	for i := range 5 {
		j.Take(r, []string{fmt.Sprintf("session%d=0123456789abcdef0123456789abcdef; Path=/", i)}, date, now, most)
	}
	b.ReportMetric(float64(len(j.Encode())), "bytes")
	b.ReportAllocs()
	for b.Loop() {
		j.Header(r, "", now)
	}
}
