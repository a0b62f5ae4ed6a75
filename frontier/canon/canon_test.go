package canon

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"

	"seine/extract/charset"
)

var legacy = []encoding.Encoding{
	known("windows-1251"), known("iso-8859-2"), known("shift_jis"), known("euc-jp"), known("iso-2022-jp"), known("euc-kr"),
	known("gbk"), known("gb18030"), known("big5"),
	unicode.UTF8, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), encoding.Replacement,
}

// known is an encoding as pages have it.
func known(name string) encoding.Encoding {
	enc, _ := charset.Lookup(name)
	return enc
}

// parse parses link on base ("" = none) or fails the test.
func parse(t *testing.T, p *Parser, base, link string) *URL {
	t.Helper()
	u := new(URL)
	if base == "" {
		if err := p.Parse(u, []byte(link)); err != nil {
			t.Fatalf("%q: %v", link, err)
		}
		return u
	}
	if err := p.Resolve(u, parse(t, p, "", base), []byte(link), nil); err != nil {
		t.Fatalf("%q on %q: %v", link, base, err)
	}
	return u
}

func TestResolve(t *testing.T) {
	const base = "https://h.example:8443/a/b/c?d=e"
	for _, c := range []struct{ link, want string }{
		{"", "https://h.example:8443/a/b/c?d=e"},
		{"#f", "https://h.example:8443/a/b/c?d=e"},
		{"?", "https://h.example:8443/a/b/c?"},
		{"?x=%zz#f", "https://h.example:8443/a/b/c?x=%zz"},
		{"x", "https://h.example:8443/a/b/x"},
		{"./x/.", "https://h.example:8443/a/b/x/"},
		{"../x/..", "https://h.example:8443/a/"},
		{"../../../x", "https://h.example:8443/x"},
		{"%2E%2e/x", "https://h.example:8443/a/x"},
		{".../x", "https://h.example:8443/a/b/.../x"},
		{"x//y/../z", "https://h.example:8443/a/b/x//z"},
		{"/x%2Fy%2fz//", "https://h.example:8443/x%2Fy%2fz//"},
		{"//H.Example", "https://h.example/"},
		{"http://h.example:80?x", "http://h.example/?x"},
		{"HTTPS:x", "https://h.example:8443/a/b/x"},
		{" x y\n", "https://h.example:8443/a/b/x%20y"},
		{"x #f", "https://h.example:8443/a/b/x%20"},
		{"a\\b", "https://h.example:8443/a/b/a/b"},
		{"é?é", "https://h.example:8443/a/b/%C3%A9?%C3%A9"},
		{"http://bücher.example/^", "http://xn--bcher-kva.example/%5E"},
		{"http://0x7f.1/", "http://127.0.0.1/"},
		{"http://1.-2/", "http://1.-2/"},
		{"x:y", ""}, {"mailto:a@b", ""}, {" java\tscript:1", ""}, {"ftp://h/", ""},
	} {
		var u URL
		err := unguarded().Resolve(&u, parse(t, unguarded(), "", base), []byte(c.link), nil)
		if c.want == "" && !errors.Is(err, ErrNotCrawlable) || c.want != "" && (err != nil || string(u.Fetch()) != c.want) {
			t.Errorf("%q: %s %v, want %s", c.link, u.Fetch(), err, c.want)
		}
	}
	for _, link := range []string{"", "x", "/x", "//h/", "http://", "http:///", "http://a b/", "http://[::1", "http://[[::1]]/", "http://h:99999/",
		"http://\u00ad/", "http://1.2.3.4.5/", "http://-1.1/", "http://%00/"} {
		var u URL
		if err := unguarded().Parse(&u, []byte(link)); !errors.Is(err, ErrInvalid) || len(u.Fetch()) != 0 {
			t.Errorf("%q: %q %v, want ErrInvalid", link, u.Fetch(), err)
		}
	}
}

func TestResolveInPlace(t *testing.T) {
	p := unguarded()
	u := parse(t, p, "", "http://a.example/x/y?z")
	for _, step := range []struct{ link, want string }{
		{"v", "http://a.example/x/v"}, {"?q", "http://a.example/x/v?q"}, {"é/../w", "http://a.example/x/w"},
		{"a\\b", "http://a.example/x/a/b"}, {"", "http://a.example/x/a/b"}, {"//b.example", "http://b.example/"},
	} {
		if err := p.Resolve(u, u, []byte(step.link), nil); err != nil || string(u.Fetch()) != step.want {
			t.Fatalf("%q: %s %v, want %s", step.link, u.Fetch(), err, step.want)
		}
	}
}

