package canon

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// bases and links seed the fuzz targets.
var bases = []string{
	"http://example.com/", "https://example.com/a/b/c?d=e", "http://u:p@h:8080/x//y/;z?", "https://127.0.0.1:8443/%2F/~a/b%7e",
	"http://[2001:db8::1]/a", "https://www.example.co.uk./index.html",
}

var links = []string{
	"", "a", "a/b", "../a", "./a", "..", ".", "../../../x", "/a", "//h/a", "///h", "?q", "?", "#f", "a#f", "a?b#c", "a?b?c",
	"a//b", "a/../b", "a/./b", "/..//a", "%2e%2E/a", "a/%2e", ".%2e/x", "...", "a..b", "..a", "a/..?x", "a:b", "a/b:c", "1:2",
	"http:a", "http:/a", "http://h", "HTTP://H/", "https://h:443/", "http://h:80", "http://h:080/", "http://h:/", "http://h:65536",
	"http://H.Example/%zz", "http://h?x", "http://h#x", "http://u@h/", "http://a:b@h:1/", "http://1.2.3.4/", "http://1.2.3/",
	"http://0x7f.1/", "http://1.2.3.4./", "http://a.1", "http://a..b/", "http://a_b/", "http://-a-/", "http://xn--a/", "http://[::1]/",
	"http://[[::1]]/", "http://é.fr/é?é", "a b", "a%20b", "a\\b", "\\\\h\\a", " a ", "a\nb", "a\tb?c\td", "a #", "a? #", "a'b?c'd",
	"a^b`c{d}|e", "?a\"b<c>d`e{f}|g^h", "\x7f?\x7f", "\xff?\xff", "mailto:a@b", "javascript:alert(1)", "data:,x", "ht\ntp://h/", "a%",
	"a%4", "%41%7E%2f?%3d%3D", "http://h%41/", "http://h/\x00", "http://1.-2/", "http://%30x7f.1/", "//h:80/", "//h:443/x",
}

// FuzzFastPath holds the fast path equal to the library.
func FuzzFastPath(f *testing.F) {
	for i, l := range links {
		f.Add(bases[i%len(bases)], l)
		f.Add("", l)
	}
	p := unguarded()
	f.Fuzz(func(t *testing.T, base, link string) { sameAsLibrary(t, p, base, link) })
}

// fataler is what testing and rapid have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func sameAsLibrary(t fataler, p *Parser, base, link string) {
	t.Helper()
	var from, quick, slow URL
	var on *URL
	if p.slow(&from, nil, []byte(base), nil) == nil {
		on = &from
	}
	if !p.fast(&quick, on, []byte(link), false) {
		return
	}
	if err := p.slow(&slow, on, []byte(link), nil); err != nil {
		t.Fatalf("%q on %q: fast path %s, library %v", link, from.buf, quick.buf, err)
	}
	if !bytes.Equal(quick.buf, slow.buf) {
		t.Fatalf("%q on %q: fast path %s, library %s", link, from.buf, quick.buf, slow.buf)
	}
	if quick.auth != slow.auth || quick.host != slow.host || quick.hostEnd != slow.hostEnd || quick.path != slow.path || quick.query != slow.query {
		t.Fatalf("%q on %q: parts %+v, library %+v", link, from.buf, quick, slow)
	}
	if !bytes.Equal(quick.Key(), slow.Key()) {
		t.Fatalf("%q on %q: key %s, library %s", link, from.buf, quick.Key(), slow.Key())
	}
}

// pieces are what generated links are made of: what matters to a parser.
var pieces = []string{
	"/", "/", "/", "//", "\\", "?", "#", ":", "@", ".", "..", "%2e", "%2E", "a", "b", "Z", "0", "9", "1.2.3.4", "0x7", "h.de", "h.de.", "http:",
	"https://", "HTTP://", "http://h", "80", "443", "8080", "%", "%4", "%41", "%7e", "%2f", "%25", "%3d", "%20", "&", "=", ";", "'", " ", "\t",
	"\n", "é", "ß", "\xff", "\x00", "[", "]", "[::1]", "^", "|", "`", "{", "\"", "<", "~", "+", "-", "_", "utm_source=x", "xn--", "u:p@",
	";jsessionid=0123456789abcdefghijklmn", "/(S(0123456789abcdefghijklmn))", "sid=0123456789abcdefghijklmn", ";cfid=1", "&cfid=1", "cftoken=2",
}

func genText(max int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, max).Draw(t, "pieces"), "")
	})
}

func TestFastPathIsLibrary(t *testing.T) {
	p := unguarded()
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.SampledFrom(bases).Draw(t, "base") + genText(6).Draw(t, "more")
		sameAsLibrary(t, p, base, genText(12).Draw(t, "link"))
	})
}

// FuzzLaws holds the laws of fetch form and key, whatever is parsed.
func FuzzLaws(f *testing.F) {
	for i, l := range links {
		f.Add(bases[i%len(bases)], l)
	}
	laws := newLaws()
	f.Fuzz(func(t *testing.T, base, link string) { laws.check(t, base, link) })
}

func TestLaws(t *testing.T) {
	laws := newLaws()
	rapid.Check(t, func(t *rapid.T) {
		laws.check(t, rapid.SampledFrom(bases).Draw(t, "base")+genText(4).Draw(t, "more"), genText(14).Draw(t, "link"))
	})
}

