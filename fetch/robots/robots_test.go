package robots

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// Each case: a file, and for agent "seine" the paths that may and may not be fetched.
var verdictCases = []struct {
	name, file      string
	allowed, denied string // blank separated
}{
	{"empty file", "", "/ /a", ""},
	{"no agent line", "Disallow: /", "/ /a", ""},
	{"rules before a group are ignored", "Disallow: /a\nUser-agent: *\nDisallow: /b", "/a", "/b"},
	{"own group beats star", "User-agent: *\nDisallow: /\n\nUser-agent: Seine\nDisallow: /x", "/ /a", "/x"},
	{"own empty group beats star", "User-agent: seine\nDisallow:\nUser-agent: *\nDisallow: /", "/ /a", ""},
	{"groups merge", "User-agent: seine\nDisallow: /a\n\nUser-agent: other\nDisallow: /\n\nUser-agent: SEINE\nDisallow: /b", "/c", "/a /b"},
	{"star groups merge", "User-agent: *\nDisallow: /a\nUser-agent: x\nDisallow: /\nUser-agent: *\nDisallow: /b", "/c", "/a /b"},
	{"one group, many agents", "User-agent: x\nUser-agent: seine\nUser-agent: y\nDisallow: /a", "/b", "/a"},
	{"blank lines end nothing", "User-agent: seine\n\n\nDisallow: /a", "/b", "/a"},
	{"other lines end nothing", "User-agent: seine\nCrawl-delay: 1\nSitemap: https://x/\nHost: x\nwhat: ever\nUser-agent: y\nDisallow: /a", "/b", "/a"},
	{"an empty rule ends a list of agents", "User-agent: seine\nDisallow:\nUser-agent: y\nDisallow: /a", "/a", ""},
	{"version in the agent line", "User-agent: seine/1.0 (x)\nDisallow: /a", "/b", "/a"},
	{"other token", "User-agent: seiner\nDisallow: /\nUser-agent: sein\nDisallow: /\nUser-agent: seine2\nDisallow: /b", "/a /b", ""},
	{"our token and a slash", "User-agent: seine/2\nDisallow: /b", "/a", "/b"},
	{"star and more words", "User-agent: * all\nDisallow: /a", "/b", "/a"},
	{"star and letters is no star", "User-agent: *bot\nDisallow: /a", "/a /b", ""},
	{"comments", "User-agent: seine # us\nDisallow: /a # here\n# Disallow: /b\nDisallow: /c#d", "/b", "/a /c"},
	{"CR", "User-agent: seine\rDisallow: /a\rDisallow: /b", "/c", "/a /b"},
	{"CRLF", "User-agent: seine\r\nDisallow: /a\r\n\r\nDisallow: /b\r\n", "/c", "/a /b"},
	{"byte order mark", "\xef\xbb\xbfUser-agent: seine\nDisallow: /a", "/b", "/a"},
	{"part of a byte order mark", "\xef\xbbUser-agent: seine\nDisallow: /a", "/b", "/a"},
	{"blanks", " \tUser-agent \t:\t seine \nDisallow\t: /a  ", "/b", "/a"},
	{"no colon", "User-agent seine\nDisallow /a\nDisallow /b c", "/b", "/a"},
	{"case of keys", "USER-AGENT: seine\ndISALLOW: /a", "/b", "/a"},
	{"case of paths counts", "User-agent: *\nDisallow: /A", "/a", "/A"},
	{"typos", "useragent: seine\nDissallow: /a\ndisalow: /b\nDiasllow: /c\nDisallaw: /d\nDissalow: /e", "/f", "/a /b /c /d /e"},
	{"longer keys", "User-agents: seine\nDisallowed: /a\nAllowance: /a/b", "/a/b /c", "/a"},
	{"HTML", "<!DOCTYPE html>\n<html><head><title>User-agent: *</title>\n<p>Disallow: /</p>", "/ /a", ""},
	{"NUL ends a line", "User-agent: *\nDisallow: /a\x00b", "", "/a /ac"},
	{"not UTF-8", "User-agent: *\nDisallow: /\xe9t\xe9", "/e", "/%E9t%e9/x /\xe9t\xe9"},
	{"longest match", "User-agent: *\nDisallow: /\nAllow: /a\nDisallow: /a/b", "/a /a/c", "/ /b /a/b/c"},
	{"order does not matter", "User-agent: *\nAllow: /a\nDisallow: /", "/a /a/c", "/ /b"},
	{"allow wins a tie", "User-agent: *\nDisallow: /a\nAllow: /a", "/a", ""},
	{"tie with star", "User-agent: *\nDisallow: /*.html\nAllow: /p.html", "/p.html", "/q.html"},
	{"star", "User-agent: *\nDisallow: /*/x\nDisallow: /a*b*c", "/x /abb /acb", "/q/x /q/r/x1 /abc /a1b2c3"},
	{"stars collapse", "User-agent: *\nDisallow: /a***b", "/a", "/ab /axb"},
	{"anchor", "User-agent: *\nDisallow: /a$\nDisallow: /*.php$", "/ab /a/ /x.php?y", "/a /x.php /.php.php"},
	{"star and anchor", "User-agent: *\nDisallow: /a*$", "/b", "/a /ab"},
	{"anchored parts do not overlap", "User-agent: *\nDisallow: /aba*aba$", "/aba /ababa", "/abaaba /abaxaba"},
	{"dollar inside", "User-agent: *\nDisallow: /a$b", "/a", "/a$b /a%24b /a$bc"},
	{"escaped dollar ends nothing", "User-agent: *\nDisallow: /a%24", "/a", "/a$b /a$"},
	{"escaped star is a star", "User-agent: *\nDisallow: /f-%2A.html", "/f-x.html", "/f-*.html /f-%2a.html"},
	{"only a star", "User-agent: *\nDisallow: *", "", "/ /a"},
	{"no slash", "User-agent: *\nDisallow: a\nDisallow: *b", "/a", "/b /ab"},
	{"escapes", "User-agent: *\nDisallow: /%7ejoe/\nDisallow: /~jim/\nDisallow: /%62%61%7A\nDisallow: /ツ\nDisallow: /%e3%81%82",
		"/joe /ba", "/~joe/ /%7Ejoe/ /%7ejoe/ /%7Ejim/ /baz /%E3%83%84 /%e3%83%84/ /ツ /あ /%E3%81%82"},
	{"escaped slash is no slash", "User-agent: *\nDisallow: /a%2fb\nDisallow: /c/d", "/a/b /c%2Fd", "/a%2Fb /a%2fb /c/d"},
	{"what is never plain", "User-agent: *\nDisallow: /a b\nDisallow: /c%22\nDisallow: /*[", "/a /c", "/a%20b /c\" /x%5B /x["},
	{"broken escapes", "User-agent: *\nDisallow: /a%\nDisallow: /b%zz%4\nDisallow: /c%%41", "/cA", "/a% /a%25x /b%zz%4 /c%A"},
	{"query of the RFC", "User-agent: *\nDisallow: /foo/bar?baz=https://foo.bar\nDisallow: /q?u=https%3A%2F%2Fx",
		"/foo/bar?baz=http://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar /foo/bar?baz=https://foo.bar /q?u=https://x /q?u=https%3a%2f%2fx/y"},
	{"escapes without a query of its own", "User-agent: *\nDisallow: /*%2F\nDisallow: /*u=a:", "/a/b /a?b/c", "/a?x=%2F /a%2f /x?u=a:"},
	{"index pages", "User-agent: *\nDisallow: /\nAllow: /a/index.html\nAllow: /index.htm", "/ /a/ /a/index.html /index.html", "/a/b /b"},
	{"query", "User-agent: *\nDisallow: /*?\nAllow: /a?ok", "/a /a?ok=1", "/b?c /a?no"},
}

