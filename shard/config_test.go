package shard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"seine/shard"
	"seine/shard/shardtest"
)

func TestConfigString(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg  shard.Config
		want string
	}{
		{shard.Config{}, "redis://127.0.0.1:6379"},
		{shard.Config{Addrs: []string{"a:1", "b"}}, "redis://a:1,b:6379"},
		{shard.Config{Addrs: []string{"a:1,b:2"}}, "redis://a:1,b:2"},
		{shard.Config{Addrs: []string{"redis://a"}}, "redis://a:6379"},
		{shard.Config{Addrs: []string{"redis://a/3"}}, "redis://a:6379/3"},
		{shard.Config{Addrs: []string{"rediss://user:p%40ss@a:1,b:2"}}, "rediss://user@a:1,b:2"},
		{shard.Config{Addrs: []string{"redis://:pass@[::1]:7000/"}}, "redis://[::1]:7000"},
		{shard.Config{Addrs: []string{"::1"}, Password: "pass"}, "redis://[::1]:6379"},
	} {
		if err := c.cfg.Validate(); err != nil {
			t.Errorf("%v: %v", c.cfg, err)
		}
		if got := c.cfg.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestConfigFaults(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]shard.Config{
		"redis:// or rediss://":  {Addrs: []string{"http://a:1"}},
		"not host:port":          {Addrs: []string{"a:b"}},
		"stands alone":           {Addrs: []string{"redis://a", "b"}},
		"number of a database":   {Addrs: []string{"redis://a/x"}},
		"no parameters":          {Addrs: []string{"redis://a?db=3"}},
		"password in the redis":  {Addrs: []string{"redis://u:%zz@a"}},
		"Conns is 9":             {Conns: 9},
		"DB is -1":               {DB: -1},
		"TryTimeout":             {TryTimeout: -1},
		"go together":            {TLS: shard.TLS{Enabled: true, CertFile: "x"}},
		"set up but not enabled": {TLS: shard.TLS{CAFile: "x"}},
	} {
		if err := cfg.Validate(); err == nil || !contains(err.Error(), want) {
			t.Errorf("want %q in: %v", want, err)
		}
	}
	err := shard.Config{Conns: 99, DB: -1, Addrs: []string{"a:b:c"}}.Validate()
	for _, want := range []string{"Conns", "DB", "host:port"} {
		if err == nil || !contains(err.Error(), want) {
			t.Errorf("all faults at once, want %q in: %v", want, err)
		}
	}
}

// However a configuration, a client or an error is printed, the password does
// not show.
func TestPasswordNeverShows(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	var shown strings.Builder
	for _, cfg := range []shard.Config{
		{Addrs: []string{"127.0.0.1:1"}, Password: password},
		{Addrs: []string{"redis://user:" + password + "@127.0.0.1:1"}},
		{Addrs: []string{"redis://user:" + password + "%zz@127.0.0.1:1"}},
		{Addrs: []string{"http://user:" + password + "@127.0.0.1:1"}},
		{Addrs: []string{"user:" + password + "@127.0.0.1:1"}},
		{Addrs: []string{"redis://user:" + password + "@127.0.0.1:x"}},
		{Addrs: []string{"redis://user:" + password + "@127.0.0.1:1", "x"}},
		{Addrs: []string{"redis://user:" + password + "/x@127.0.0.1:1/y"}},
	} {
		fmt.Fprintf(&shown, "%v %+v %#v %s\n", cfg, cfg, cfg, cfg)
		fmt.Fprintf(&shown, "%v %#v %+v\n", cfg.Password, cfg.Password, struct{ C shard.Config }{cfg})
		slog.New(slog.NewTextHandler(&shown, nil)).Info("x", "cfg", cfg, "secret", cfg.Password)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("x", "cfg", cfg, "secret", cfg.Password)
		json.NewEncoder(&shown).Encode([]any{cfg, cfg.Password})
		fmt.Fprintln(&shown, cfg.Validate())
		_, err := shard.Open(t.Context(), cfg)
		if err == nil {
			t.Fatal("something answers on port 1")
		}
		fmt.Fprintf(&shown, "%v %+v %#v\n", err, err, err)
	}
	s := shardtest.Start(t, shardtest.Config{Password: "another"})
	_, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs, Password: password})
	if err == nil {
		t.Fatal("a wrong password opens")
	}
	fmt.Fprintln(&shown, err)
	if i := strings.Index(shown.String(), password); i >= 0 {
		t.Errorf("the password shows: …%s", shown.String()[max(0, i-80):i+len(password)])
	}
}

