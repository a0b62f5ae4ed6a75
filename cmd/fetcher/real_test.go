package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seine/bench/load"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

// fetcher is the program under test, built once.
var fetcher string

func TestMain(m *testing.M) {
	shardtest.SideBySide(6)
	dir, err := os.MkdirTemp("", "fetcher")
	if err != nil {
		panic(err)
	}
	fetcher = filepath.Join(dir, "fetcher")
	if out, err := exec.Command("go", "build", "-o", fetcher, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// docs serves n sites of each of the two documentation packages.
func docs(t *testing.T, n int) (*load.Server, []string) {
	t.Helper()
	var sites []load.Site
	for i := range n {
		sites = append(sites, load.Site{Host: fmt.Sprintf("127.0.0.%d", 2+i), Root: load.PostgresDoc},
			load.Site{Host: fmt.Sprintf("127.0.1.%d", 2+i), Root: load.PythonDoc})
	}
	s, err := load.Start(t.TempDir(), sites, load.Way{})
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("SKIPPED, needs the documentation packages and nginx: ", err)
	}
	t.Cleanup(s.Stop)
	var seeds []string
	for i := range sites {
		seeds = append(seeds, s.URL(i, "/index.html"))
	}
	return s, seeds
}

// logText is what a process wrote so far; it may be read while it runs.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// process is one running fetcher.
type process struct {
	cmd *exec.Cmd
	out string // its records
	log *logText
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{out: filepath.Join(t.TempDir(), "pages.jsonl"), log: new(logText)}
	args = append(args, "--allow-net", "127.0.0.0/8", "--per-address", "0", "--out", p.out)
	p.cmd = exec.Command(fetcher, args...)
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		if t.Failed() {
			t.Logf("log of process %d:\n%s", p.cmd.Process.Pid, p.log)
		}
	})
	return p
}

// wait waits until the process ended well.
func (p *process) wait(t *testing.T) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("fetcher: %v\n%s", err, p.log)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("fetcher does not end")
	}
}

// checkDocs holds the access log against what the packages hold: every URL
// asked for, once, but for at most repeats more.
func checkDocs(t *testing.T, s *load.Server, n, repeats int) {
	t.Helper()
	asked, err := s.Requests()
	if err != nil {
		t.Fatal(err)
	}
	type pages struct{ ok, missing int }
	got := make(map[string]*pages)
	more := 0
	for a, times := range asked {
		if got[a.Host] == nil {
			got[a.Host] = new(pages)
		}
		switch a.Status {
		case 200:
			got[a.Host].ok++
		case 404:
			got[a.Host].missing++
		default:
			t.Errorf("%s%s answered %d", a.Host, a.Path, a.Status)
		}
		if times > 1 {
			more += times - 1
			if repeats == 0 {
				t.Errorf("%s%s was asked for %d times", a.Host, a.Path, times)
			}
		}
	}
	if more > repeats {
		t.Errorf("%d requests were repeated, the killed fetcher had leased %d URLs", more, repeats)
	}
	for i := range n {
		for host, want := range map[string]pages{fmt.Sprintf("127.0.0.%d", 2+i): {1169, 0}, fmt.Sprintf("127.0.1.%d", 2+i): {527, 1}} {
			if got[host] == nil || *got[host] != want {
				t.Errorf("%s: %+v pages found and missing, want %+v", host, got[host], want)
			}
		}
	}
}

func seedFlags(seeds []string) []string {
	var flags []string
	for _, s := range seeds {
		flags = append(flags, "--seed", s)
	}
	return flags
}

func TestRealEmbedded(t *testing.T) {
	t.Parallel()
	s, seeds := docs(t, 1)
	p := start(t, append([]string{"--embedded", "--delay", "0s"}, seedFlags(seeds)...)...)
	p.wait(t)
	checkDocs(t, s, 1, 0)
	records, err := os.ReadFile(p.out)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(records), "\n"); n != 1169+528 {
		t.Errorf("%d records, want %d", n, 1169+528)
	}
}

// fleet starts n fetchers of one crawl on six masters that seed it together.
func fleet(t *testing.T, n int, delay, lease string, seeds []string) ([]*process, []string) {
	t.Helper()
	redis := shardtest.Masters(t, 6)
	args := []string{"--redis", strings.Join(redis.Addrs, ","), "--shards", "6", "--plan-urls", "100k",
		"--delay", delay, "--exit-when-done", "--lease", lease}
	var all []*process
	for range n {
		all = append(all, start(t, append(args, seedFlags(seeds)...)...))
	}
	return all, args
}

func TestRealFleet(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s, seeds := docs(t, 4)
			all, _ := fleet(t, n, "0s", "1m", seeds)
			for _, p := range all {
				p.wait(t)
			}
			checkDocs(t, s, 4, 0)
		})
	}
}

func TestRealFleetKill(t *testing.T) {
	t.Parallel()
	lost := 0
	for try := 0; try < 4 && lost == 0 && !t.Failed(); try++ { // the blow may fall between two visits
		t.Run(fmt.Sprint(try), func(t *testing.T) { lost = killOne(t) })
	}
	if lost == 0 && !t.Failed() {
		t.Error("no killed fetcher had leased anything: the test shows nothing")
	}
}

// killOne kills the busiest fetcher of three in mid-crawl, starts another, and
// returns how many URLs it had leased, which alone may have been asked for again.
func killOne(t *testing.T) (lost int) {
	s, seeds := docs(t, 4)
	all, args := fleet(t, 3, "5ms", "5s", seeds)
	for total := 0; total < 1500; total = len(requests(t, s)) {
		time.Sleep(20 * time.Millisecond) // between looks at the log
	}
	victim := busiest(t, all)
	all[victim].cmd.Process.Signal(syscall.SIGKILL)
	all = append(slices.Delete(all, victim, victim+1), start(t, args...))
	for _, p := range all {
		p.wait(t)
	}
	lost = lostURLs(t, args[1])
	checkDocs(t, s, 4, lost)
	return lost
}

// busiest is the process that writes the most records just now. The others may
// hold nothing: with few sites one of them can have them all.
func busiest(t *testing.T, all []*process) int {
	t.Helper()
	before := make([]int64, len(all))
	for i, p := range all {
		before[i] = p.written()
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond) // between looks at the files
		for i, p := range all {
			if p.written()-before[i] > 8<<10 {
				return i
			}
		}
	}
	t.Fatal("no process writes records")
	return 0
}

// written is the size of its records so far.
func (p *process) written() int64 {
	info, err := os.Stat(p.out)
	if err != nil {
		return 0 // not there yet
	}
	return info.Size()
}

func requests(t *testing.T, s *load.Server) map[load.Asked]int {
	t.Helper()
	asked, err := s.Requests()
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

// lostURLs is how many URLs came back from leases that ran out.
func lostURLs(t *testing.T, addrs string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client, err := shard.Open(ctx, shard.Config{Addrs: strings.Split(addrs, ",")})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	f, err := redis.Open(ctx, client, "seine", nil)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := f.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, s := range stats {
		lost += int(s.Lost)
	}
	return lost
}