func TestVerdicts(t *testing.T) {
	for _, c := range verdictCases {
		direct := Parse([]byte(c.file), "Seine/1.0 (+https://example.com)")
		loaded, err := Load(direct.Append(nil))
		if err != nil {
			t.Fatal(c.name, err)
		}
		for _, r := range []*Rules{direct, loaded} {
			for want, paths := range map[bool]string{true: c.allowed, false: c.denied} {
				for p := range strings.SplitSeq(paths, " ") {
					if p == "" {
						continue
					}
					if got := r.Allowed([]byte(p)); got != want {
						t.Errorf("%s: %q allowed = %v: %+v", c.name, p, got, r.Explain([]byte(p)))
					}
				}
			}
		}
	}
}

func TestZeroRulesAllow(t *testing.T) {
	var r Rules
	if !r.Allowed([]byte("/a")) || r.Delay() != 0 || r.Sitemaps() != nil || r.Len() != 0 {
		t.Error("the zero Rules forbid")
	}
	if v := r.Explain([]byte("/a")); v != (Verdict{Allowed: true}) {
		t.Errorf("%+v", v)
	}
}

func TestExplain(t *testing.T) {
	file := "# head\nUser-agent: *\nDisallow: /\n\nUser-agent: Seine\nDisallow: /a*b$\r\nAllow: /ä\n"
	for _, c := range []struct {
		agent, path string
		want        Verdict
	}{
		{"seine", "/axb", Verdict{false, "seine", "Disallow: /a*b$", 6}},
		{"seine", "/%c3%a4", Verdict{true, "seine", "Allow: /%C3%A4", 7}},
		{"seine", "/", Verdict{true, "seine", "", 0}},
		{"other", "/x", Verdict{false, "*", "Disallow: /", 3}},
	} {
		if got := Parse([]byte(file), c.agent).Explain([]byte(c.path)); got != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.agent, c.path, got, c.want)
		}
	}
}

