package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seine/extract/sink/jsonl"
)

// Every file of a crawl is handed over, the last ones too, by a command that
// sees no secrets; what a start could not hand over the next one does.
func TestOnRotate(t *testing.T) {
	t.Setenv("SEINE_REDIS_PASSWORD", "geheim")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for i := range 50 {
			fmt.Fprintf(w, "<a href=/%d>", i)
		}
	}))
	defer srv.Close()
	dir := t.TempDir()
	store, script := filepath.Join(dir, "store"), filepath.Join(dir, "upload")
	text := "#!/bin/sh\nenv >>" + dir + "/env\nmkdir " + store + "/${1##*/}.once || exit 1\ntest $2 = yes && cp $1 " + store + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "pages.jsonl")
	args := []string{"--embedded", "--delay", "0s", "--allow-net", "127.0.0.0/8", "--seed", srv.URL + "/", "--out", out, "--out", "warc:" + filepath.Join(dir, "crawl"), "--rotate-size", "2k"}
	code, log := end(t, append(args, "--on-rotate", script+" {} yes")...) // there is no store yet
	if code != 1 || !strings.Contains(log, "files were not handed over") || !strings.Contains(log, "a file was not handed over") {
		t.Fatal(code, log)
	}
	if err := os.Mkdir(store, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second has nothing to do but its own files
		if code, log := end(t, append(args, "--on-rotate", script+" {} yes")...); code != 0 {
			t.Fatal(code, log)
		}
	}
	stored, _ := filepath.Glob(filepath.Join(store, "*.jsonl"))
	n := 0
	for _, err := range jsonl.Records(stored...) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != 3*51 || len(stored) < 15 {
		t.Errorf("%d records in %d files", n, len(stored))
	}
	archives, _ := filepath.Glob(filepath.Join(dir, "crawl-*.warc.gz"))
	copies, _ := filepath.Glob(filepath.Join(store, "*.warc.gz"))
	if len(archives) < 3 || len(copies) != len(archives) {
		t.Errorf("%d of %d archives", len(copies), len(archives))
	}
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil || strings.Contains(string(env), "geheim") || !strings.Contains(string(env), "PATH=") {
		t.Errorf("%v, %s", err, env)
	}
}
