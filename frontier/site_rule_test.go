package frontier

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestSetSite: a site's own rule begins with what it had, and stands before others.
func TestSetSite(t *testing.T) {
	s := DefaultSettings()
	s.Sites = []SiteRule{{Match: "*.example", Auth: "u:p", Delay: new(2 * time.Second)}}
	old := s.Sites
	s.SetSite("a.example", func(r *SiteRule) { r.Delay = new(5 * time.Second) })
	if s.DelayOf("a.example") != 5*time.Second || s.Rule("a.example").Auth != "u:p" || s.DelayOf("b.example") != 2*time.Second || len(old) != 1 || old[0].Match != "*.example" {
		t.Errorf("%+v", s.Sites)
	}
	s.SetSite("a.example", func(r *SiteRule) { r.PerSite = 3 })
	if r := s.Rule("a.example"); len(s.Sites) != 2 || r.PerSite != 3 || *r.Delay != 5*time.Second {
		t.Errorf("%+v", s.Sites)
	}
	s.SetSite("a.example", func(r *SiteRule) { *r = SiteRule{Match: r.Match} })
	if s.DelayOf("a.example") != s.Delay {
		t.Errorf("the rule behind it came back: %+v", s.Sites)
	}
	s.SetSite("a.example", func(r *SiteRule) { r.Delay, r.MaxPages = new(time.Duration(0)), new(int64(0)) })
	s.MaxPerSite = 9
	if text, err := json.Marshal(s.Sites[0]); err != nil || string(text) != `{"match":"a.example","max_pages":0,"delay":"0s"}` {
		t.Errorf("%s %v", text, err)
	}
	if err := s.Validate(); err != nil || s.DelayOf("a.example") != 0 || s.CapOf("a.example") != 0 {
		t.Errorf("no delay and no cap: %v, %d, %v", s.DelayOf("a.example"), s.CapOf("a.example"), err)
	}
	s.SetSite("c.test", func(r *SiteRule) { r.MaxPages = new(int64(7)) })
	if s.SetSite("c.test", func(r *SiteRule) { r.MaxPages = nil }); len(s.Sites) != 2 || s.Rule("c.test") != nil {
		t.Errorf("%+v", s.Sites)
	}
}

// A header that no request can carry would leave each URL of the site dead.
func TestSiteRuleHeaders(t *testing.T) {
	for h, why := range map[[2]string]string{
		{"Host", "secret"}:       `header "Host" is set`,
		{"connection", "secret"}: `header "connection" is set`,
		{"X", "secret\x01"}:      `header "X" has a value`,
		{"X: secret", ""}:        "a header has a name",
		{"X@", "secret"}:         "a header has a name",
		{"", "secret"}:           "a header has a name",
	} {
		s := DefaultSettings()
		s.Sites = []SiteRule{{Match: "a.example", Headers: map[string]string{h[0]: h[1]}}}
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "a.example: "+why) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", h, err)
		}
	}
}

// A rule's user agent is one line, its addresses are addresses.
func TestSiteRuleIdentity(t *testing.T) {
	for _, c := range []struct {
		rule SiteRule
		why  string
	}{
		{SiteRule{UserAgent: "bot/1 (+https://a.example)", Bind: []string{"192.0.2.7", "2001:db8::/64", "192.0.2.0/29"}}, ""},
		{SiteRule{UserAgent: "a\nb"}, `user_agent is "a\nb"`},
		{SiteRule{UserAgent: "a", Headers: map[string]string{"user-agent": "b"}}, "user_agent and a header User-Agent"},
		{SiteRule{Bind: []string{"192.0.2.7", "a.example"}}, `bind has "a.example"`},
		{SiteRule{Bind: []string{""}}, `bind has ""`},
		{SiteRule{Bind: []string{"192.0.2.0/33"}}, `bind has "192.0.2.0/33"`},
	} {
		s := DefaultSettings()
		c.rule.Match = "a.example"
		s.Sites = []SiteRule{c.rule}
		switch err := s.Validate(); {
		case c.why == "" && err != nil, c.why != "" && (err == nil || !strings.Contains(err.Error(), "a.example: "+c.why)):
			t.Errorf("%+v: %v", c.rule, err)
		case c.rule.isEmpty():
			t.Errorf("%+v is not empty", c.rule)
		}
	}
	if got := (&SiteRule{Bind: []string{"192.0.2.7", "::1"}}).Bound(); got != "192.0.2.7,::1" {
		t.Error(got)
	}
}