// Any user and password may stand percent-encoded in a URL; the rest of it is
// read right, and the password does not show.
func FuzzURL(f *testing.F) {
	f.Add("user", "pass")
	f.Add("", "a@b:c/d?e#f%")
	f.Fuzz(func(t *testing.T, user, password string) {
		escaped := strings.ReplaceAll(url.PathEscape(user), ":", "%3A")
		cfg := shard.Config{Addrs: []string{"redis://" + escaped + ":" + url.PathEscape(password) + "@h:1/2"}}
		want := "redis://h:1/2"
		if user != "" {
			want = "redis://" + user + "@h:1/2"
		}
		if err := cfg.Validate(); err != nil || cfg.String() != want {
			t.Errorf("%q %q: %v, want %s (%v)", user, password, cfg, want, err)
		}
	})
}

func TestPasswordUserDB(t *testing.T) {
	t.Parallel()
	s := shardtest.Start(t, shardtest.Config{Password: "pa:s s"})
	for _, cfg := range []shard.Config{
		{Addrs: s.Addrs, Password: "pa:s s", DB: 3},
		{Addrs: []string{"redis://default:pa%3As%20s@" + s.Addrs[0] + "/3"}},
		{Addrs: []string{"redis://" + s.Addrs[0] + "/3"}, Password: "pa:s s"},
	} {
		c, err := shard.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		run(t, c, 0, count, "k", 1)
	}
	n := s.Nodes[0].Client()
	if v, err := n.Do(t.Context(), "select", 3).Result(); err != nil {
		t.Fatal(v, err)
	}
	if v := s.Nodes[0].Do(t, "info", "keyspace"); !contains(fmt.Sprint(v), "db3:keys=1") || contains(fmt.Sprint(v), "db0") {
		t.Errorf("keyspace: %v", v)
	}
}

func TestClusterHasNoDatabases(t *testing.T) {
	t.Parallel()
	s := shardtest.Masters(t, 1)
	if _, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs, DB: 1}); err == nil || !contains(err.Error(), "only database 0") {
		t.Errorf("%v", err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	_, err := shard.Open(t.Context(), shard.Config{Addrs: []string{"127.0.0.1:1", "127.0.0.1:2"}})
	if !errors.Is(err, shard.ErrUnreachable) || !contains(err.Error(), "127.0.0.1:1") || !contains(err.Error(), "127.0.0.1:2") {
		t.Errorf("%v", err)
	}
}

// One address of several that answers is enough.
func TestOpenFindsLivingNode(t *testing.T) {
	t.Parallel()
	s := shardtest.Masters(t, 2)
	c, err := shard.Open(t.Context(), shard.Config{Addrs: append([]string{"127.0.0.1:1"}, s.Addrs[1])})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run(t, c, 0, count, "k", 1)
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		a, b []string
		want bool
	}{
		{nil, []string{"redis://u@127.0.0.1/3"}, true},
		{[]string{"a:1", "b:2"}, []string{"rediss://c:3,b:2"}, true},
		{[]string{"a:1"}, []string{"a:2"}, false},
		{[]string{"a:1"}, []string{"http://a:1"}, false},
	} {
		a, b := shard.Config{Addrs: c.a}, shard.Config{Addrs: c.b}
		if a.Shares(b) != c.want || b.Shares(a) != c.want {
			t.Errorf("%v and %v share a server: %v", c.a, c.b, !c.want)
		}
	}
}
