//go:build linux

package chaos

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fetcher is one running fetcher. Started again, it writes on to the same
// files, as under a supervisor.
type fetcher struct {
	w     *world
	name  string
	out   string // its records
	log   string
	args  []string
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process was waited for
	err   error         // how it ended
	from  int           // bytes of the log before the last start
}

// start starts n more fetchers.
func (w *world) start(n int, args ...string) {
	w.t.Helper()
	for range n {
		name := fmt.Sprint("f", len(w.fetchers))
		f := &fetcher{w: w, name: name, out: filepath.Join(w.records, name+".jsonl"), log: filepath.Join(w.dir, name+".log"), args: args}
		w.fetchers = append(w.fetchers, f)
		w.t.Cleanup(func() { f.end(w.t) })
		f.start()
	}
}

func (f *fetcher) start() {
	f.w.t.Helper()
	s := f.w.setup
	args := []string{"--allow-net", "127.0.0.0/8", "--per-address", "0", "--connect-to", f.w.server.ConnectTo(), "--out", f.out,
		"--metrics-addr", "127.0.0.1:0", "--exit-when-done", "--lease", s.lease.String()}
	if !s.embedded {
		args = append(args, "--redis", f.w.via)
	}
	args = append(append(args, s.fetch...), f.args...)
	log, err := os.OpenFile(f.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.w.t.Fatal(err)
	}
	defer log.Close()
	f.from = len(f.logged())
	f.cmd = exec.Command(filepath.Join(bin, "fetcher"), args...)
	f.cmd.Stdout, f.cmd.Stderr, f.cmd.Env = log, log, environment()
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := f.cmd.Start(); err != nil {
		f.w.t.Fatal(err)
	}
	f.w.pids.Store(f.name, f.cmd.Process.Pid)
	f.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		f.err = cmd.Wait()
		close(ended)
	}(f.cmd, f.ended)
}

// environment is ours without the kit's own settings, which name no flags.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "SEINE_CHAOS") })
}

func (f *fetcher) running() bool {
	select {
	case <-f.ended:
		return false
	default:
		return true
	}
}

// kill ends it as kill -9 does.
func (f *fetcher) kill() {
	f.w.t.Helper()
	if !f.running() {
		f.w.t.Fatalf("%s ended by itself: %v\n%s", f.name, f.err, f.tail())
	}
	f.cmd.Process.Kill()
	<-f.ended
}

// wait waits until it ended, which it must do well.
func (f *fetcher) wait() {
	f.w.t.Helper()
	select {
	case <-f.ended:
		if f.err != nil {
			f.w.t.Fatalf("%s: %v\n%s", f.name, f.err, f.tail())
		}
	case <-time.After(patience):
		f.cmd.Process.Signal(syscall.SIGQUIT)
		<-f.ended
		f.w.t.Fatalf("%s does not end; %+v\n%s", f.name, f.w.counts(), f.logged())
	}
}

// counts are the counters of the crawl, where there are any to be had.
func (w *world) counts() any {
	if w.front == nil {
		return "embedded"
	}
	return w.stats()
}

// end is the clean-up.
func (f *fetcher) end(t *testing.T) {
	f.cmd.Process.Kill()
	<-f.ended
	if t.Failed() {
		t.Logf("%s, end of its log:\n%s", f.name, f.tail())
	}
}

func (f *fetcher) logged() string {
	b, _ := os.ReadFile(f.log)
	return string(b)
}

func (f *fetcher) tail() string {
	lines := strings.Split(strings.TrimSpace(f.logged()), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

var serving = regexp.MustCompile(`serving /metrics and /healthz.*addr=(\S+)`)

// ask gets a path of its monitor; "" while it does not answer.
func (f *fetcher) ask(path string) string {
	m := serving.FindStringSubmatch(f.logged()[f.from:])
	if m == nil {
		return ""
	}
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get("http://" + m[1] + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// metric is the sum of a metric over all lines that carry a label, such as
// fault="broken", or over all; -1 when there are none.
func (f *fetcher) metric(name, label string) float64 {
	sum, found := 0.0, false
	for line := range strings.Lines(f.ask("/metrics")) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if base, labels, _ := strings.Cut(series, "{"); base != name || !strings.Contains(labels, label) {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			sum, found = sum+v, true
		}
	}
	if !found {
		return -1
	}
	return sum
}

// pick is a random fetcher.
func (w *world) pick() *fetcher { return w.fetchers[w.rng.IntN(len(w.fetchers))] }

// waitAll waits until the crawl is over.
func (w *world) waitAll() {
	w.t.Helper()
	for _, f := range w.fetchers {
		f.wait()
	}
}
