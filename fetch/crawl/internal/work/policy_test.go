package work

import (
	"strings"
	"testing"

	"seine/frontier"
	"seine/frontier/canon"
)

func parsed(t *testing.T, raw string) *canon.URL {
	t.Helper()
	u := new(canon.URL)
	if err := canon.NewParser(canon.Config{}).Parse(u, []byte(raw)); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestPolicyFilter(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(*frontier.Settings)
		url   string
		depth uint32
		want  Refusal
	}{
		{"plain", func(s *frontier.Settings) {}, "http://a.example/x", 99, Accepted},
		{"at the depth", func(s *frontier.Settings) { s.MaxDepth = 2 }, "http://a.example/x", 2, Accepted},
		{"too deep", func(s *frontier.Settings) { s.MaxDepth = 2 }, "http://a.example/x", 3, RefusedDepth},
		{"allowed", func(s *frontier.Settings) { s.Allow = []string{"/y", "/x$"} }, "http://a.example/x", 0, Accepted},
		{"not allowed", func(s *frontier.Settings) { s.Allow = []string{"/y"} }, "http://a.example/x", 0, RefusedRule},
		{"deny beats allow", func(s *frontier.Settings) { s.Allow, s.Deny = []string{"/x"}, []string{"a.ex"} }, "http://a.example/x", 0, RefusedRule},
		{"extension", func(s *frontier.Settings) { s.SkipExt = []string{".PDF"} }, "http://a.example/x.Pdf?y", 0, RefusedExtension},
		{"another extension", func(s *frontier.Settings) { s.SkipExt = []string{"pdf"} }, "http://a.example/x.pdf/y", 0, Accepted},
		{"as long as may be", func(*frontier.Settings) {}, "http://a.example/" + strings.Repeat("x", 8192-17), 0, Accepted},
		{"too long", func(*frontier.Settings) {}, "http://a.example/" + strings.Repeat("x", 8192-16), 0, RefusedTooLong},
		{"too long for this crawl", func(s *frontier.Settings) { s.MaxURL = 2048 }, "http://a.example/" + strings.Repeat("x", 2048-16), 0, RefusedTooLong},
		{"dot in a directory", func(s *frontier.Settings) { s.SkipExt = []string{"d/y"} }, "http://a.example/x.d/y", 0, Accepted},
	} {
		s := frontier.DefaultSettings()
		c.set(&s)
		pol, err := NewPolicy(&s)
		if err != nil {
			t.Fatal(err)
		}
		if got := pol.Filter(parsed(t, c.url), c.depth); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, RefusalNames[got], RefusalNames[c.want])
		}
	}
}

func TestPolicyScope(t *testing.T) {
	src := Source{site: "example.com", host: []byte("www.example.com")}
	for _, c := range []struct {
		scope, url, site string
		want             bool
	}{
		{"site", "http://x.example.com/", "example.com", true},
		{"site", "http://example.org/", "example.org", false},
		{"host", "http://www.example.com:8080/", "example.com", true},
		{"host", "http://x.example.com/", "example.com", false},
		{"any", "http://example.org/", "example.org", true},
	} {
		pol, err := NewPolicy(&frontier.Settings{Scope: c.scope})
		if err != nil {
			t.Fatal(err)
		}
		if got := pol.InScope(src, parsed(t, c.url), c.site); got != c.want {
			t.Errorf("%s of %s: %v", c.url, c.scope, got)
		}
	}
}

func TestPolicyClassAndRule(t *testing.T) {
	s := frontier.DefaultSettings()
	s.Priority = []string{"/news/=0", "/old=3"}
	s.Sites = []frontier.SiteRule{{Match: "*.example.com", PerSite: 2}, {Match: "example.com", PerSite: 3}, {Match: "a.org", PerSite: 4}}
	pol, err := NewPolicy(&s)
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]uint8{"http://a/news/old": 0, "http://a/old": 3, "http://a/x": defaultClass} {
		if got := pol.Class(parsed(t, url)); got != want {
			t.Errorf("class of %s is %d, want %d", url, got, want)
		}
	}
	for site, want := range map[string]int{"x.example.com": 2, "example.com": 2, "a.org": 4, "xa.org": 0, "b.a.org": 0} {
		got := 0
		if r := pol.SiteRule(site, ""); r != nil {
			got = r.PerSite
		}
		if got != want {
			t.Errorf("rule of %s has %d, want %d", site, got, want)
		}
	}
	if r := pol.SiteRule("a.org", `{"match":"a.org","per_site":9}`); r == nil || r.PerSite != 9 {
		t.Errorf("the shard's own rule gives way: %+v", r)
	}
}