func TestParts(t *testing.T) {
	u := parse(t, unguarded(), "", "https://user:pass@[2001:DB8::1]:8443/p/q?r=s#t")
	for _, c := range []struct{ name, got, want string }{
		{"Fetch", string(u.Fetch()), "https://user:pass@[2001:db8::1]:8443/p/q?r=s"},
		{"Key", string(u.Key()), "https://[2001:db8::1]:8443/p/q?r=s"},
		{"Scheme", u.Scheme(), "https"},
		{"Userinfo", string(u.Userinfo()), "user:pass"},
		{"Host", string(u.Host()), "[2001:db8::1]"},
		{"HostPort", string(u.HostPort()), "[2001:db8::1]:8443"},
		{"Origin", string(u.Origin()), "https://[2001:db8::1]:8443"},
		{"Path", string(u.Path()), "/p/q"},
		{"Query", string(u.Query()), "r=s"},
		{"Target", string(u.Target()), "/p/q?r=s"},
		{"AppendRedacted", string(u.AppendRedacted([]byte(">"))), ">https://[2001:db8::1]:8443/p/q?r=s"},
	} {
		if c.got != c.want {
			t.Errorf("%s = %q, want %q", c.name, c.got, c.want)
		}
	}
	if got := fmt.Sprint(u); strings.Contains(got, "pass") || !strings.Contains(got, "8443/p/q") {
		t.Errorf("printed as %s", got)
	}
	if u.Port() != 8443 || !u.HasQuery() || !u.HasUserinfo() {
		t.Errorf("port %d, query %v, credentials %v", u.Port(), u.HasQuery(), u.HasUserinfo())
	}
	u = parse(t, unguarded(), "", "http://h")
	if u.Port() != 80 || u.HasQuery() || u.HasUserinfo() || u.Query() != nil || string(u.Origin()) != "http://h" || string(u.Path()) != "/" {
		t.Errorf("%s: port %d, origin %s, path %s", u.Fetch(), u.Port(), u.Origin(), u.Path())
	}
	var zero URL
	if zero.Scheme() != "" || zero.Port() != 0 || len(zero.Fetch())+len(zero.Key())+len(zero.Host())+len(zero.Origin())+len(zero.Path()) != 0 {
		t.Error("the zero URL is not empty")
	}
}

func TestKey(t *testing.T) {
	same := [][2]string{
		{"/?%3d", "/?%3D"}, {"/%7E", "/~"}, {"/%7e%41%2d", "/~A-"}, {"/a%2fb", "/a%2Fb"}, {"/%e4", "/%E4"}, {"/a%2eb", "/a.b"}, {"/x", "/x#y"},
	}
	apart := [][2]string{
		{"/a%2Fb", "/a/b"}, {"/dia%25", "/dia%"}, {"/dia%2541", "/diaA"}, {"/dia%2541", "/dia%41"}, {"/page", "/page/"}, {"/p?", "/p"},
		{"/%2%35", "/%25"}, {"/%%32%35", "/%25"}, {"/%%325", "/%25"}, {"/%%35", "/%5"}, {"/A", "/a"}, {"/a//b", "/a/b"}, {"/?a=1&b=2", "/?b=2&a=1"}, {"/?utm_id=1", "/"},
		{"/?a%26b", "/?a&b"}, {"/?a%3Db", "/?a=b"}, {"/?a+b", "/?a%20b"},
	}
	p := unguarded()
	key := func(s string) string { return string(parse(t, p, "", "http://h"+s).Key()) }
	for _, c := range same {
		if key(c[0]) != key(c[1]) {
			t.Errorf("%s has key %s, %s has %s", c[0], key(c[0]), c[1], key(c[1]))
		}
	}
	for _, c := range apart {
		if key(c[0]) == key(c[1]) {
			t.Errorf("%s and %s share the key %s", c[0], c[1], key(c[0]))
		}
	}
	if a, b := parse(t, p, "", "http://u:p@h/x").Key(), parse(t, p, "", "http://h/x").Key(); string(a) != string(b) {
		t.Errorf("credentials make the key %s", a)
	}
}

