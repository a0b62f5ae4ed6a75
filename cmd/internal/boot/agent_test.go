package boot

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"seine/frontier"
)

// TestCheckAgent: a crawl that obeys robots.txt has a name there.
func TestCheckAgent(t *testing.T) {
	for _, c := range []struct {
		agent, token, robots string
		ok                   bool
	}{
		{"", "", "obey", true}, // the program's own
		{"Foobot/1.0 (+https://example.com)", "", "obey", true},
		{"Mozilla/5.0 (compatible; Foobot/1.0)", "", "obey", true},
		{"MJ12bot", "", "obey", true},
		{"(+https://example.com)", "", "obey", false},
		{"/1.0", "", "obey", false},
		{"/1.0", "foobot", "obey", true},
		{"/1.0", "", "ignore", true},
	} {
		s := frontier.DefaultSettings()
		s.UserAgent, s.RobotsAgent, s.Robots = c.agent, c.token, c.robots
		if err := CheckAgent(&s); (err == nil) != c.ok || err != nil && (!errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "--robots-agent")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestWarnProxy: variables that name a proxy are logged in one line, which shows
// no credentials, and only where no proxy is given.
func TestWarnProxy(t *testing.T) {
	for _, c := range []struct {
		env, given []string
		want       string
	}{
		{nil, nil, ""},
		{[]string{"NO_PROXY=x", "HTTP_PROXY="}, nil, ""},
		{[]string{"HTTP_PROXY=http://u:secret@p:1"}, nil, "HTTP_PROXY"},
		{[]string{"https_proxy=http://u:secret@p:1", "ALL_PROXY=socks5://p"}, nil, "https_proxy ALL_PROXY"},
		{[]string{"HTTP_PROXY=http://p:1"}, []string{"http://q:1"}, ""},
	} {
		var out bytes.Buffer
		f := FetchFlags{Proxy: c.given}
		f.WarnProxy(c.env, slog.New(slog.NewTextHandler(&out, nil)))
		got := out.String()
		if strings.Count(got, "\n") != min(len(c.want), 1) || !strings.Contains(got, c.want) || strings.Contains(got, "secret") || (c.want != "") != strings.Contains(got, "--proxy") {
			t.Errorf("%v: %q", c.env, got)
		}
	}
}
