package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/fetch/sign"
	"seine/fetch/sign/signtest"
)

// newKey makes a key, and the text of its file.
func newKey(t *testing.T) (*sign.Key, []byte) {
	t.Helper()
	key, err := sign.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.PEM()
	if err != nil {
		t.Fatal(err)
	}
	return key, text
}

// The program signs what it sends with the key of its file, says From, and shows the key
// nowhere; others that can read the file are warned of.
func TestSignedRequests(t *testing.T) {
	t.Parallel()
	key, text := newKey(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "key.pem")
	if err := os.WriteFile(file, text, 0o640); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := 0
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen++
		if err := signtest.Verify(key, r.Host, r.Header, time.Now()); err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		if from := r.Header.Get("From"); from != "bot@bot.example" {
			t.Errorf("From: %q", from)
		}
		w.Header().Set("Content-Type", "text/html")
	}))
	defer srv.Close()
	archive := filepath.Join(dir, "crawl")
	code, log := end(t, "--embedded", "--seed", srv.URL+"/", "--allow-net", "127.0.0.0/8", "--insecure-skip-verify", "--delay", "0s", "--log-level", "debug",
		"--contact", "mailto:bot@bot.example?subject=crawl", "--sign-key", file, "--signature-agent", signtest.Agent, "--out", "warc:"+archive+"/c")
	if code != 0 || seen != 2 || !strings.Contains(log, "chmod 600") {
		t.Errorf("code %d, %d requests: %s", code, seen, log)
	}
	for _, line := range strings.Split(string(text), "\n")[1:] {
		if line != "" && !strings.HasPrefix(line, "-") && strings.Contains(log, line) {
			t.Error("the log shows the key")
		}
	}
}

// A rule that has a site see another user agent is refused together with a key, by name.
func TestSignedAgents(t *testing.T) {
	t.Parallel()
	_, text := newKey(t)
	dir := t.TempDir()
	file, config := filepath.Join(dir, "key.pem"), filepath.Join(dir, "crawl.yaml")
	for _, rule := range []string{"user_agent: other/1", "headers: {user-agent: other/1}"} {
		for name, text := range map[string][]byte{file: text, config: []byte("sites: [{match: one.example, " + rule + "}]\n")} {
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, log := end(t, "--embedded", "--seed", "http://127.0.0.1:1/", "--config", config, "--sign-key", file, "--signature-agent", signtest.Agent)
		if code != 2 || !strings.Contains(log, "one.example has a user agent") {
			t.Errorf("%s: code %d, %s", rule, code, log)
		}
	}
}

// A key that is none is refused at start, with its file, before anything is fetched.
func TestBadSignKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "key.pem")
	if err := os.WriteFile(file, []byte("offenesgeheimnis"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := []string{"--signature-agent", signtest.Agent}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append([]string{"--sign-key", file}, agent...), "sign-key: " + file},
		{append([]string{"--sign-key", dir + "/none"}, agent...), dir + "/none"},
		{[]string{"--sign-key", file}, "need each other"},
		{agent, "need each other"},
		{[]string{"--sign", "asked"}, "needs --sign-key"},
		{[]string{"--sign", "never"}, "always"},
	} {
		code, log := end(t, append([]string{"--embedded", "--seed", "http://127.0.0.1:1/"}, c.args...)...)
		if code != 2 || !strings.Contains(log, c.want) || strings.Contains(log, "offenesgeheimnis") {
			t.Errorf("%v: code %d, %s", c.args, code, log)
		}
	}
}
