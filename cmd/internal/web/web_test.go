package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"seine/cmd/internal/web"
	"seine/frontier"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

const token = "a token for the tests"

// site is a crawl in Redis and its page.
type site struct {
	f   *redis.Frontier
	url string
}

func open(t *testing.T, s *shardtest.Server, shards int, changes bool) site {
	t.Helper()
	client, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	f, err := redis.OpenOrCreate(t.Context(), client, "seine", frontier.Layout{Shards: shards, PlanURLs: 10_000}, frontier.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	addr, stop, err := web.Start(web.Config{Frontier: f, Addr: "127.0.0.1:0", Flag: "listen", Changes: changes, Token: token, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return site{f, "http://" + addr + "/"}
}

// admit queues URLs.
func (s site) admit(t *testing.T, urls ...string) {
	t.Helper()
	maker := frontier.NewMaker(s.f.Layout())
	for _, url := range urls {
		c, err := maker.Make(url)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.f.Admit(t.Context(), s.f.Of(c.Fingerprint), []frontier.Candidate{c}, make([]frontier.Verdict, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// deadLetterAll gives up all that is due, with a text as a hostile site would send it.
func (s site) deadLetterAll(t *testing.T, text string) {
	t.Helper()
	for k := range s.f.Shards() {
		tick, err := s.f.Tick(t.Context(), k, frontier.TickRequest{Want: 10})
		if err != nil {
			t.Fatal(err)
		}
		visits, err := s.f.Visit(t.Context(), k, tick.Due, frontier.VisitLimits{URLs: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range visits {
			st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
			for _, item := range v.Items {
				st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: item.Index, Kind: frontier.Dead, Cause: "tls", Text: text})
			}
			if _, err := s.f.Settle(t.Context(), k, []frontier.Settlement{st}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// browser is a headless Chromium of the test, with a tab.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("chromium is missing; scripts/setup installs it")
		}
		t.Skip("chromium is missing; scripts/setup installs it")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute), chromedp.Flag("disable-dev-shm-usage", true))
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}

// until waits until a script returns true.
func until(what, script string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			var is bool
			if err := chromedp.Evaluate(script, &is).Do(ctx); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if is {
				return nil
			}
		}
		var text string
		chromedp.Evaluate(`document.body.innerText`, &text).Do(ctx)
		return fmt.Errorf("%s: not on the page:\n%s", what, text)
	})
}

// enter puts a text into a field.
func enter(field, text string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`void (document.querySelector(%q).value = %q)`, field, text), nil)
}

// has is whether an element holds a text.
func has(id, text string) string {
	return fmt.Sprintf(`document.getElementById(%q).textContent.includes(%q)`, id, text)
}

// picture keeps what the page looks like in SEINE_PICTURES, or the test's own
// directory, and checks that nothing is wider than the window.
func picture(t *testing.T, name string, width int64, dark bool) chromedp.Action {
	dir := os.Getenv("SEINE_PICTURES")
	if dir == "" {
		dir = t.TempDir()
	}
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	return chromedp.ActionFunc(func(ctx context.Context) error {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
		if err := emulation.SetEmulatedMedia().WithFeatures(features).Do(ctx); err != nil {
			return err
		}
		if err := emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500).Do(ctx); err != nil {
			return err
		}
		time.Sleep(300 * time.Millisecond) // for the charts to be drawn at their new size
		var over bool
		if err := chromedp.Evaluate(`document.documentElement.scrollWidth > innerWidth`, &over).Do(ctx); err != nil {
			return err
		}
		if over {
			return fmt.Errorf("%s: the page is wider than %d", name, width)
		}
		var png []byte
		if err := chromedp.FullScreenshot(&png, 100).Do(ctx); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), png, 0o600)
	})
}