func TestDelay(t *testing.T) {
	const head = "User-agent: *\n"
	for file, want := range map[string]time.Duration{
		head + "Crawl-delay: 5":                                             5 * time.Second,
		head + "crawl-delay:0.25 # quick":                                   250 * time.Millisecond,
		head + "Crawl-delay: 2\nCrawl-delay: 1":                             2 * time.Second,
		head + "Crawl-delay: -1":                                            0,
		head + "Crawl-delay: soon":                                          0,
		head + "Crawl-delay: NaN\n":                                         0,
		head + "Crawl-delay: Inf\n":                                         0,
		head + "Crawl-delay: 1e300\n":                                       24 * time.Hour,
		"Crawl-delay: 5\n" + head:                                           0,
		head + "Crawl-delay: 5\nUser-agent: seine\nDisallow:":               0,
		head + "Disallow:\nUser-agent: seine\nCrawl-delay: 3\nDisallow: /a": 3 * time.Second,
		head + "Disallow:\nUser-agent: other\nCrawl-delay: 3\nDisallow: /a": 0,
	} {
		r := Parse([]byte(file), "seine")
		back, err := Load(r.Append(nil))
		if err != nil || r.Delay() != want || back.Delay() != want {
			t.Errorf("%q: %v and %v, want %v (%v)", file, r.Delay(), back.Delay(), want, err)
		}
	}
}

