package boot

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/shard"
)

func TestCheckCrawlFlags(t *testing.T) {
	bad := func(v string) *string { return &v }
	second, zero, minus := -time.Second, 0, int64(-1)
	for want, c := range map[string]CrawlFlags{
		"scope is":        {Scope: bad("x")},
		"order is":        {Order: bad("x")},
		"robots is":       {Robots: bad("x")},
		"priority":        {Priority: []string{"a=7"}},
		"allow":           {Allow: []string{"["}},
		"delay is":        {Delay: &second},
		"per-site is":     {PerSite: &zero},
		"visit-urls is":   {VisitURLs: &zero},
		"max-pages":       {MaxPages: &minus},
		"error rate":      {ErrorRate: 5},
		"shards is":       {Shards: -1},
		"user-agent is":   {UserAgent: bad("a\nb")},
		"robots-agent is": {RobotsAgent: bad("gar bage")},
		"skip-ext is":     {SkipExt: []string{"gar bage"}},
		"kind of link":    {Follow: []string{"x"}},
	} {
		if err := c.Check(); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	good := CrawlFlags{SkipExt: []string{".jpg", "7z"}, RobotsAgent: bad("Example-bot_X"), Shards: 6, Follow: []string{"navigation", "loc"}, Deny: []string{""}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

func TestCheckFetchFlags(t *testing.T) {
	for _, f := range []FetchFlags{
		{Contact: "gar bage"}, {Contact: "garbage"}, {Contact: "https://a.example/)x"}, {Contact: "@"}, {Contact: "https:///x"},
		{RetryCodes: []int{-1}}, {RetryCodes: []int{0, 500}}, {RetryCodes: []int{600}},
	} {
		if err := f.Check(); !errors.Is(err, ErrUsage) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for _, contact := range []string{"", "https://example.com/bot?x=(1", "me@example.com", "mailto:me@example.com"} {
		f := FetchFlags{Contact: contact, RetryCodes: []int{429, 503}}
		if err := f.Check(); (err == nil) == strings.Contains(contact, "(") {
			t.Errorf("%s: %v", contact, err)
		}
	}
}

func TestOneLineSaysNothingTwice(t *testing.T) {
	if got := oneLine(errors.New("a: b: disk full\nb: disk full\r\nc\nc")); got != "a: b: disk full; c" {
		t.Error(got)
	}
}

// Shards with one cause are named together, however deep their errors are.
func TestOneLineNamesShardsTogether(t *testing.T) {
	of := func(k int, cause string) error { return &shard.Error{Shard: k, Op: "tick", Err: errors.New(cause)} }
	err := fmt.Errorf("x: %w: %w", frontier.ErrPartial, errors.Join(of(0, "no"), of(1, "no"), errors.New("disk full"), of(4, "late"), of(1, "no"), of(2, "no")))
	want := "x: " + frontier.ErrPartial.Error() + ": shards 0, 1 and 2: tick: no; shard 4: tick: late; disk full"
	if got := oneLine(err); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