// A person with a browser sees each view, a text of the web as text, retries a
// dead letter, and sees Redis go and come back.
func TestPage(t *testing.T) {
	ctx := browser(t)
	server := shardtest.Start(t, shardtest.Config{})
	s := open(t, server, 24, true)
	m := frontier.NewMember(frontier.KindFetcher, "v1.2.3")
	m.Rate, m.Limit, m.Pages, m.Bytes = 12.5, "politeness", 1234, 5_000_000
	begun := time.Now()
	member, err := frontier.Attend(t.Context(), s.f, func() frontier.Member {
		grown := m
		grown.Pages += int64(time.Since(begun).Seconds() * m.Rate)
		grown.Bytes += int64(time.Since(begun).Seconds() * 250e3)
		return grown
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Leave(context.Background(), "")
	const hostile = `<script>document.title="owned"</script><img src=x onerror=alert(1)>`
	s.admit(t, "https://user:secret@dead.example/%3Cb%3E")
	s.deadLetterAll(t, hostile)
	s.admit(t, "https://a.example/", "https://b.example/x", "https://c.example/")
	run := func(actions ...chromedp.Action) {
		t.Helper()
		if err := chromedp.Run(ctx, actions...); err != nil {
			t.Fatal(err)
		}
	}
	run(chromedp.Navigate(s.url),
		until("the crawl", has("crawl", "seine")),
		until("24 shards", `document.querySelectorAll("#shards tbody tr").length === 24`),
		until("the fetcher", has("fetchers", "v1.2.3")),
		until("settings", has("settings", "max_crawl_delay")),
		until("filters", has("shards", "0.0%")),
		until("curves of several readings", `points.length >= 4 && [...document.querySelectorAll("#charts figure")].every(f => f.querySelector("polyline")?.getAttribute("points").split(" ").length >= 3)`),
		until("cause", has("causes", "tls 1")),
		chromedp.Click(`#causes button`, chromedp.ByQuery),
		until("a text of the web is text", has("deadletters", hostile)),
		until("no element came of it", `!document.querySelector("#deadletters script, #deadletters img") && document.title !== "owned"`),
		until("no credentials", `!document.body.textContent.includes("secret")`),
		chromedp.SetValue(`#why input`, "https://b.example/x", chromedp.ByQuery),
		chromedp.Click(`#why button`, chromedp.ByQuery),
		until("why", has("answer", "not fetched yet: it is the next of its site")),
		until("the first sites", has("sites", "c.example")),
		chromedp.SetValue(`#site input`, "b.example", chromedp.ByQuery),
		chromedp.Click(`#site button`, chromedp.ByQuery),
		until("the site alone", has("sites", "b.example")+` && document.querySelectorAll("#sites tbody tr").length === 1`))
	for _, width := range []int64{1400, 375} {
		run(picture(t, "page", width, false), picture(t, "page", width, true))
	}
	run(chromedp.Evaluate(fmt.Sprintf(`sessionStorage.setItem("token", %q)`, token), nil),
		chromedp.Click(`#deadletters button`, chromedp.ByQuery),
		until("it is queued once more", has("causes", "Nothing was given up")))
	if counts, err := frontier.DeadTotals(t.Context(), s.f); err != nil || counts["tls"] != 0 {
		t.Errorf("after the retry: %v, %v", counts, err)
	}
	run(enter(`#site input`, ""),
		enter(`#site select`, "dead"),
		chromedp.Click(`#site button`, chromedp.ByQuery),
		until("all sites", `document.querySelectorAll("#sites tbody tr").length === 4`),
		enter(`#set select`, "deny"),
		enter(`#set textarea`, "/a,b\n/c"),
		chromedp.Click(`#set button`, chromedp.ByQuery),
		until("the setting", has("settings", `["/a,b","/c"]`)),
		enter(`#set select`, "delay"),
		enter(`#set textarea`, "soon"),
		chromedp.Click(`#set button`, chromedp.ByQuery),
		until("what is wrong with it", has("result", "soon")),
		enter(`#set textarea`, "7s"),
		enter(`#set input`, "c.example"),
		chromedp.Click(`#set button`, chromedp.ByQuery),
		until("the delay of one site", has("sites", "7s")))
	server.Nodes[0].Stop(t)
	run(until("Redis is gone", `document.getElementById("faults").textContent !== ""`))
	server.Nodes[0].Cont(t)
	run(until("Redis is back", `document.getElementById("faults").textContent === "" && document.getElementById("state").textContent === "ready"`))
}

// A crawl without anything has a page too, which is read-only without the flag.
func TestEmptyPage(t *testing.T) {
	ctx := browser(t)
	s := open(t, shardtest.One(t), 1, false)
	if err := chromedp.Run(ctx, chromedp.Navigate(s.url),
		until("no fetcher", has("fetchers", "No fetcher is live")), until("nothing dead", has("causes", "Nothing was given up")),
		until("no buttons of changes", `document.getElementById("acts").hidden && !document.querySelector("table button")`)); err != nil {
		t.Fatal(err)
	}
}

// Who may ask what.
func TestRefusals(t *testing.T) {
	server := shardtest.One(t)
	s, closed := open(t, server, 1, true), open(t, server, 1, false)
	for _, c := range []struct {
		name, method, path, body, host string
		headers                        map[string]string
		readOnly                       bool
		code                           int
	}{
		{name: "read", path: "api/now", code: 200},
		{name: "another name", path: "api/now", host: "evil.example", code: 421},
		{name: "another name of loopback", path: "", host: "127.0.0.1.evil.example", code: 421},
		{name: "another site", path: "api/now", headers: map[string]string{"Sec-Fetch-Site": "cross-site"}, code: 403},
		{name: "no token", method: "POST", path: "api/change", body: `{"do":"pause"}`, code: 401},
		{name: "wrong token", method: "POST", path: "api/change", body: `{"do":"pause"}`, headers: map[string]string{web.TokenHeader: "wrong"}, code: 401},
		{name: "read-only", method: "POST", path: "api/change", body: `{"do":"pause"}`, headers: map[string]string{web.TokenHeader: token}, readOnly: true, code: 403},
		{name: "unknown", method: "POST", path: "api/change", body: `{"do":"delete"}`, headers: map[string]string{web.TokenHeader: token}, code: 400},
		{name: "block without reason", method: "POST", path: "api/change", body: `{"do":"block","site":"a.example"}`, headers: map[string]string{web.TokenHeader: token}, code: 400},
		{name: "pause", method: "POST", path: "api/change", body: `{"do":"pause"}`, headers: map[string]string{web.TokenHeader: token}, code: 200},
		{name: "set", method: "POST", path: "api/change", body: `{"do":"set","name":"delay","value":"3s"}`, headers: map[string]string{web.TokenHeader: token}, code: 200},
		{name: "set of a site", method: "POST", path: "api/change", body: `{"do":"set","name":"scope","value":"any","site":"a.example"}`, headers: map[string]string{web.TokenHeader: token}, code: 400},
		{name: "set of what is fixed", method: "POST", path: "api/change", body: `{"do":"set","name":"shards","value":"3"}`, headers: map[string]string{web.TokenHeader: token}, code: 400},
		{name: "set to nothing", method: "POST", path: "api/change", body: `{"do":"set","name":"delay","value":""}`, headers: map[string]string{web.TokenHeader: token}, code: 400},
		{name: "set to what cannot be", method: "POST", path: "api/change", body: `{"do":"set","name":"jitter","value":"7"}`, headers: map[string]string{web.TokenHeader: token}, code: 400},
		{name: "sites by nothing", path: "api/sites?by=name", code: 400},
		{name: "no site", path: "api/sites?site=a+b", code: 400},
		{name: "a site", path: "api/sites?site=a.example", code: 200},
		{name: "no changes by GET", path: "api/change", code: 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := s.url
			if c.readOnly {
				base = closed.url
			}
			req, err := http.NewRequest(c.method, base+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = c.host
			for k, v := range c.headers {
				req.Header.Set(k, v)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.code {
				t.Errorf("%d %s, want %d", resp.StatusCode, text, c.code)
			}
			if !strings.Contains(resp.Header.Get("Content-Security-Policy"), "default-src 'none'") || bytes.Contains(text, []byte(token)) {
				t.Errorf("headers %v, body %s", resp.Header, text)
			}
		})
	}
	if k, err := s.f.PausedShards(t.Context()); err != nil || len(k) != 1 {
		t.Errorf("paused: %v, %v", k, err)
	}
	if set, err := s.f.Refresh(t.Context()); err != nil || set.Delay != 3*time.Second {
		t.Errorf("delay: %v, %v", set.Delay, err)
	}
}

// A page behind a proxy goes by the names that are given, and these need the token.
func TestProxy(t *testing.T) {
	s := open(t, shardtest.One(t), 1, false)
	log := slog.New(slog.DiscardHandler)
	if _, _, err := web.Start(web.Config{Frontier: s.f, Addr: "0", Flag: "listen", Hosts: []string{"seine.example"}, Log: log}); err == nil || !strings.Contains(err.Error(), "--web-token-file") {
		t.Errorf("without a token: %v", err)
	}
	addr, stop, err := web.Start(web.Config{Frontier: s.f, Addr: "0", Flag: "listen", Hosts: []string{"seine.example"}, Token: token, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, c := range []struct {
		host, token string
		want        int
	}{{"seine.example", token, 200}, {"Seine.example:443", token, 200}, {"seine.example", "", 401}, {"other.example", token, 421}, {"seine.example.evil.example", token, 421}, {"", "", 200}} {
		req, err := http.NewRequest("GET", "http://"+addr+"/api/now", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		req.Header.Set(web.TokenHeader, c.token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%q with token %q: %d, want %d", c.host, c.token, resp.StatusCode, c.want)
		}
	}
}

// Where everybody can reach it the page needs a token, to read too.
func TestNotLoopback(t *testing.T) {
	s := open(t, shardtest.One(t), 1, false)
	log := slog.New(slog.DiscardHandler)
	if _, _, err := web.Start(web.Config{Frontier: s.f, Addr: "0.0.0.0:0", Flag: "listen", Log: log}); err == nil || !strings.Contains(err.Error(), "--web-token-file") {
		t.Errorf("without a token: %v", err)
	}
	addr, stop, err := web.Start(web.Config{Frontier: s.f, Addr: "0.0.0.0:0", Flag: "listen", Token: token, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	url := "http://127.0.0.1" + addr[strings.LastIndex(addr, ":"):] + "/api/now"
	for given, want := range map[string]int{"": 401, token: 200} {
		req, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(web.TokenHeader, given)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var any json.RawMessage
		json.NewDecoder(resp.Body).Decode(&any)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("token %q: %d", given, resp.StatusCode)
		}
	}
}

// Lists have what the shards beside a silent one hold, and say which is missing.
func TestListsBesideASilentShard(t *testing.T) {
	s := shardtest.Masters(t, 3)
	client, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs, GiveUp: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	f, err := redis.OpenOrCreate(t.Context(), client, "seine", frontier.Layout{Shards: 3, PlanURLs: 10_000}, frontier.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	addr, stop, err := web.Start(web.Config{Frontier: f, Addr: "127.0.0.1:0", Flag: "listen", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	yes := true
	for i := 0; ; i++ {
		if site := fmt.Sprintf("s%d.example", i); frontier.ShardOf(f, site) == 0 {
			if err := f.Alter(t.Context(), 0, site, frontier.SiteChange{Paused: &yes, Reason: "slow"}); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	ill := s.MasterOf(t, shard.Slot(shard.NewMap(3).Tag(2)))
	ill.Stop(t)
	t.Cleanup(func() { ill.Cont(t) })
	for path, want := range map[string]string{"api/stopped": `"slow"`, "api/dead?cause=timeout": "[]"} {
		reply, err := http.Get("http://" + addr + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != http.StatusOK || !strings.Contains(string(body), want) || !strings.Contains(reply.Header.Get("X-Seine-Missing"), "shard 2") {
			t.Errorf("%s: %d %s, missing %q, %v", path, reply.StatusCode, body, reply.Header.Get("X-Seine-Missing"), err)
		}
	}
}
