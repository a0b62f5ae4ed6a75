package main_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"seine/shard/shardtest"
)

// end runs the program to its end and returns its exit code and log.
func end(t *testing.T, args ...string) (code int, log string) {
	t.Helper()
	cmd := exec.Command(fetcher, args...)
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// What is wrong is seen before Redis is asked: none runs at port 1.
func TestWrongFlagsEndWithTwo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "urls")
	if err := os.WriteFile(file, []byte("no url\nnor this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]string{
		"--embedded":                          "nothing to crawl",
		"--embedded --file " + file:           "2 seeds, all bad",
		"--embedded --seed http://u:pw@[b/":   "xxxxx@",
		"--embedded --redis h:1":              "--redis is for a crawl in Redis",
		"--embedded --memory-high 85":         "--memory-high is for a crawl in Redis",
		"--embedded --shards 9":               "--shards is for",
		"--out x --scope x":                   "scope is",
		"--out x --connect-to x":              "connect-to",
		"--out x --contact x":                 "contact is",
		"--out x --crawl a:b":                 "no name for a crawl",
		"--embedded --rotate-size 1M":         "--out FILE",
		"--embedded --concurrency 100001":     "at most 100000",
		"--out x --ca /nowhere":               "CA",
		"--out x --fields x":                  "fields",
		"--embedded --state=":                 "state is empty",
		"--out x --overflow=":                 "overflow is empty",
		"--embedded --overflow x":             "--overflow is for a crawl in Redis",
		"--embedded --seed x --max-links=-1":  "max-links",
		"--embedded --user-agent /1.0":        "--robots-agent",
		"--out x --shards 2 --user-agent /1":  "--robots-agent",
		"--out x --max-crawl-delay 25h":       "max-crawl-delay is 25h",
		"--out x --bind x":                    `"x" is not an IP address`,
		"--out x --bind 198.51.100.7":         "198.51.100.7: this machine does not have the address",
		"--out x --bind 2001:db8:5e1e::/64":   "ip -6 route add local 2001:db8:5e1e::/64 dev lo",
		"--out x --bind ::1 --proxy http://a": "bind and proxy",
	} {
		args := strings.Fields(flags)
		if args[0] != "--embedded" {
			args = append(args, "--redis", "127.0.0.1:1")
		}
		code, log := end(t, args...)
		if code != 2 || !strings.Contains(log, want) || strings.Contains(log, "pw@") {
			t.Errorf("%s: code %d, %s", flags, code, log)
		}
	}
}

// Rules of the YAML file make fields of records; bad ones are refused at start,
// with file and line.
func TestFieldRules(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<h1>Lamp</h1><p class=price>12,50"))
	}))
	defer srv.Close()
	dir := t.TempDir()
	config, out := filepath.Join(dir, "seine.yaml"), filepath.Join(dir, "out.jsonl")
	args := []string{"--embedded", "--config", config, "--out", out, "--delay", "0s", "--allow-net", "127.0.0.0/8", "--seed", srv.URL + "/"}
	for text, want := range map[string]string{
		"fields:\n- body\n- name: title\n  css: h1\n- {name: price, css: .price, type: number, decimal: ','}\n": `"fields":{"title":"Lamp","price":12.50}`,
		"fields:\n- name: title\n  css: h1\n- name: price\n  css: 'p['\n":                                       "seine.yaml:4: rule of",
	} {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, log := end(t, args...)
		if strings.HasPrefix(want, "seine") {
			if code != 2 || !strings.Contains(log, want) {
				t.Errorf("%s: code %d, %s", text, code, log)
			}
			continue
		}
		records, err := os.ReadFile(out)
		if code != 0 || err != nil || !strings.Contains(string(records), want) || !strings.Contains(string(records), `"body":"<h1>`) {
			t.Errorf("%s: code %d, %s, %v, %s", text, code, log, err, records)
		}
	}
}

// A run without a page is no success: seeds that do not answer, or with errors,
// or that lead nowhere.
func TestEverySeedFailed(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			w.Write([]byte("User-agent: *\nDisallow: /private\n"))
		case "/moved":
			http.Redirect(w, r, "/gone", http.StatusFound)
		case "/":
		default:
			w.WriteHeader(http.StatusGone)
		}
	}))
	defer srv.Close()
	for seeds, want := range map[string]string{
		"/gone":           "1 URL (4xx 1)",
		"/private /gone":  "2 URLs (4xx 1, robots 1)",
		"/moved":          "2 URLs (3xx 1, 4xx 1)",
		"/gone / /moved":  "",
		"http://[::1]:1/": "1 URL (connect",
	} {
		args := []string{"--embedded", "--delay", "0s", "--attempts", "1", "--max-time", "1m", "--allow-net", "127.0.0.0/8,::1/128"}
		for seed := range strings.FieldsSeq(seeds) {
			if seed[0] != '/' {
				args = append(args, "--robots", "ignore", "--seed", seed)
				continue
			}
			args = append(args, "--seed", srv.URL+seed)
		}
		code, log := end(t, args...)
		if want == "" && code != 0 || want != "" && (code != 1 || !strings.Contains(log, "every seed failed") || !strings.Contains(log, want)) {
			t.Errorf("%s: code %d, %s", seeds, code, log)
		}
	}
}

// A finished crawl that is given nothing has nothing to do; with known seeds
// it is done.
func TestStateWithoutWork(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	args := []string{"--embedded", "--state", filepath.Join(t.TempDir(), "state"), "--delay", "0s", "--seed", srv.URL + "/", "--allow-net", "127.0.0.0/8"}
	for range 2 {
		if code, log := end(t, args...); code != 0 {
			t.Fatal(code, log)
		}
	}
	if code, log := end(t, args[:5]...); code != 2 || !strings.Contains(log, "nothing to crawl") {
		t.Error(code, log)
	}
}

// The log has what becomes of a cut request.
func TestGraceRunsOut(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	hold := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		asked <- struct{}{}
		<-hold
	}))
	defer srv.Close()
	defer close(hold)
	for flags, want := range map[string]string{"": "there is no --state", "--state " + filepath.Join(t.TempDir(), "s"): "goes on from --state"} {
		p := start(t, append(strings.Fields(flags), "--embedded", "--grace", "10ms", "--seed", srv.URL+"/")...)
		<-asked
		p.cmd.Process.Signal(syscall.SIGTERM)
		err := p.cmd.Wait()
		for _, want := range []string{want, "stopping: requests under way end", "requests=1 grace=10ms", ": by a signal, and --grace ran out, "} {
			if err == nil || !strings.Contains(p.log.String(), want) {
				t.Errorf("%s: %v: no %q in %s", flags, err, want, p.log)
			}
		}
	}
}

// A fetcher that is stopped while Redis is away logs it once.
func TestStopWithoutRedis(t *testing.T) {
	t.Parallel()
	redis := shardtest.One(t)
	p := start(t, "--redis", redis.Addrs[0], "--shards", "1", "--plan-urls", "10k", "--grace", "100ms", "--metrics-addr", "0")
	scrape(t, p)
	redis.Nodes[0].Kill(t)
	for { // until nothing listens any more
		c, err := net.DialTimeout("tcp", redis.Addrs[0], time.Second)
		if err != nil {
			break
		}
		c.Close()
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	err := p.cmd.Wait()
	log := p.log.String()
	if err == nil || strings.Count(log, "cannot reach Redis") != 1 || strings.Contains(log, "shard -1") {
		t.Errorf("%v: %s", err, log)
	}
}