func TestKeyRules(t *testing.T) {
	for _, c := range []struct {
		strip, sort bool
		query, want string
	}{
		{true, false, "?b=1&utm_source=x&a=2&GCLID=y&utm%5Fid=z", "?b=1&a=2"},
		{true, false, "?utm_source=x&fbclid=y", ""},
		{true, false, "?utm=1&utmx=2&xutm_id=3&fbclidx", "?utm=1&utmx=2&xutm_id=3&fbclidx"},
		{true, false, "?", "?"},
		{true, false, "?&", "?&"},
		{true, false, "?a=utm_source=x", "?a=utm_source=x"},
		{true, false, "?utm_" + strings.Repeat("x", 100) + "=1&a", "?a"},
		{false, true, "?b=2&a=1&b=1&a", "?a=1&a&b=2&b=1"},
		{false, true, "?%62=2&a=%7e&utm_x", "?a=~&b=2&utm_x"},
		{true, true, "?c&b=2&gclid&a=1", "?a=1&b=2&c"},
	} {
		u := parse(t, NewParser(Config{StripParams: c.strip, SortQuery: c.sort}), "", "http://h/p"+c.query)
		if got := string(u.Key()); got != "http://h/p"+c.want {
			t.Errorf("%s: key %s, want http://h/p%s", c.query, got, c.want)
		}
		if got := string(u.Fetch()); got != "http://h/p"+c.query {
			t.Errorf("key rules changed the fetch form to %s", got)
		}
	}
}

// TestSessions: session ids are recognized by their form, in the query and in the path.
func TestSessions(t *testing.T) {
	const id = "0a1B2c3D4e5F6g7H8i9J0k1L" // 24
	for target, want := range map[string]string{
		"/p?PHPSESSID=" + id:                              "/p",
		"/p?a=1&phpsessid=" + id + "00&b=2":               "/p?a=1&b=2",
		"/p?sid=" + id:                                    "/p",
		"/p?SID=%30" + id[1:]:                             "/p",
		"/p?sid=42":                                       "/p?sid=42",
		"/p?sid=" + id[1:]:                                "/p?sid=" + id[1:],
		"/p?sid=" + id + "-x":                             "/p?sid=" + id + "-x",
		"/p?xsid=" + id:                                   "/p?xsid=" + id,
		"/p?q=" + id:                                      "/p?q=" + id,
		"/p?jsessionid=" + id + ".node1&x":                "/p?x",
		"/p?ASPSESSIONIDABCDEFGH=" + id:                   "/p",
		"/p?ASPSESSIONIDABCDEFG=" + id:                    "/p?ASPSESSIONIDABCDEFG=" + id,
		"/p;jsessionid=" + id:                             "/p",
		"/p;jsessionid=" + id + "!-12345!67?a=1":          "/p?a=1",
		"/a;jsessionid=" + id + "/b;x=1;JSESSIONID=" + id: "/a/b;x=1",
		"/p;jsessionid=" + id + ";x=1":                    "/p;x=1",
		"/p;PHPSESSID=" + id:                              "/p",
		"/p;sid=42":                                       "/p;sid=42",
		"/p;jsessionid=" + id[1:]:                         "/p;jsessionid=" + id[1:],
		"/p%3Bjsessionid=" + id:                           "/p%3Bjsessionid=" + id,
		"/...;jsessionid=" + id:                           "/...",
		"/a/..;jsessionid=" + id + "/b":                   "/a/..;jsessionid=" + id + "/b",
		"/a/%2e;jsessionid=" + id:                         "/a/.;jsessionid=" + id,
		"/p?CFID=12&CFTOKEN=34567890&a":                   "/p?a",
		"/p?cftoken=0a-b1&a&cfid=12":                      "/p?a",
		"/p?CFID=12&a":                                    "/p?CFID=12&a",
		"/p?CFID=x&CFTOKEN=34567890":                      "/p?CFID=x&CFTOKEN=34567890",
		"/p?CFTOKEN=34567890":                             "/p?CFTOKEN=34567890",
		"/p;CFID=12;CFTOKEN=34567890":                     "/p",
		"/p;CFID=12":                                      "/p;CFID=12",
		"/(S(" + id + "))/p.aspx":                         "/p.aspx",
		"/a/(S(" + id + "))/p.aspx?b":                     "/a/p.aspx?b",
		"/(A(" + id + ")S(" + id + ")F(" + id + "))/p":    "/p",
		"/(S(" + id + "))":                                "/",
		"/a/(s(" + id + "))/":                             "/a/",
		"/(S(" + id + "x))/p":                             "/(S(" + id + "x))/p",
		"/(S(" + id + "))x/p":                             "/(S(" + id + "))x/p",
		"/(" + id + ")/p":                                 "/(" + id + ")/p",
		"/x(S(" + id + "))/p":                             "/x(S(" + id + "))/p",
		"/(S(" + id + "))//(S(" + id + "))/p":             "//p",
	} {
		u := parse(t, NewParser(Config{StripParams: true}), "", "http://h"+target)
		if got := string(u.Key()); got != "http://h"+want {
			t.Errorf("%s: key %s, want http://h%s", target, got, want)
		}
		if got := string(u.Fetch()); got != "http://h"+target {
			t.Errorf("key rules changed the fetch form to %s", got)
		}
	}
}

