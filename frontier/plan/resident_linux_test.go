package plan

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"seine/bench/load"
	"seine/shard"
	"seine/shard/shardtest"
)

// BenchmarkResident is the memory of a fetcher that has fetched some thousand pages,
// and whose next request waits: the program, what it holds whatever it crawls, and
// the garbage that it lets grow meanwhile.
func BenchmarkResident(b *testing.B) {
	bin := buildFetcher(b)
	for b.Loop() {
		pid := waiting(b, 5000, bin, "--embedded", "--delay", "0s")
		b.ReportMetric(load.Memory(pid, "VmRSS"), "B/fetcher")
	}
}

// BenchmarkIdleShard is what a shard takes, of its master and of a fetcher, that has
// nothing for it to do: processor time in a second, and memory.
func BenchmarkIdleShard(b *testing.B) {
	const masters = 3
	server := shardtest.Start(b, shardtest.Config{Masters: masters})
	used := func() (bytes float64) {
		for _, n := range server.Nodes {
			v, err := strconv.ParseFloat(shard.InfoFields(n.Do(b, "INFO", "memory").(string))["used_memory"], 64)
			if err != nil {
				b.Fatal(err)
			}
			bytes += v
		}
		return bytes / masters
	}
	program := buildFetcher(b)
	empty := used()
	pid := waiting(b, 0, program, "--redis", strings.Join(server.Addrs, ","), "--shards", fmt.Sprint(masters), "--plan-urls", fmt.Sprint(masters))
	b.Run("shard", func(b *testing.B) { // by itself, for what clients print of the start would stand in its line
		var redis time.Duration
		for _, n := range server.Nodes {
			redis -= spent(b, n.Pid())
		}
		client, begun := -spent(b, pid), time.Now()
		for b.Loop() {
			time.Sleep(time.Second)
		}
		seconds := time.Since(begun).Seconds() * masters
		client += spent(b, pid)
		for _, n := range server.Nodes {
			redis += spent(b, n.Pid())
		}
		b.ReportMetric(float64(redis.Microseconds())/seconds, "redis-us/s")
		b.ReportMetric(float64(client.Microseconds())/seconds, "client-us/s")
		b.ReportMetric(used()-empty, "redis-B")
	})
}

func buildFetcher(b *testing.B) string {
	bin := filepath.Join(b.TempDir(), "fetcher")
	if out, err := exec.Command("go", "build", "-o", bin, "seine/cmd/fetcher").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return bin
}

// waiting runs a fetcher, until the benchmark ends, which gets so many answers; what it
// asks then waits.
func waiting(b *testing.B, answers int64, bin string, args ...string) (pid int) {
	asked, release := make(chan struct{}, 1), make(chan struct{})
	var requests atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := requests.Add(1)
		if n > answers {
			select {
			case asked <- struct{}{}:
			default:
			}
			<-release
		}
		w.Header().Set("Content-Type", "text/html")
		for i := range int64(2) { // more than are asked for
			fmt.Fprintf(w, "<a href=/p%d>a page</a>", 2*n+i)
		}
	}))
	args = append(args, "--seed", web.URL, "--allow-net", "127.0.0.0/8", "--out", filepath.Join(b.TempDir(), "out"))
	cmd := exec.Command(bin, args...)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() //nolint:errcheck // it was killed
		close(release)
		web.Close()
	})
	<-asked
	return cmd.Process.Pid
}

// spent is the processor time of a process (clock_getcpuclockid).
func spent(b *testing.B, pid int) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}
