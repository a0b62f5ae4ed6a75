package main_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/extract/sink/jsonl"
)

// --on-rotate runs for every file of a crawl, the last ones too, and sees no secrets. The
// next start runs it where it failed.
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
	if code != 1 || !strings.Contains(log, "--on-rotate is not done for") || !strings.Contains(log, "--on-rotate failed for a file") {
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

// A command that hangs delays the end by --grace. The log names the files that are left, and
// no empty file is among them.
func TestOnRotateHangs(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	dir := t.TempDir()
	script, out := filepath.Join(dir, "upload"), filepath.Join(dir, "pages.jsonl.zst")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	code, log := end(t, "--embedded", "--seed", srv.URL+"/", "--allow-net", "127.0.0.0/8", "--out", out, "--on-rotate", script+" {}", "--grace", "200ms")
	left, _ := filepath.Glob(filepath.Join(dir, "pages-*.jsonl.zst"))
	if len(left) != 1 || code == 0 {
		t.Fatalf("code %d, left: %v, %s", code, left, log)
	}
	for _, want := range []string{"waiting for --on-rotate", "--on-rotate is not done for a file", left[0]} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in %s", want, log)
		}
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", out, err)
	}
}

// The next start runs --on-rotate for a killed fetcher's files; twice are at most
// those whose command ran when it died.
func TestOnRotateKilled(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		time.Sleep(2 * time.Millisecond)
		for i := range 2000 {
			fmt.Fprintf(w, "<a href=/%d>", i)
		}
	}))
	defer srv.Close()
	dir := t.TempDir()
	calls, script := filepath.Join(dir, "calls"), filepath.Join(dir, "upload")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsleep 0.01\necho $1 >>"+calls+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	const jobs = 3
	args := []string{"--embedded", "--delay", "0s", "--concurrency", "2", "--seed", srv.URL + "/", "--out", "warc:" + filepath.Join(dir, "crawl"),
		"--rotate-size", "10k", "--on-rotate", script + " {}", "--on-rotate-jobs", fmt.Sprint(jobs)}
	called := func() []string {
		data, _ := os.ReadFile(calls)
		return strings.Fields(string(data))
	}
	p := start(t, args...)
	for deadline := time.Now().Add(time.Minute); len(called()) < 10; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("--on-rotate did not run: ", p.log)
		}
	}
	p.cmd.Process.Kill()
	p.cmd.Wait()
	if code, log := end(t, append(args, "--max-time", "1s", "--allow-net", "127.0.0.0/8")...); code != 0 {
		t.Fatal(code, log)
	}
	count := map[string]int{}
	for _, path := range called() {
		if strings.HasSuffix(path, ".warc.gz") { // the first fetcher had another output too
			count[path]++
		}
	}
	twice := 0
	for _, n := range count {
		twice += n - 1
	}
	archives, _ := filepath.Glob(filepath.Join(dir, "crawl-*.warc.gz"))
	for _, path := range archives {
		if count[path] == 0 {
			t.Errorf("--on-rotate did not run for %s", path)
		}
	}
	if twice > jobs || len(count) != len(archives) {
		t.Errorf("%d archives, --on-rotate ran for %d, twice for %d", len(archives), len(count), twice)
	}
}
