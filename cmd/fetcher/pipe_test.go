package main_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"seine/extract/sink/jsonl"
)

// chain serves n pages, each of which links to the next.
func chain(t *testing.T, n int) (url string) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var i int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &i); err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		if i+1 < n {
			fmt.Fprintf(w, "<a href=/%d>x</a>", i+1)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestPipeAsOutput: the program waits for a reader of its FIFO, ends with an error
// when he leaves, and what he did not take the next run fetches.
func TestPipeAsOutput(t *testing.T) {
	t.Parallel()
	const pages = 30
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip("no pipes here: ", err)
	}
	args := []string{"--embedded", "--state", filepath.Join(dir, "state"), "--seed", chain(t, pages) + "/0", "--delay", "20ms", "--jitter", "0", "--allow-net", "127.0.0.0/8"}
	cmd := exec.Command(fetcher, append(args, "--out", fifo)...)
	log := new(logText)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	select {
	case err := <-ended:
		t.Fatalf("it did not wait for a reader: %v: %s", err, log)
	case <-time.After(300 * time.Millisecond):
	}
	reader, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	taken := map[string]bool{}
	lines := bufio.NewScanner(reader)
	for range 3 {
		if !lines.Scan() {
			t.Fatal(lines.Err(), log)
		}
		_, url, _ := strings.Cut(lines.Text(), `"url":"`)
		url, _, _ = strings.Cut(url, `"`)
		taken[url] = true
	}
	reader.Close()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(log.String(), "reader left") {
			t.Fatalf("%v: %s", err, log)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on without a reader: ", log)
	}
	out := filepath.Join(dir, "rest.jsonl")
	if code, log := end(t, append(args, "--out", out)...); code != 0 {
		t.Fatal(code, log)
	}
	for r, err := range jsonl.Records(out) {
		if err != nil {
			t.Fatal(err)
		}
		taken[r.URL] = true
	}
	if len(taken) != pages {
		t.Errorf("%d of %d pages were delivered", len(taken), pages)
	}
}

// TestStandardOutput: /dev/stdout is written to as - is; a reader that leaves ends the
// run with an error, and so does a closed one.
func TestStandardOutput(t *testing.T) {
	t.Parallel()
	url := chain(t, 20) + "/0"
	for _, out := range []string{"-", "/dev/stdout"} {
		for name, c := range map[string]struct{ shell, want string }{
			"read":   {`"$0" "$@" 2>/dev/null | grep -c '"status":200'`, "20"},
			"closed": {`"$0" "$@" 2>&1 >&-; echo code $?`, "code 1"},
		} {
			cmd := exec.Command("sh", "-c", c.shell, fetcher, "--embedded", "--seed", url, "--delay", "20ms", "--jitter", "0", "--allow-net", "127.0.0.0/8", "--out", out)
			text, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(text), c.want) {
				t.Errorf("%s, %s: %v: %s", out, name, err, text)
			}
		}
	}
}
