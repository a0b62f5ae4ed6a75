package canon

import (
	"slices"
	"strings"
	"testing"
)

func TestSites(t *testing.T) {
	for _, c := range []struct{ host, domain, byHost string }{
		{"www.example.com", "example.com", "www.example.com"},
		{"a.b.example.co.uk", "example.co.uk", "a.b.example.co.uk"},
		{"WWW.Example.COM", "example.com", "www.example.com"},
		{"www.example.com.", "example.com", "www.example.com"},
		{"example.com", "example.com", "example.com"},
		{"me.github.io", "me.github.io", "me.github.io"},
		{"github.io", "github.io", "github.io"},
		{"co.uk", "co.uk", "co.uk"},
		{"com", "com", "com"},
		{"localhost", "localhost", "localhost"},
		{"a.b.internal-name", "b.internal-name", "a.b.internal-name"},
		{"127.0.0.1", "127.0.0.1", "127.0.0.1"},
		{"[2001:db8::1]", "[2001:db8::1]", "[2001:db8::1]"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"a..example.com", "a..example.com", "a..example.com"},
		{".", ".", "."},
	} {
		for _, r := range []struct {
			rule LimitBy
			want string
		}{{ByDomain, c.domain}, {ByHost, c.byHost}} {
			if got := r.rule.SiteOf(c.host); got != r.want {
				t.Errorf("%s of %s is %q, want %q", r.rule, c.host, got, r.want)
			}
		}
	}
	if ByDomain.Validate() != nil || ByHost.Validate() != nil || LimitBy("port").Validate() == nil {
		t.Error("Validate of a site rule")
	}
	if !strings.Contains(SuffixVersion(), "public_suffix_list") {
		t.Errorf("version of the suffix list is %q", SuffixVersion())
	}
}

func TestSitesCache(t *testing.T) {
	s, p := NewSites(ByDomain), NewParser(Config{})
	var hosts []string
	for i := range 3 * siteSlots {
		hosts = append(hosts, "h"+strings.Repeat("x", i%50)+string(rune('a'+i%26))+".site"+strings.Repeat("y", i/50)+".com")
	}
	for range 2 {
		for _, h := range slices.Concat(hosts, []string{hosts[0], hosts[0]}) {
			if got := s.Of([]byte(h)); got.Name != ByDomain.SiteOf(h) || got.Hash != FingerprintOf([]byte(got.Name), nil).Site {
				t.Fatalf("%s: %+v", h, got)
			}
		}
	}
	u := parse(t, p, "", "https://www.example.com:8443/%7e")
	site, fp := s.Fingerprint(u)
	if want := FingerprintOf([]byte("example.com"), []byte("https://www.example.com:8443/~")); site.Name != "example.com" || fp != want {
		t.Errorf("%s: %+v %+v, want %+v", u.Fetch(), site, fp, want)
	}
	if got := (Fingerprint{Site: 0x0102030405060708, Key: 0x090a0b0c0d0e0f10}).Append(nil); string(got) != "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10" {
		t.Errorf("fingerprint appended as %x", got)
	}
}
