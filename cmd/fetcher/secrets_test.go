package main_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"seine/shard/shardtest"
)

// Credentials that go out to sites, and cookies that come back and are kept, are in no
// file, no list, no log and on no page of a crawl, unless they are asked for.
func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	const secret = "offenesgeheimnis"
	got := make(chan string, 100)
	release := make(chan struct{}, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		got <- r.Header.Get("Cookie") + r.Header.Get("Authorization")
		if r.URL.Path == "/last" {
			<-release // until the pages of the process were read
		}
		w.Header().Set("Set-Cookie", "session="+secret)
		if r.URL.Path == "/round" {
			w.Header().Set("Location", "/round")
			w.WriteHeader(http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, `<a href=/last>more</a><a href=/round>dead</a>`)
	}))
	defer srv.Close()
	defer close(release) // before that, which waits for answers
	tool := manager(t)
	for _, keep := range []bool{false, true} {
		server := shardtest.One(t)
		dir := t.TempDir()
		config := filepath.Join(dir, "config.yaml")
		text := "sites: [{match: 127.0.0.1, headers: {Cookie: 'c=" + secret + "', Authorization: 'Bearer " + secret + "'}}]\n"
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"--config", config, "--redis", server.Addrs[0], "--shards", "1", "--plan-urls", "10k", "--delay", "0s", "--exit-when-done", "--cookies", "site", "--visit-urls", "1", "--priority", "last=3",
			"--fields", "headers,body,text,links_out", "--out", "redis:", "--out", "warc:" + filepath.Join(dir, "crawl"), "--out", filepath.Join(dir, "more.jsonl.gz"),
			"--metrics-addr", "0", "--log-level", "debug", "--seed", srv.URL + "/"}
		if keep {
			args = append(args, "--keep-secrets")
		}
		p := start(t, args...)
		if sent := <-got; strings.Count(sent, secret) != 2 {
			t.Fatalf("the site was sent %q", sent)
		}
		if sent := <-got; strings.Count(sent, secret) != 3 {
			t.Fatalf("with its cookie the site was sent %q", sent)
		}
		<-got
		pages := scrape(t, p)
		if kept := strings.Join(cookies(t, server), ""); strings.Count(kept, secret) != 1 {
			t.Errorf("kept is %q", kept)
		}
		pages += reported(t, tool, server.Addrs[0], srv.URL+"/round")
		release <- struct{}{}
		p.wait(t)
		found := strings.Count(p.log.String()+pages, secret)
		if found != 0 {
			t.Errorf("in the log or on a page:\n%s", p.log)
		}
		for _, line := range server.Nodes[0].Client().LRange(t.Context(), "seine:items", 0, -1).Val() {
			found += strings.Count(line, secret)
		}
		files := []string{p.out, filepath.Join(dir, "more.jsonl.gz")}
		archives, _ := filepath.Glob(filepath.Join(dir, "crawl-*"))
		for _, path := range append(files, archives...) {
			found += bytes.Count(content(t, path), []byte(secret))
		}
		// Three pages: a cookie each in three listings of headers, and in the archive
		// that cookie and the two headers of the request, of which one has the cookie
		// that was kept, too, but for the first page. The archive has the request for
		// robots.txt too, with the two headers.
		if want := map[bool]int{true: 3*3 + 3*3 + 2 + 2}[keep]; found != want || len(archives) != 1 {
			t.Errorf("keep %v: found %d times, want %d, in %d archives", keep, found, want, len(archives))
		}
	}
	code, log := end(t, "--embedded", "--out", "postgres://u:"+secret+"@127.0.0.1:1/d", "--seed", srv.URL)
	if code != 2 || strings.Contains(log, secret) {
		t.Error(code, log)
	}
}

// cookies are those that sites have in Redis.
func cookies(t *testing.T, server *shardtest.Server) (list []string) {
	c := server.Nodes[0].Client()
	for _, key := range c.Keys(t.Context(), "*}:s:*").Val() {
		if kept := c.HGet(t.Context(), key, "cookies").Val(); kept != "" {
			list = append(list, kept)
		}
	}
	return list
}

// reported is what frontier prints of a crawl that keeps cookies, of one of its URLs that is
// dead and of its site, in lists, files and on pages.
func reported(t *testing.T, tool, redis, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "left.zst")
	var out strings.Builder
	run := func(args ...string) *exec.Cmd {
		return exec.Command(tool, append(args, "--redis", redis, "--log-level", "debug")...)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if text, _ := run("dead", "list").CombinedOutput(); strings.Contains(string(text), url) {
			break
		}
	}
	for _, args := range [][]string{
		{"why", url}, {"sites", "--site", "127.0.0.1"}, {"stats", "--json"}, {"report", "--json"}, {"dead", "list"}, {"shards"}, {"check"}, {"export", file},
	} {
		text, err := run(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v: %s", args, err, text)
		}
		out.Write(text)
	}
	out.Write(content(t, file))
	out.Write(content(t, strings.TrimSuffix(file, ".zst")+".yaml"))
	p := &process{cmd: run("web", "--listen", "127.0.0.1:0"), log: new(logText)}
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { p.cmd.Process.Kill(); p.cmd.Wait() }()
	at := regexp.MustCompile(`addr=(\S+)`)
	for end := time.Now().Add(time.Minute); at.FindString(p.log.String()) == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no page: %s", p.log)
		}
	}
	for _, path := range []string{"", "api/now", "api/dead?cause=redirect_loop", "api/stopped", "api/sites?site=127.0.0.1", "api/why?url=" + url} {
		resp, err := http.Get("http://" + at.FindStringSubmatch(p.log.String())[1] + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %s: %s", path, err, resp.Status, text)
		}
		out.Write(text)
	}
	for _, want := range []string{"redirect_loop", "127.0.0.1", "cookies: site"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no output has %s", want)
		}
	}
	return out.String() + p.log.String()
}

// content is what a file holds, decompressed.
func content(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	switch filepath.Ext(path) {
	case ".gz":
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	case ".zst":
		d, err := zstd.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		r = d
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
