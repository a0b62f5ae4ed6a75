package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"seine/bench/machine"
)

// times is what a process has used of the processors.
type times struct{ user, kernel time.Duration }

func (t times) plus(o times) times  { return times{t.user + o.user, t.kernel + o.kernel} }
func (t times) minus(o times) times { return times{t.user - o.user, t.kernel - o.kernel} }
func (t times) all() time.Duration  { return t.user + t.kernel }

const tickOfClock = 10 * time.Millisecond // USER_HZ is 100 on all that Linux runs on

// used reads the times of a process, with those of children that have ended, and
// of the children that run.
func used(pid int) (times, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return times{}, fmt.Errorf("processor time: %w", err)
	}
	field := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the third of stat on
	var n [4]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(field[11+i], 10, 64); err != nil {
			return times{}, fmt.Errorf("processor time of process %d: %w", pid, err)
		}
	}
	t := times{time.Duration(n[0]+n[2]) * tickOfClock, time.Duration(n[1]+n[3]) * tickOfClock}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for child := range strings.FieldsSeq(string(children)) {
		id, _ := strconv.Atoi(child)
		if c, err := used(id); err == nil { // it may just have ended
			t = t.plus(c)
		}
	}
	return t, nil
}

// status reads a number of kB in a process's status, in bytes.
func status(pid int, name string) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb * 1024
		}
	}
	return 0
}

// files counts what a process has open, and how much of it is sockets.
func files(pid int) (all, sockets int) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if to, _ := os.Readlink(filepath.Join(dir, e.Name())); strings.HasPrefix(to, "socket:") {
			sockets++
		}
	}
	return len(entries), sockets
}

// fetcher is one that runs.
type fetcher struct {
	cmd     *exec.Cmd
	metrics string // its address
	client  http.Client
	log     bytes.Buffer
	ended   chan struct{}
	err     error
}

// startFetcher runs a fetcher, with a limit of open files if that is not 0.
func startFetcher(name string, args []string, files int) (*fetcher, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	f := &fetcher{metrics: fmt.Sprintf("127.0.0.1:%d", port), ended: make(chan struct{})}
	f.client = http.Client{Transport: &http.Transport{}, Timeout: time.Second} // one connection, as early as it can be had
	args = append(args, "--metrics-addr", f.metrics, "--log-level", "warn")
	if files > 0 {
		args = append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), name}, args...)
		name = "sh"
	}
	f.cmd = exec.Command(name, args...)
	f.cmd.Stdout, f.cmd.Stderr = io.Discard, &f.log
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		f.err = f.cmd.Wait()
		close(f.ended)
	}()
	return f, nil
}

func (f *fetcher) pid() int { return f.cmd.Process.Pid }

// over is why it has ended, nil while it runs or when its crawl is done.
func (f *fetcher) over() error {
	select {
	case <-f.ended:
		if f.err != nil {
			return fmt.Errorf("a fetcher ended: %w: %s", f.err, f.log.Bytes())
		}
	default:
	}
	return nil
}

// stop ends it in order, or at once after some seconds.
func (f *fetcher) stop() {
	defer f.client.CloseIdleConnections()
	f.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-f.ended:
	case <-time.After(5 * time.Second):
		f.cmd.Process.Kill()
		<-f.ended
	}
}

// ofCrawl is the label that all metrics carry.
var ofCrawl = regexp.MustCompile(`\{crawl="[^"]*",?`)

// shown reads its metrics, without the name of the crawl.
func (f *fetcher) shown() (map[string]float64, error) {
	answer, err := f.client.Get("http://" + f.metrics + "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	all := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		name, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			all[strings.TrimSuffix(ofCrawl.ReplaceAllString(name, "{"), "{}")] = n
		}
	}
	return all, nil
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// master is a Redis server on this machine.
type master struct {
	addr string
	pid  int
}

func findMasters(addrs string) ([]master, error) {
	var all []master
	for addr := range strings.SplitSeq(addrs, ",") {
		m := master{addr: addr}
		id, err := m.info("server", "process_id")
		if err != nil {
			return nil, err
		}
		m.pid = int(id)
		if _, err := used(m.pid); err != nil {
			return nil, fmt.Errorf("the server at %s is not on this machine: %w", addr, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// memory is what it holds in bytes, 0 when it does not answer.
func (m *master) memory() float64 {
	n, _ := m.info("memory", "used_memory")
	return n
}

// forget drops what a server keeps of crawls that are deleted: their scripts and, a
// megabyte, how long each command took.
func (m *master) forget() error {
	_, scripts := machine.Redis(m.addr, "script", "flush")
	_, times := machine.Redis(m.addr, "config", "resetstat")
	return errors.Join(scripts, times)
}

// info reads one number of INFO.
func (m *master) info(section, name string) (float64, error) {
	out, err := machine.Redis(m.addr, "info", section)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return strconv.ParseFloat(rest, 64)
		}
	}
	return 0, fmt.Errorf("redis-cli at %s: no %s in %q", m.addr, name, out)
}
