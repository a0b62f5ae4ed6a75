package boot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/frontier"
)

type grammar struct {
	Common
	RedisFlags
	NameFlag
	CrawlFlags
	ProcessFlags
	FetchFlags
	SeedFlags
	Extra string `help:"A flag of this program alone."`

	ran  bool
	fail error
}

func (g *grammar) Run(*Env) error { g.ran = true; return g.fail }

// run runs a program and returns its exit code and what it wrote.
func run(t *testing.T, g *grammar, env []string, args ...string) (code int, out, err string) {
	t.Helper()
	var o, e bytes.Buffer
	app := App{Name: "prog", Grammar: g, Out: &o, Err: &e, Environ: env}
	code = app.Run(t.Context(), t.Context(), args)
	return code, o.String(), e.String()
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlagsBeatEnvironmentBeatsFile(t *testing.T) {
	path := write(t, "delay: 3s\nper-site: 3\nmax_depth: 3\nconcurrency: 3\n")
	var g grammar
	env := []string{"SEINE_DELAY=2s", "SEINE_PER_SITE=2", "SEINE_CONCURRENCY=2", "SEINE_CONFIG=" + path}
	if code, _, e := run(t, &g, env, "--delay", "1s"); code != 0 || !g.ran {
		t.Fatal(code, e)
	}
	if *g.Delay != time.Second || *g.PerSite != 2 || *g.MaxDepth != 3 || g.Concurrency != 2 || g.Grace != 30*time.Second {
		t.Fatalf("%v %v %v %v %v", *g.Delay, *g.PerSite, *g.MaxDepth, g.Concurrency, g.Grace)
	}
}

// TestEmptyEnvironmentIsUnset: compose and units set variables that nobody gave a value.
func TestEmptyEnvironmentIsUnset(t *testing.T) {
	path := write(t, "delay: 3s\ndeny: [x]\n")
	var g grammar
	env := []string{"SEINE_CONFIG=" + path, "SEINE_DELAY=", "SEINE_DENY=", "SEINE_MAX_DEPTH=", "SEINE_PER_SITE=2", "SEINE_PER_SITE=", "SEINE_SITEMAPS=", "SEINE_REDIS="}
	if code, _, e := run(t, &g, env); code != 0 || !g.ran {
		t.Fatal(code, e)
	}
	if *g.Delay != 3*time.Second || len(g.Deny) != 1 || g.MaxDepth != nil || g.PerSite != nil || g.Sitemaps != nil {
		t.Errorf("%v %v %v %v %v", *g.Delay, g.Deny, g.MaxDepth, g.PerSite, g.Sitemaps)
	}
	if code, _, e := run(t, &g, []string{"SEINE_CONFIG="}); code != 0 {
		t.Error(code, e)
	}
}

func TestListsAndTypes(t *testing.T) {
	path := write(t, `
allow: ["a,b", c]
plan-urls: 2M
error-rate: 1e-5
sitemaps: true
allow-net: [10.0.0.0/8, "fd00::/8"]
rotate-size: 1G
sites:
  - match: "*.example.com"
    delay: 200ms
    per-site: 4
    headers: {X-A: b}
    auth: u:p
`)
	var g grammar
	env := []string{"SEINE_DENY=x,y\nz"}
	if code, _, e := run(t, &g, env, "--config", path, "--exit-when-done", "--fields=body,text"); code != 0 {
		t.Fatal(code, e)
	}
	got := fmt.Sprint(g.Allow, len(g.Allow), g.Deny, len(g.Deny), g.PlanURLs, g.ErrorRate, *g.Sitemaps, g.AllowNet, int64(g.RotateSize), g.Fields, *g.ExitWhenDone)
	want := "[a,b c] 2 [x,y z] 2 2000000 1e-05 true [10.0.0.0/8 fd00::/8] 1073741824 [body text] true"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s := g.Sites; len(s) != 1 || s[0].Match != "*.example.com" || *s[0].Delay != 200*time.Millisecond || s[0].PerSite != 4 || s[0].Headers["X-A"] != "b" || s[0].Auth != "u:p" {
		t.Errorf("sites: %+v", s)
	}
}

func TestMistakesAreOneLine(t *testing.T) {
	file := func(text string) []string { return []string{"--config", write(t, text)} }
	cases := []struct {
		args []string
		want string
	}{
		{[]string{"--nonsense"}, "unknown flag --nonsense"},
		{[]string{"--delay", "soon"}, `"soon" is no duration`},
		{[]string{"--plan-urls", "many"}, "many"},
		{[]string{"--shards", "many"}, `"many" is no whole number`},
		{[]string{"--error-rate", "low"}, `"low" is no number`},
		{[]string{"--allow-net", "0"}, `"0" is no network`},
		{[]string{"--lease", "1ms"}, "lease is 1ms, must be at least 5s"},
		{[]string{"--lease=0s"}, "lease is 0s"},
		{[]string{"--shards=0"}, "shards is 0"},
		{[]string{"--error-rate=0"}, "error-rate is 0"},
		{[]string{"--max-body", "0"}, "max-body is 0, must be at least 1"},
		{[]string{"--attempts", "0"}, "attempts is 0"},
		{[]string{"--max-redirects=-1"}, "max-redirects is -1"},
		{[]string{"--concurrency", "-1"}, "concurrency is -1"},
		{[]string{"--grace=-1s"}, "grace is -1s"},
		{file("connect-timeout: 0s"), "connect-timeout is 0s"},
		{[]string{"--limit-by", "planet"}, "limit-by"},
		{file("delya: 1s"), "unknown key delya"},
		{file("extra: x\nembeded: true\n"), "unknown key embeded"},
		{file("delay: [1s, 2s]"), "takes one value"},
		{file("delay: 1s\ndelay: 2s"), "config"},
		{file("a: [1"), "config"},
		{file("sites: [{match: a.example, dealy: 1s}]"), "unknown key dealy; there are auth, bind, delay, headers, match, max_pages, per_site, tls_legacy, user_agent"},
		{file("sites: [{match: a.example, delay: soon}]"), "a.example: delay is soon, must be a duration such as 500ms, 30s or 2h"},
		{file("sites: [{match: a.example, delay: 5}]"), "delay is 5, must be a duration"},
		{file("sites: [{match: a.example, per-site: many}]"), "per-site is many, must be a whole number"},
		{file("sites: [{match: a.example, tls_legacy: 1}]"), "tls_legacy is 1, must be true or false"},
		{file("sites: [{match: a.example, headers: {X: 1}}]"), "headers is map[X:1], must be a mapping of names to texts"},
		{file("sites: [{match: a.example, auth: }]"), "auth is <nil>, must be a text"},
		{file("sites: [{match: 3}]"), "match is 3, must be a text"},
		{[]string{"--delay"}, "--delay: needs a value\n"},
		{[]string{"--delay", "--jitter", "1"}, "--delay: needs a value, and --jitter is a flag"},
		{[]string{"--seed"}, "--seed: needs a value\n"},
		{[]string{"--max-body", "10XB"}, `"10XB" is no size such as`},
		{[]string{"--plan-urls", "10kX"}, `"10kX" is no count such as`},
		{[]string{"http://u:pw@a.example/"}, "unexpected argument http://xxxxx@a.example/; a URL to start from is given as --seed http://xxxxx@a.example/"},
		{file("sites: 3"), "must be a list"},
		{[]string{"--config", "/nowhere/at/all"}, "no such file"},
	}
	for _, c := range cases {
		var g grammar
		code, out, e := run(t, &g, nil, c.args...)
		if code != ExitUsage || out != "" || g.ran {
			t.Errorf("%v: code %d, stdout %q, ran %v", c.args, code, out, g.ran)
		}
		if !strings.HasPrefix(e, "prog: ") || strings.Count(e, "\n") != 1 || !strings.Contains(e, c.want) {
			t.Errorf("%v: stderr %q", c.args, e)
		}
	}
}

func TestExitCodes(t *testing.T) {
	cases := map[error]int{
		nil:                                      ExitDone,
		errors.New("x"):                          ExitFailed,
		Usage("x %d", 1):                         ExitUsage,
		fmt.Errorf("%w: a", frontier.ErrDiffers): ExitRefused,
		frontier.ErrLayout:                       ExitRefused,
		frontier.ErrNoCrawl:                      ExitRefused,
		errors.Join(errors.New("a\nb"), frontier.ErrExists): ExitRefused,
	}
	for err, want := range cases {
		g := grammar{fail: err}
		code, _, e := run(t, &g, nil)
		if code != want || (err != nil) != (strings.Count(e, "\n") == 1) {
			t.Errorf("%v: code %d, stderr %q", err, code, e)
		}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	app := App{Name: "prog", Grammar: &grammar{fail: errors.New("x")}, Out: io.Discard, Err: io.Discard}
	if code := app.Run(stopped, stopped, nil); code != ExitAborted {
		t.Errorf("aborted: code %d", code)
	}
}

func TestHelpAndVersion(t *testing.T) {
	var g grammar
	code, out, _ := run(t, &g, nil, "--help")
	if code != 0 || g.ran || !strings.Contains(out, "How to treat sites:") || strings.Contains(out, "--sites") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := run(t, &g, nil, "--version"); code != 0 || !strings.HasPrefix(out, "prog ") || g.ran {
		t.Errorf("%d %s", code, out)
	}
}

func TestStrangeEnvironmentIsNamed(t *testing.T) {
	var g grammar
	code, _, e := run(t, &g, []string{"SEINE_DELYA=1s", "SEINE_REDIS_PASSWORD=hush", "SEINE_EXTRA=x", "OTHER=1"})
	if code != 0 || strings.Count(e, "WARN") != 1 || !strings.Contains(e, "SEINE_DELYA") || strings.Contains(e, "hush") {
		t.Errorf("%d %q", code, e)
	}
}

func TestPrintConfig(t *testing.T) {
	path := write(t, "sites: [{match: a.example, auth: 'user:sesame', headers: {Cookie: sesame}}]\nallow: [x, y]\n")
	var g grammar
	env := []string{"SEINE_REDIS_PASSWORD=sesame"}
	args := []string{"--config", path, "--redis", "rediss://me:sesame@h:1,i:2/3", "--delay", "1500ms", "--sitemaps=false"}
	code, out, e := run(t, &g, env, append(args, "--print-config")...)
	if code != 0 || g.ran {
		t.Fatal(code, e)
	}
	if strings.Contains(out, "sesame") {
		t.Errorf("a secret shows:\n%s", out)
	}
	for _, want := range []string{"redis: rediss://me:xxxxx@h:1,i:2/3", "delay: 1.5s", "sitemaps: false", "# deny:", "- x", "match: a.example"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	// What it prints can be read again.
	var again grammar
	if code, _, e := run(t, &again, nil, "--config", write(t, out)); code != ExitUsage || !strings.Contains(e, "xxxxx") {
		t.Error("masked values are taken for real ones", code, e)
	}
	masked := strings.NewReplacer("auth: xxxxx", "auth: a:b", ":xxxxx@", ":p@", "Cookie: xxxxx", "Cookie: c").Replace(out)
	if code, _, e := run(t, &again, nil, "--config", write(t, masked)); code != 0 || *again.Delay != *g.Delay || *again.Sitemaps {
		t.Error(code, e)
	}
}

func TestMonitor(t *testing.T) {
	var broken error
	note := ""
	m := Monitor{Addr: "0", Ready: func(context.Context) error { return broken }, Note: func() string { return note }, Write: func(w io.Writer) { io.WriteString(w, "seine_x 1\n") }}
	addr, stop, err := m.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Errorf("listens on %s", addr)
	}
	get := func(path string) (int, string) {
		r, err := http.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(b)
	}
	if code, body := get("/metrics"); code != 200 || body != "seine_x 1\n" {
		t.Error(code, body)
	}
	if code, body := get("/healthz"); code != 200 || strings.Contains(body, "note") {
		t.Error(code, body)
	}
	note = "the crawl is paused"
	if code, body := get("/healthz"); code != 200 || !strings.Contains(body, `"ready":true,"note":"the crawl is paused"`) {
		t.Error(code, body)
	}
	broken = errors.New("no shard")
	if code, body := get("/healthz"); code != 503 || !strings.Contains(body, "no shard") {
		t.Error(code, body)
	}
	if code, _ := get("/healthz?live"); code != 200 {
		t.Error(code)
	}
}

// Profiles are served only where they are asked for.
func TestPprof(t *testing.T) {
	for _, on := range []bool{false, true} {
		m := Monitor{Addr: "0", Ready: func(context.Context) error { return nil }, Write: func(io.Writer) {}, Pprof: on}
		addr, stop, err := m.Start()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"", "heap?debug=1", "profile?seconds=1"} {
			r, err := http.Get("http://" + addr + "/debug/pprof/" + path)
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			if ok := r.StatusCode == http.StatusOK; ok != on {
				t.Errorf("asked for: %v, %q answers %d", on, path, r.StatusCode)
			}
		}
		stop()
	}
}

// A crawl whose pages are recrawled is never done.
func TestEndsWhenDone(t *testing.T) {
	yes, no := true, false
	once, again := &frontier.Settings{}, &frontier.Settings{Recrawl: []string{".=1h"}}
	for _, c := range []struct {
		given    *bool
		embedded bool
		settings *frontier.Settings
		want     bool
	}{
		{nil, true, once, true}, {nil, false, once, false}, {&yes, false, once, true}, {&no, true, once, false},
		{nil, true, again, false}, {nil, false, again, false}, {&no, true, again, false},
	} {
		got, err := (&ProcessFlags{ExitWhenDone: c.given, Embedded: c.embedded}).EndsWhenDone(c.settings)
		if err != nil || got != c.want {
			t.Errorf("%+v: %v %v", c, got, err)
		}
	}
	if _, err := (&ProcessFlags{ExitWhenDone: &yes}).EndsWhenDone(again); !errors.Is(err, ErrUsage) {
		t.Errorf("--exit-when-done of a crawl with --recrawl: %v", err)
	}
}
