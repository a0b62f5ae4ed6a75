package frontier

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestSettingsJSON: settings come back as they were written, durations as texts,
// and those of a crawl that is older than a setting mean its default.
func TestSettingsJSON(t *testing.T) {
	s := DefaultSettings()
	s.MaxCrawlDelay = 90 * time.Second
	s.Sites = []SiteRule{{Match: "a.example", Delay: new(time.Minute), TLSLegacy: true}, {Match: "b.example"}}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"delay":"1s"`, `"max_crawl_delay":"1m30s"`, `"tls_legacy":true`} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("%s is not once in %s", want, text)
		}
	}
	var back Settings
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(s, back) {
		t.Errorf("%v: %+v", err, back)
	}
	var old Settings
	if err := json.Unmarshal([]byte(`{"delay":"2s"}`), &old); err != nil || old.Delay != 2*time.Second || old.CrawlDelayCap() != DefaultMaxCrawlDelay {
		t.Errorf("%v: %+v", err, old)
	}
}

func TestPurpose(t *testing.T) {
	for _, c := range []struct {
		purpose []string
		links   string
		fault   string
	}{
		{nil, "", ""}, {Purposes, "follow", ""}, {[]string{"search"}, "skip", ""}, {[]string{"ai"}, "", `purpose is "ai", must be one of search, ai-input, ai-train, tdm, archive`},
		{nil, "drop", `refused-links is "drop", must be one of skip, follow`},
	} {
		s := DefaultSettings()
		s.Purpose, s.RefusedLinks = c.purpose, c.links
		if err := s.Validate(); (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%+v: %v", c, err)
		}
		if s.FollowsRefused() != (c.links == "follow") {
			t.Errorf("%+v: followed", c)
		}
	}
}

func TestSettingsOfRobots(t *testing.T) {
	for _, c := range []struct {
		agent string
		most  time.Duration
		ok    bool
	}{{"MJ12bot", 0, true}, {"my_bot-2", 24 * time.Hour, true}, {"my bot", 0, false}, {"bot/1", 0, false}, {"", -1, false}, {"", 25 * time.Hour, false}} {
		s := DefaultSettings()
		s.RobotsAgent, s.MaxCrawlDelay = c.agent, c.most
		if err := s.Validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestMaxURL(t *testing.T) {
	for n, ok := range map[int]bool{0: true, 2048: true, 8192: true, 65536: true, 2047: false, 65537: false, -1: false} {
		s := DefaultSettings()
		s.MaxURL = n
		if err := s.Validate(); (err == nil) != ok {
			t.Errorf("%d: %v", n, err)
		}
	}
	if s := DefaultSettings(); s.LongestURL() != 8192 || (&Settings{}).LongestURL() != 8192 {
		t.Errorf("the default is %d", s.LongestURL())
	}
}

// A crawl that was made when there was but one digest keeps it, whatever new ones
// have.
func TestDigestOfOldCrawls(t *testing.T) {
	s := DefaultSettings()
	if s.DigestKind() != DigestXXH3 {
		t.Errorf("a new crawl has %s", s.DigestKind())
	}
	if err := json.Unmarshal([]byte(`{"delay":"2s"}`), &s); err != nil || s.DigestKind() != DigestSHA256 || s.Jitter != 0.5 {
		t.Errorf("an old one has %s, %+v, %v", s.DigestKind(), s, err)
	}
	if s.Digest = "md5"; s.Validate() == nil {
		t.Error("md5 is taken")
	}
}
