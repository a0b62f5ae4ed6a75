package main_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"seine/shard/shardtest"
)

// Credentials that go out to sites, and cookies that come back, are in no file,
// no list, no log and on no page of a crawl, unless they are asked for.
func TestSecretsStayOut(t *testing.T) {
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
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, `<a href=/last>more</a>`)
	}))
	defer srv.Close()
	for _, keep := range []bool{false, true} {
		server := shardtest.One(t)
		dir := t.TempDir()
		config := filepath.Join(dir, "config.yaml")
		text := "sites: [{match: 127.0.0.1, headers: {Cookie: 'c=" + secret + "', Authorization: 'Bearer " + secret + "'}}]\n"
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"--config", config, "--redis", server.Addrs[0], "--shards", "1", "--plan-urls", "10k", "--delay", "0s", "--exit-when-done",
			"--fields", "headers,body,text,links_out", "--out", "redis:", "--out", "warc:" + filepath.Join(dir, "crawl"), "--out", filepath.Join(dir, "more.jsonl.gz"),
			"--metrics-addr", "0", "--log-level", "debug", "--seed", srv.URL + "/"}
		if keep {
			args = append(args, "--keep-secrets")
		}
		p := start(t, args...)
		if sent := <-got; strings.Count(sent, secret) != 2 {
			t.Fatalf("the site was sent %q", sent)
		}
		<-got
		pages := scrape(t, p)
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
		// Two pages: a cookie each in three listings of headers, and in the archive
		// that cookie and the two headers of the request.
		if want := map[bool]int{true: 2*3 + 2*3}[keep]; found != want || len(archives) != 1 {
			t.Errorf("keep %v: found %d times, want %d, in %d archives", keep, found, want, len(archives))
		}
	}
	code, log := end(t, "--embedded", "--out", "postgres://u:"+secret+"@127.0.0.1:1/d", "--seed", srv.URL)
	if code != 2 || strings.Contains(log, secret) {
		t.Error(code, log)
	}
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
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