func TestSitemaps(t *testing.T) {
	file := "Sitemap: https://a.example/s.xml\nUser-agent: other\nDisallow: /\nsite-map:/b.xml \nSITEMAP: https://c.example/?a=%2f&b\nSitemap:\n"
	r := Parse([]byte(file), "seine")
	back, err := Load(r.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := "[https://a.example/s.xml /b.xml https://c.example/?a=%2f&b]"
	if fmt.Sprint(r.Sitemaps()) != want || fmt.Sprint(back.Sitemaps()) != want {
		t.Errorf("%v, %v", r.Sitemaps(), back.Sitemaps())
	}
}

// At least 500 KiB are read; behind the limit nothing is, and not half a line.
func TestSize(t *testing.T) {
	filler := bytes.Repeat([]byte("# nothing at all\n"), 512<<10/17)
	file := append([]byte("User-agent: *\n"), filler...)
	file = append(file, "Disallow: /a\n"...)
	if Parse(file, "seine").Allowed([]byte("/a")) {
		t.Error("a rule behind 512 KiB is not seen")
	}
	file = append([]byte("User-agent: *\n"), bytes.Repeat([]byte("#"), MaxBytes)...)
	copy(file[MaxBytes-len("\nDisallow: /"):], "\nDisallow: /abc")
	if !Parse(file, "seine").Allowed([]byte("/x")) {
		t.Error("half a line was taken for a rule")
	}
	long := "User-agent: *\nDisallow: /" + strings.Repeat("a", 2*maxLine) + "\nDisallow: /b"
	r := Parse([]byte(long), "seine")
	if r.Allowed([]byte("/b")) || r.Allowed([]byte("/"+strings.Repeat("a", maxLine))) || !r.Allowed([]byte("/a")) {
		t.Error("long lines")
	}
}

func TestLoadRefuses(t *testing.T) {
	whole := Parse([]byte("Sitemap: /s\nUser-agent: *\nCrawl-delay: 1\nDisallow: /abc\nDisallow: /abd$\n"), "seine").Append(nil)
	for n := range whole {
		if _, err := Load(whole[:n]); !errors.Is(err, ErrFormat) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	if _, err := Load(append(bytes.Clone(whole), 0)); !errors.Is(err, ErrFormat) {
		t.Error("bytes left over")
	}
	whole[0]++
	if _, err := Load(whole); !errors.Is(err, ErrFormat) {
		t.Error("another version")
	}
}

func TestAllowedAllocates(t *testing.T) {
	r := Parse([]byte("User-agent: *\nDisallow: /a*b*c$\nDisallow: /x?u=http://\nAllow: /ä\n"), "seine")
	for _, p := range []string{"/axxbxx", "/%c3%a4%20", "/x?u=http%3A%2F", "/" + strings.Repeat("%e4", 600)} {
		path := []byte(p)
		if n := testing.AllocsPerRun(100, func() { r.Allowed(path) }); n != 0 {
			t.Errorf("%s: %v allocations", p, n)
		}
	}
}

func TestToken(t *testing.T) {
	for agent, want := range map[string]string{
		"seine/1.0 (+x)": "seine", "My_Bot-x 2": "My_Bot-x", "": "", "*": "", "2bot": "2bot", "MJ12bot/v1.4.8 (http://x/)": "MJ12bot",
		"Mozilla/5.0 (compatible; Foobot/1.0; +https://example.com/bot)":                                 "Foobot",
		"mozilla/5.0 (COMPATIBLE;Foo-2bot)":                                                              "Foo-2bot",
		"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Foobot/2.1; +http://x) Chrome/1": "Foobot",
		"Mozilla/5.0 (X11; Linux x86_64)":                                                                "Mozilla", "Mozilla/5.0 (compatible; )": "Mozilla", "Mozilla/5.0 (compatible": "Mozilla",
		"Foobot/1 (compatible; Other/2)": "Foobot", "Mozillabot (compatible; Other/2)": "Mozillabot",
		"(compatible; Foobot/1)": "", "/1.0": "", " seine": "", "ñbot": "", "{x}": "",
	} {
		if got := Token(agent); got != want {
			t.Errorf("%q: %q", agent, got)
		}
	}
}

// TestWebCases reads the shared cases of files.
func TestWebCases(t *testing.T) {
	dir := filepath.Join(filepath.Dir(corpus(t)), "webcases")
	for _, c := range []struct {
		file, agent string
		allowed     bool
	}{
		{"N13.robots.txt", "Mozilla/5.0 (compatible; Foobot/1.0; +https://example.com/bot)", false},
		{"N13.robots.txt", "Foobot", false},
		{"N13.robots.txt", "Mozilla/5.0", true},
		{"N14.robots.txt", "MJ12bot", true},
		{"N14.robots.txt", "MJ07/1.0", false},
	} {
		file, err := os.ReadFile(filepath.Join(dir, c.file))
		if err != nil {
			t.Fatal(err)
		}
		if v := Parse(file, c.agent).Explain([]byte("/x")); v.Allowed != c.allowed {
			t.Errorf("%s for %s: %+v", c.file, c.agent, v)
		}
	}
}

// TestUTF16: either order, with and without a mark, whole and cut.
func TestUTF16(t *testing.T) {
	const file = "User-agent: *\r\nDisallow: /é\r\nAllow: /é/open\r\n"
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, mark := range []string{"", "\ufeff"} {
			var wide []byte
			for _, u := range utf16.Encode([]rune(mark + file)) {
				wide = order.AppendUint16(wide, u)
			}
			for _, body := range [][]byte{wide, wide[:len(wide)-1]} { // the other cuts a line feed in half
				r := Parse(body, "seine")
				if r.Allowed([]byte("/%C3%A9")) || !r.Allowed([]byte("/%C3%A9/open")) {
					t.Errorf("%v, mark %q: %+v", order, mark, r.Explain([]byte("/%C3%A9")))
				}
			}
		}
	}
	for _, short := range []string{"", "\xff", "\xff\xfe", "\x00", "\x00\x00", "a\x00"} {
		if !Parse([]byte(short), "seine").Allowed([]byte("/")) {
			t.Errorf("%q forbids", short)
		}
	}
}
