package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"seine/bench/web"
	"seine/extract/sink/jsonl"
	"seine/extract/sink/sinktest"
)

// pywb replays archives, and returns where.
func pywb(t *testing.T, archives []string) string {
	t.Helper()
	bin, dir := filepath.Dir(sinktest.Python(t)), t.TempDir()
	for _, args := range [][]string{{"init", "crawl"}, append([]string{"add", "crawl"}, archives...)} {
		cmd := exec.Command(filepath.Join(bin, "wb-manager"), args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	ln.Close()
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(bin, "wayback"), "-b", "127.0.0.1", "-p", port)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("pywb:\n%s", log.Bytes()[max(0, log.Len()-4000):])
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return "http://" + addr + "/crawl/"
		}
		if time.Now().After(deadline) {
			t.Fatal("pywb does not listen")
		}
	}
}

// Every page of a crawl of the synthetic web that was fetched replays byte for
// byte.
func TestReplay(t *testing.T) {
	t.Parallel()
	sinktest.Python(t)
	w, err := web.New(web.Config{Seed: 7, Sites: 8, Pages: 250, Features: web.Gentle, CrawlDelay: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	server, err := w.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	dir := t.TempDir()
	args := []string{"--embedded", "--connect-to", server.ConnectTo(), "--per-address", "0", "--delay", "1ms", "--digest", "sha256", "--out", "warc:" + filepath.Join(dir, "crawl"), "--rotate-size", "100k"}
	for _, s := range w.Seeds() {
		args = append(args, "--seed", s)
	}
	p := start(t, args...)
	p.wait(t)
	archives, _ := filepath.Glob(filepath.Join(dir, "crawl-*.warc.gz"))
	if len(archives) < 2 {
		t.Errorf("%d archives", len(archives))
	}
	outs, _ := filepath.Glob(filepath.Join(filepath.Dir(p.out), "pages*.jsonl"))
	at := pywb(t, archives)
	client := &http.Client{Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	n := 0
	for r, err := range jsonl.Records(outs...) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Status == 0 || r.Digest == "" || r.Error != nil {
			continue
		}
		n++
		if err := replays(client, fmt.Sprintf("%s%sid_/%s", at, r.FetchedAt.Format("20060102150405"), r.URL), r.Status, r.Digest); err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
	}
	if n < 200 {
		t.Errorf("%d pages were compared", n)
	}
}

// replays asks for an archived page and compares its status and decoded body.
func replays(client *http.Client, url string, status int, digest string) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept-Encoding", "gzip, deflate, br, zstd") // else pywb decodes what it can
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" {
		if body, err = decode(coding, body); err != nil {
			return err
		}
	}
	if sum := sha256.Sum256(body); resp.StatusCode != status || "sha256:"+hex.EncodeToString(sum[:]) != digest {
		return fmt.Errorf("status %d, %d other bytes: %.100q", resp.StatusCode, len(body), body)
	}
	return nil
}

// decode undoes a content coding.
func decode(coding string, body []byte) ([]byte, error) {
	src := bytes.NewReader(body)
	var r io.Reader
	var err error
	switch coding {
	case "gzip":
		r, err = gzip.NewReader(src)
	case "deflate":
		r, err = zlib.NewReader(src)
	case "br":
		r = brotli.NewReader(src)
	case "zstd":
		r, err = zstd.NewReader(src)
	default:
		err = fmt.Errorf("coding %q", coding)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
