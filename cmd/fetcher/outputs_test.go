package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seine/extract/sink/jsonl"
	"seine/shard/shardtest"
)

// What no output is, is refused before anything is opened.
func TestBadOutputs(t *testing.T) {
	for flags, want := range map[string]string{
		"--out ftp://h/x":           `no output "ftp:"`,
		"--out postgres://u:pw@h/d": "command line",
		"--out postgres://h:x/d":    "postgres",
		"--out redis:":              "redis://HOST",
		"--out redis://h?x=y":       "unknown parameter",
		"--out warc:dir/":           "warc:DIR/PREFIX",
		"--out x:y":                 "./x:y",
		"--out a --out a":           "twice",
		"--out a --out-drop b":      `no output "b"`,
		"--out - --rotate-time 1h":  "need a file",
		"--on-rotate true":          "no word {}",
	} {
		code, log := end(t, append(strings.Fields(flags), "--embedded", "--seed", "http://127.0.0.1:1/")...)
		if code != 2 || !strings.Contains(log, want) || strings.Contains(log, "pw@") {
			t.Errorf("%s: code %d, %s", flags, code, log)
		}
	}
}

// What --on-rotate cannot run is refused too.
func TestBadOnRotate(t *testing.T) {
	for args, want := range map[string]string{"/nowhere/x {}": "nowhere", "sh -c 'x {}'": "no shell", "true {}": "needs a file"} {
		code, log := end(t, "--embedded", "--seed", "http://127.0.0.1:1/", "--on-rotate", args)
		if code != 2 || !strings.Contains(log, want) {
			t.Errorf("%s: code %d, %s", args, code, log)
		}
	}
}

// Each of several outputs has every record; a device that is full holds nobody
// up when it may lose.
func TestSeveralOutputs(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<a href=/a>a</a><a href=/b>b</a>`))
	}))
	defer srv.Close()
	second := filepath.Join(t.TempDir(), "second.jsonl.gz")
	full := "/dev/full"
	if _, err := os.Stat(full); err != nil {
		full = os.DevNull
	}
	p := start(t, "--embedded", "--delay", "0s", "--out", second, "--out", full, "--out-drop", "jsonl2", "--seed", srv.URL+"/")
	p.wait(t)
	for _, path := range []string{p.out, second} {
		n := 0
		for _, err := range jsonl.Records(path) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != 3 {
			t.Errorf("%s: %d records", path, n)
		}
	}
}

// A fleet's records wait in the crawl's own Redis for consumers.
func TestItemsInRedis(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(`<a href=/a>a</a><a href=/b>b</a>`))
	}))
	defer srv.Close()
	server := shardtest.One(t)
	start(t, "--redis", server.Addrs[0], "--shards", "1", "--plan-urls", "10k", "--delay", "0s", "--out", "redis:", "--exit-when-done", "--seed", srv.URL+"/").wait(t)
	if n := server.Nodes[0].Client().LLen(t.Context(), "seine:items").Val(); n != 3 {
		t.Errorf("%d records", n)
	}
}
