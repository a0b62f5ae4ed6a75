package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seine/shard/shardtest"
)

// buildManager builds the program frontier once for all tests.
var buildManager = sync.OnceValues(func() (string, error) {
	tool := filepath.Join(filepath.Dir(fetcher), "frontier")
	if out, err := exec.Command("go", "build", "-o", tool, "../frontier").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s", out)
	}
	return tool, nil
})

// manager is the program frontier.
func manager(t *testing.T) string {
	t.Helper()
	tool, err := buildManager()
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// endless serves pages without end, each of which links to two more, and counts
// them.
func endless(t *testing.T) (url string, asked *atomic.Int64) {
	asked = new(atomic.Int64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		n := asked.Add(1)
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<a href=/%d>x</a><a href=/%da>y</a>", n, n)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

// TestMistypedState: a directory without a crawl is refused where nothing begins one,
// and not made; where seeds begin one the log has it.
func TestMistypedState(t *testing.T) {
	t.Parallel()
	url, _ := endless(t)
	dir := filepath.Join(t.TempDir(), "a", "typo")
	if code, log := end(t, "--embedded", "--state", dir); code != 3 || !strings.Contains(log, "give --seed URL or --file FILE to begin one there") {
		t.Errorf("code %d: %s", code, log)
	}
	if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
		t.Error("something was made: ", err)
	}
	for _, begins := range []bool{true, false} {
		code, log := end(t, "--embedded", "--state", dir, "--seed", url+"/", "--allow-net", "127.0.0.0/8", "--max-pages", "2", "--delay", "0s", "--out", filepath.Join(t.TempDir(), "o"))
		if code != 0 || strings.Contains(log, "a new crawl begins") != begins {
			t.Errorf("code %d: %s", code, log)
		}
	}
}

// TestMaxPagesIsLogged: a run that ends at --max-pages logs it, and what is left; so
// does a fetcher that has nothing to do for it.
func TestMaxPagesIsLogged(t *testing.T) {
	t.Parallel()
	url, asked := endless(t)
	code, log := end(t, "--embedded", "--seed", url+"/", "--allow-net", "127.0.0.0/8", "--max-pages", "3", "--delay", "0s", "--out", filepath.Join(t.TempDir(), "o"))
	if code != 0 || !strings.Contains(log, "ended     --max-pages reached, 4 URLs of the crawl left") {
		t.Errorf("code %d: %s", code, log)
	}
	asked.Store(0)
	redis := shardtest.One(t)
	p := start(t, "--redis", redis.Addrs[0], "--shards", "1", "--plan-urls", "10k", "--seed", url+"/", "--max-pages", "3", "--delay", "0s")
	awaitLog(t, p, "nothing more is fetched until")
	p.cmd.Process.Signal(os.Interrupt)
	if err := p.cmd.Wait(); err != nil || !strings.Contains(p.log.String(), "ended     by a signal") {
		t.Errorf("%v: %s", err, p.log)
	}
}

func awaitLog(t *testing.T, p *process, want string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(p.log.String(), want); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in %s", want, p.log)
		}
	}
}

// TestSetSiteOfARunningFetcher: what is set for one site holds for it within seconds.
func TestSetSiteOfARunningFetcher(t *testing.T) {
	t.Parallel()
	url, asked := endless(t)
	tool, dir := manager(t), filepath.Join(t.TempDir(), "state")
	p := start(t, "--embedded", "--state", dir, "--seed", url+"/", "--delay", "10ms", "--jitter", "0")
	for asked.Load() < 10 {
		time.Sleep(time.Millisecond)
	}
	if out, err := exec.Command(tool, "set", "--state", dir, "--site", "127.0.0.1", "--delay", "10m").CombinedOutput(); err != nil || !strings.Contains(string(out), "10m0s") {
		t.Fatalf("%v: %s", err, out)
	}
	for deadline, was := time.Now().Add(30*time.Second), int64(-1); asked.Load() != was; time.Sleep(time.Second) {
		if was = asked.Load(); time.Now().After(deadline) {
			t.Fatal("it goes on as fast")
		}
	}
	p.cmd.Process.Signal(os.Interrupt)
	p.wait(t)
}

// TestAttemptsOfTheDead: a dead letter has as many attempts as its record.
func TestAttemptsOfTheDead(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nDisallow: /private")
			return
		}
		w.WriteHeader(http.StatusGone)
		if r.URL.Path == "/two" {
			panic(http.ErrAbortHandler)
		}
	}))
	defer srv.Close()
	tool, dir, out := manager(t), filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "o.jsonl")
	end(t, "--embedded", "--state", dir, "--seed", srv.URL+"/two", "--seed", srv.URL+"/private", "--allow-net", "127.0.0.0/8", "--delay", "0s", "--attempts", "1", "--out", out)
	text, err := exec.Command(tool, "dead", "list", "--json", "--state", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	attempts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var l struct {
			URL      string
			Attempts int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		attempts[l.URL] = l.Attempts
	}
	records, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(records)) {
		var r struct {
			URL      string
			Attempts int
			Error    any
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if n++; r.Error != nil && attempts[r.URL] != r.Attempts {
			t.Errorf("%s: the record says %d attempts, the dead letter %d", r.URL, r.Attempts, attempts[r.URL])
		}
	}
	if n != 2 || attempts[srv.URL+"/two"] != 1 || attempts[srv.URL+"/private"] != 0 {
		t.Errorf("%d records, %v", n, attempts)
	}
}

// TestDebugLogsEachURL: at level debug there is a line a URL: outcome, status,
// time, and the page that linked to it where the crawl keeps that.
func TestDebugLogsEachURL(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: *\nDisallow: /private")
		case "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<a href=/gone>x</a><a href=/private>y</a>")
		default:
			w.WriteHeader(http.StatusGone)
		}
	}))
	defer srv.Close()
	seed := strings.Replace(srv.URL, "http://", "http://usr:sesame@", 1) + "/"
	_, log := end(t, "--embedded", "--log-level", "debug", "--referrer", "--seed", seed, "--allow-net", "127.0.0.0/8", "--delay", "0s", "--out", filepath.Join(t.TempDir(), "o"))
	lines := map[string]string{}
	for line := range strings.Lines(log) {
		if _, rest, ok := strings.Cut(line, "level=DEBUG msg=url url="+srv.URL); ok {
			path, rest, _ := strings.Cut(rest, " ")
			lines[path] = rest
		}
	}
	for path, wants := range map[string][]string{
		"/": {"outcome=done status=200 ms="}, "/gone": {"outcome=done status=410 ms=", "referrer=" + srv.URL + "/"},
		"/private": {"outcome=dead status=0", "cause=robots", "referrer=" + srv.URL + "/"},
	} {
		for _, want := range wants {
			if !strings.Contains(lines[path], want) {
				t.Errorf("%s: no %q in %q", path, want, lines[path])
			}
		}
	}
	if len(lines) != 3 || strings.Contains(log, "sesame") {
		t.Error(log)
	}
}
