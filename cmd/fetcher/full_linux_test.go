package main_test

import (
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStateOnAFullDisk: a crawl whose directory takes no writes is not ready, and reports
// why, in the fetcher's /healthz and in stats; with room it goes on by itself.
func TestStateOnAFullDisk(t *testing.T) {
	t.Parallel()
	url, asked := endless(t)
	tool, dir := manager(t), filepath.Join(t.TempDir(), "state")
	p := start(t, "--embedded", "--state", dir, "--seed", url+"/", "--delay", "10ms", "--grace", "1s", "--metrics-addr", "127.0.0.1:0")
	at := regexp.MustCompile(`healthz" addr=(\S+)`)
	until(t, "it serves", func() bool { return at.MatchString(p.log.String()) })
	health := func(status int, want ...string) func() bool {
		return func() bool {
			resp, err := http.Get("http://" + at.FindStringSubmatch(p.log.String())[1] + "/healthz")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range want {
				if !strings.Contains(string(text), w) {
					return false
				}
			}
			return resp.StatusCode == status
		}
	}
	stats := func() string {
		out, err := exec.Command(tool, "stats", "--state", dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Join(strings.Fields(string(out)), " ")
	}
	until(t, "it is ready", health(http.StatusOK, `"ready":true`))

	limit := func(bytes uint64) { // of a file, which stands for a full disk
		if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: math.MaxUint64}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(1)
	until(t, "it is not ready, for its disk is full", health(http.StatusServiceUnavailable, `"ready":false`, "the disk is full"))
	if text := stats(); !strings.Contains(text, "takes no writes: store: the disk is full") || !strings.Contains(text, "REFUSED shard 0: store: the disk is full") {
		t.Error(text)
	}

	limit(math.MaxUint64)
	until(t, "it is ready again", health(http.StatusOK, `"ready":true`))
	before := asked.Load()
	until(t, "it goes on", func() bool { return asked.Load() > before+3 })
	if text := stats(); strings.Contains(text, "REFUSED") {
		t.Error(text)
	}

	limit(1) // a disk that is full to the end does not hold it
	until(t, "it is not ready once more", health(http.StatusServiceUnavailable))
	p.cmd.Process.Signal(os.Interrupt)
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.log.String(), "not be on the disk") {
		t.Errorf("code %d", code)
	}
	start(t, "--embedded", "--state", dir, "--delay", "10ms", "--max-time", "1s").wait(t)
}