// laws holds a parser for each key rule.
type laws struct{ plain, strip, sort, both *Parser }

func newLaws() laws {
	with := func(strip, sort bool) *Parser {
		return NewParser(Config{MaxLength: -1, MaxSegments: -1, MaxRepeats: -1, MaxArgs: -1, StripParams: strip, SortQuery: sort})
	}
	return laws{with(false, false), with(true, false), with(false, true), with(true, true)}
}

func (l laws) check(t fataler, base, link string) {
	t.Helper()
	var from URL
	if l.plain.Parse(&from, []byte(base)) != nil {
		return
	}
	for _, p := range []*Parser{l.plain, l.strip, l.sort, l.both} {
		var u, again, key URL
		if p.Resolve(&u, &from, []byte(link), nil) != nil {
			if len(u.Fetch()) != 0 {
				t.Fatalf("%q on %q: failed and left %q", link, base, u.Fetch())
			}
			continue
		}
		if err := p.Parse(&again, u.Fetch()); err != nil || !bytes.Equal(again.Fetch(), u.Fetch()) {
			t.Fatalf("fetch form of %q is %q, of that %q %v", link, u.Fetch(), again.Fetch(), err)
		}
		if !bytes.Equal(again.Key(), u.Key()) {
			t.Fatalf("key of %q is %q, of its fetch form %q", link, u.Key(), again.Key())
		}
		if err := p.Parse(&key, u.Key()); err != nil || !bytes.Equal(key.Key(), u.Key()) {
			t.Fatalf("key of %q is %q, of that %q %v", link, u.Key(), key.Key(), err)
		}
		if key.HasUserinfo() {
			t.Fatalf("key %q holds credentials", u.Key())
		}
		if p == l.plain && !sameRequest(&u, &key) {
			t.Fatalf("%q has key %q, which asks for something else", u.Fetch(), u.Key())
		}
		if got := u.AppendRedacted(nil); bytes.Contains(got[:len(got)-len(u.Target())], []byte("@")) {
			t.Fatalf("%q redacted is %q", u.Fetch(), got)
		}
	}
}

// sameRequest says that key asks the same of the same server as u: decoding
// all escapes of unreserved characters, one after the other and nothing twice,
// turns both into the same.
func sameRequest(u, key *URL) bool {
	return bytes.Equal(u.HostPort(), key.HostPort()) && bytes.Equal(tokens(u.Target()), tokens(key.Target()))
}

// tokens rewrites s as a list of what a server reads: characters and decoded
// escapes, an escaped character and the same one plain distinguished only where
// RFC 3986 tells them apart.
func tokens(s []byte) (out []byte) {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '%' && i+2 < len(s) && unhex[s[i+1]] < 16 && unhex[s[i+2]] < 16 {
			c = unhex[s[i+1]]<<4 | unhex[s[i+2]]
			mark := byte('E')
			if strings.IndexByte("-._~", c) >= 0 || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' {
				mark = 'P'
			}
			out = append(out, mark, c)
			i += 2
		} else {
			out = append(out, 'P', c)
		}
	}
	return out
}

// FuzzIPv6 compares address literals with net/netip, which prints all but
// embedded IPv4 addresses as browsers do.
func FuzzIPv6(f *testing.F) {
	for _, s := range []string{"::", "::1", "1::", "2001:db8::1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::1]", "[::1", "1::2::3"} {
		f.Add(s)
	}
	p := unguarded()
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsAny(s, "\t\n\r/?#\\@%") {
			return
		}
		var u URL
		err := p.Parse(&u, []byte("http://["+s+"]/"))
		addr, bad := netip.ParseAddr(s)
		if (err == nil) != (bad == nil && addr.Is6()) {
			t.Fatalf("%q: %v, netip %v", s, err, bad)
		}
		if err == nil && !addr.Is4In6() && string(u.Host()) != "["+addr.String()+"]" {
			t.Fatalf("%q: %s, netip %s", s, u.Host(), addr)
		}
	})
}

// FuzzLegacyQuery escapes queries in each kind of encoding.
func FuzzLegacyQuery(f *testing.F) {
	for i := range legacy {
		f.Add(i, "a?q=é€あ中한я&x")
		f.Add(i, "?\u203e\\\u2212\x1b\u00a5\xff")
	}
	p := unguarded()
	var base URL
	if err := p.Parse(&base, []byte("http://h/")); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, i int, link string) {
		if i < 0 || i >= len(legacy) {
			return
		}
		var u, utf URL
		err := p.Resolve(&u, &base, []byte(link), legacy[i])
		if other := p.Resolve(&utf, &base, []byte(link), nil); err != other {
			t.Fatalf("%q: %v, as UTF-8 %v", link, err, other)
		}
		if !bytes.Equal(u.Path(), utf.Path()) || u.HasQuery() != utf.HasQuery() {
			t.Fatalf("%q: %s, as UTF-8 %s", link, u.Fetch(), utf.Fetch())
		}
		if !isASCII(u.Fetch()) {
			t.Fatalf("%q: %q is not ASCII", link, u.Fetch())
		}
	})
}