func TestLegacyQuery(t *testing.T) {
	for _, c := range []struct {
		enc        encoding.Encoding
		link, want string
	}{
		{known("windows-1251"), "/ж?ж", "/%D0%B6?%E6"},
		{known("windows-1251"), "/?中&x#中", "/?%26%2320013%3B&x"},
		{known("shift_jis"), "/?表=あ|\u2212", "/?%95\\=%82%A0|%81|"},
		{known("euc-jp"), "/?あ\u00a5", "/?%A4%A2\\"},
		{known("iso-2022-jp"), "/?あa", "/?%1B$B$%22%1B(Ba"},
		{known("euc-kr"), "/?한", "/?%C7%D1"},
		{known("gbk"), "/?中€", "/?%D6%D0%80"},
		{known("big5"), "/?中", "/?%A4%A4"},
		{known("big5"), "/?香港", "/?%AD%BB%B4%E4"},
		{known("iso-8859-2"), "/?\u009a", "/?%9A"},
		{known("gbk"), "/?\ue5e5\ue000", "/?%26%2358853%3B%AA%A1"},
		{known("iso-2022-jp"), "/?あ☃¥\x0ea", "/?%1B$B$%22%1B(B%26%239731%3B%1B(J\\%26%2365533%3Ba%1B(B"},
		{known("iso-2022-jp"), "/?" + strings.Repeat("あ", 126), "/?%1B$B" + strings.Repeat("$%22", 126) + "%1B(B"},
		{unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "/?é", "/?%C3%A9"},
		{encoding.Replacement, "/?é", "/?%C3%A9"},
		{nil, "/?é\xff", "/?%C3%A9%EF%BF%BD"},
		{known("windows-1251"), "/?%D6 \"'", "/?%D6%20%22%27"},
		{known("windows-1251"), "/?" + strings.Repeat("ж", 300) + "中", "/?" + strings.Repeat("%E6", 300) + "%26%2320013%3B"},
	} {
		var u URL
		if err := unguarded().Resolve(&u, parse(t, unguarded(), "", "http://h/x"), []byte(c.link), c.enc); err != nil || string(u.Target()) != c.want {
			t.Errorf("%q: %s %v, want %s", c.link, u.Target(), err, c.want)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	p, s := NewParser(Config{}), NewSites(ByDomain)
	base := parse(t, p, "", "https://www.example.com/docs/a/index.html")
	var u URL
	raw := [][]byte{
		[]byte("x.html#y"), []byte("../b/x.html?a=b&c=d"), []byte("/é/ü?q=%7e"), []byte("https://other.example.org/a%2fb"), []byte("//cdn.example.net:81"),
		[]byte("?p=2"), []byte("mailto:a@b.example"), []byte("javascript:void(0)"), []byte("http://127.0.0.1:8080/x"), []byte("/a/a/a"),
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, r := range raw {
			if p.Resolve(&u, base, r, nil) == nil {
				s.Fingerprint(&u)
				u.Origin()
			}
		}
	}); n > 1 { // the guard's exact count of "/a/a/a" makes one list
		t.Errorf("%v allocations for %d links", n, len(raw))
	}
	p, arg := NewParser(Config{StripParams: true, SortQuery: true}), []byte("x;jsessionid=0a1B2c3D4e5F6g7H8i9J0k1L?c=%7e&utm_source=x&a=2&b&a=1&cfid=1&cftoken=2")
	if n := testing.AllocsPerRun(100, func() {
		if p.Resolve(&u, base, arg, nil) != nil || len(u.Key()) == 0 {
			t.Error("no key")
		}
	}); n > 0 {
		t.Errorf("%v allocations with key rules", n)
	}
}
