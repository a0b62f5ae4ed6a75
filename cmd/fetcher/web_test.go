package main_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWebOfEmbedded: a crawl in one process has the page of frontier web while it
// runs, read-only without --allow-changes.
func TestWebOfEmbedded(t *testing.T) {
	t.Parallel()
	if code, log := end(t, "--web", "0", "--out", "x"); code != 2 || !strings.Contains(log, "only with --embedded") {
		t.Errorf("code %d: %s", code, log)
	}
	if code, log := end(t, "--embedded", "--allow-changes", "--seed", "http://a.example/"); code != 2 || !strings.Contains(log, "--web") {
		t.Errorf("code %d: %s", code, log)
	}
	if code, log := end(t, "--embedded", "--web", "0", "--allow-changes", "--seed", "http://a.example/"); code != 2 || !strings.Contains(log, "--web-token-file") {
		t.Errorf("code %d: %s", code, log)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("a token for the tests\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, _ := endless(t)
	p := start(t, "--embedded", "--seed", url+"/", "--delay", "20ms", "--jitter", "0", "--web", "0", "--allow-changes", "--web-token-file", file)
	var at string
	until(t, "it serves", func() bool {
		if m := regexp.MustCompile(`serving a page.* addr=(\S+)`).FindStringSubmatch(p.log.String()); m != nil {
			at = "http://" + m[1] + "/"
		}
		return at != ""
	})
	ask := func(method, path, body, token, host string) (int, string) {
		req, err := http.NewRequest(method, at+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("X-Seine-Token", token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	holds := func(path, want string) {
		t.Helper()
		until(t, path+" has "+want, func() bool {
			code, text := ask("GET", path, "", "", "")
			return code == 200 && strings.Contains(text, want)
		})
	}
	holds("", "<!doctype html>")
	holds("api/now", `"limited_by":{"politeness":1}`)
	holds("api/sites", `"site":"127.0.0.1"`)
	holds("api/why?url="+url+"/", "fetched")
	if code, text := ask("GET", "api/now", "", "", "evil.example"); code != 421 {
		t.Errorf("another host: %d %s", code, text)
	}
	if code, text := ask("POST", "api/change", `{"do":"pause"}`, "wrong", ""); code != 401 {
		t.Errorf("another token: %d %s", code, text)
	}
	if code, text := ask("POST", "api/change", `{"do":"pause"}`, "a token for the tests", ""); code != 200 {
		t.Errorf("pause: %d %s", code, text)
	}
	holds("api/now", `"state":"paused"`)
	p.cmd.Process.Signal(os.Interrupt)
	p.wait(t)
}
