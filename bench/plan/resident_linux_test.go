package plan

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkResident is the memory of a fetcher whose first request waits: the
// program and what it holds from the start.
func BenchmarkResident(b *testing.B) {
	dir := b.TempDir()
	bin := filepath.Join(dir, "fetcher")
	if out, err := exec.Command("go", "build", "-o", bin, "seine/cmd/fetcher").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	asked, release := make(chan struct{}, 1), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-release
	}))
	defer web.Close()
	defer close(release)
	for b.Loop() {
		cmd := exec.Command(bin, "--embedded", "--seed", web.URL, "--allow-net", "127.0.0.0/8", "--out", filepath.Join(dir, "out"))
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		<-asked
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		cmd.Process.Kill()
		cmd.Wait()
		if err != nil {
			b.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(kb*1024, "B/fetcher")
	}
}
