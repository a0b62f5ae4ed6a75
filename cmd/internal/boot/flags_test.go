package boot

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"seine/extract"
	"seine/frontier"
)

func TestRedisConfig(t *testing.T) {
	secret := write(t, "from file\n")
	cases := []struct {
		flags RedisFlags
		env   []string
		want  string
	}{
		{RedisFlags{Redis: "a:1,b"}, nil, "[a:1 b]  false"},
		{RedisFlags{Redis: "redis://u:p@h:1,i:2/5"}, nil, "[redis://u:p@h:1,i:2/5]  false"},
		{RedisFlags{Redis: "rediss://h:1"}, []string{passwordEnv + "=from env"}, "[rediss://h:1] from env true"},
		{RedisFlags{Redis: "h:1", RedisPasswordFile: secret}, []string{passwordEnv + "=x"}, "[h:1] from file false"},
		{RedisFlags{Redis: "rediss+sentinel://m@h:1", RedisUser: "app"}, nil, "[rediss+sentinel://m@h:1]  true"},
	}
	for _, c := range cases {
		e, err := c.flags.Config("x", c.env)
		if err != nil {
			t.Error(err)
			continue
		}
		if e.Username != c.flags.RedisUser {
			t.Errorf("%s: user %q", c.flags.Redis, e.Username)
		}
		if got := fmt.Sprint(e.Addrs, " ", string(e.Password), " ", e.TLS.Enabled); got != c.want {
			t.Errorf("%s: %s, want %s", c.flags.Redis, got, c.want)
		}
	}
	for _, bad := range []RedisFlags{
		{Redis: "http://h"}, {Redis: ""}, {Redis: "redis://u:sesame%zz@h"}, {Redis: "redis://:sesame@h/x"},
		{Redis: "h:1", RedisCA: secret}, {Redis: "h", RedisPasswordFile: "/nowhere"},
		{Redis: "redis+sentinel://m@h", RedisSentinelPasswordFile: "/nowhere"}, {Redis: "redis+sentinel://h"}, {Redis: "redis+sentinel://u:sesame@h"},
	} {
		_, err := bad.Config("x", nil)
		if !errors.Is(err, ErrUsage) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestCompareNamesBothValues(t *testing.T) {
	stored := frontier.DefaultSettings()
	two := 2 * time.Second
	same := CrawlFlags{Delay: &stored.Delay}
	if err := frontier.Compare(&stored, same.Apply, ""); err != nil {
		t.Error(err)
	}
	c := CrawlFlags{Delay: &two, Deny: []string{"x"}}
	err := frontier.Compare(&stored, c.Apply, "")
	if !errors.Is(err, frontier.ErrDiffers) {
		t.Fatal(err)
	}
	for _, want := range []string{`--delay: the crawl has "1s", given "2s"`, `--deny: the crawl has "", given "x"`, "frontier set --delay"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	stored.Deny = []string{"x"}
	c = CrawlFlags{Deny: []string{""}}
	if s := stored; true {
		if c.Apply(&s); s.Deny != nil {
			t.Error("an empty value does not empty a list")
		}
	}
}

// The help of --follow names the kinds of each set, and all others.
func TestFollowHelp(t *testing.T) {
	field, _ := reflect.TypeFor[CrawlFlags]().FieldByName("Follow")
	help := field.Tag.Get("help")
	var named extract.Kinds
	for _, set := range []string{"navigation", "requisites", "syndication"} {
		_, list, _ := strings.Cut(help, set+" (")
		list, _, _ = strings.Cut(list, ")")
		got, err := extract.ParseKinds(strings.Split(list, ", "))
		want, _ := extract.ParseKinds([]string{set})
		if err != nil || got != want {
			t.Errorf("%s has %s in the help: %v", set, list, err)
		}
		named |= want
	}
	_, list, _ := strings.Cut(help, "In no set but all: ")
	list, _, _ = strings.Cut(list, ".")
	others, err := extract.ParseKinds(strings.Split(list, ", "))
	if err != nil || others != extract.All&^named {
		t.Errorf("in no set are %s in the help: %v", list, err)
	}
}

func TestProcessFlags(t *testing.T) {
	cases := []struct {
		flags ProcessFlags
		fault string
	}{
		{ProcessFlags{Concurrency: 1, Out: []string{"x"}}, ""},
		{ProcessFlags{Concurrency: 1, Embedded: true}, ""},
		{ProcessFlags{Concurrency: 1}, "--out"},
		{ProcessFlags{Out: []string{"x"}, MetricsAddr: "x"}, "metrics-addr"},
		{ProcessFlags{Out: []string{"x"}, MetricsAddr: "[::1]:70000"}, "metrics-addr"},
		{ProcessFlags{Out: []string{"x"}, MetricsAddr: "localhost:9108", Pprof: true}, ""},
		{ProcessFlags{Out: []string{"x"}, Pprof: true}, "--metrics-addr"},
		{ProcessFlags{Concurrency: 1, Out: []string{"x"}, State: "d"}, "--embedded"},
	}
	for _, c := range cases {
		err := c.flags.Check()
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%+v: %v", c.flags, err)
		}
	}
}

func TestFetchConfig(t *testing.T) {
	var g grammar
	if code, _, e := run(t, &g, nil, "--contact", "https://me.example", "--max-body", "1M", "--allow-net", "127.0.0.0/8", "--proxy", "http://u:sesame@p.example:1", "--retry-codes", "500,503"); code != 0 {
		t.Fatal(e)
	}
	c, err := g.Fetch("", []string{"NO_PROXY=a.example"})
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxBody != 1<<20 || c.MaxHeader != 32<<10 || len(c.AllowNet) != 1 || c.NoProxy != "a.example" || len(g.RetryCodes) != 2 ||
		!strings.HasPrefix(c.UserAgent, "seine/") || !strings.HasSuffix(c.UserAgent, " (+https://me.example)") {
		t.Errorf("%+v", c)
	}
	if _, out, _ := run(t, &g, nil, "--proxy", "http://u:sesame@p.example:1", "--print-config"); strings.Contains(out, "sesame") {
		t.Error("a proxy's password shows")
	}
	g.ConnectTo = []string{"x"}
	if _, err := g.Fetch("x", nil); !errors.Is(err, ErrUsage) {
		t.Error(err)
	}
}

func TestScaled(t *testing.T) {
	var c Count
	var s Size
	for text, want := range map[string]int64{"0": 0, "12": 12, "10k": 10000, "2M": 2000000, "1.5G": 1500000000} {
		if err := c.UnmarshalText([]byte(text)); err != nil || int64(c) != want {
			t.Errorf("%s: %d %v", text, c, err)
		}
	}
	for text, want := range map[string]int64{"1k": 1024, "1MiB": 1 << 20, "2GB": 2 << 30, "7B": 7} {
		if err := s.UnmarshalText([]byte(text)); err != nil || int64(s) != want {
			t.Errorf("%s: %d %v", text, s, err)
		}
	}
	for _, text := range []string{"", "k", "-1", "1.5", "NaN", "inf", "1e300", "1x"} {
		if err := c.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a count: %d", text, c)
		}
	}
}

// Each flag of a crawl that is not of its layout is a setting of the same name.
func TestFlagsAreSettings(t *testing.T) {
	settings := reflect.TypeFor[frontier.Settings]()
	for _, flag := range reflect.VisibleFields(reflect.TypeFor[CrawlFlags]()) {
		setting, ok := settings.FieldByName(flag.Name)
		if inLayout := flag.Tag.Get("group") == "crawl"; ok == inLayout {
			t.Errorf("%s: a setting %v, of the layout %v", flag.Name, ok, inLayout)
			continue
		}
		if of := flag.Type; ok && of != setting.Type && (of.Kind() != reflect.Pointer || of.Elem() != setting.Type) {
			t.Errorf("%s is %v, the setting %v", flag.Name, of, setting.Type)
		}
	}
}
