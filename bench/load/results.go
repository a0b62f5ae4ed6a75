// Package load is what benchmarks and tests of whole crawls share: a real nginx that
// serves real pages in each way that the web does, programs that run and what they
// use of the machine, Redis servers, and the head of a file of results.
//
// All of it is on this machine and on loopback addresses. A site is an address of
// 127.0.0.0/8. Whoever starts a server or a program ends it.
package load

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// Head is what a file of results begins with, a line each: the command, the
// processor and how many cores are used, the versions of Go and of this module
// and, with redis, that of the Redis server on the path, if there is one.
func Head(command string, redis bool) string {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	head := fmt.Sprintf("command: %s\ncpu: %s, %d cores used\ngo: %s\nseine: %s\n", command, cpuModel(), runtime.GOMAXPROCS(0), runtime.Version(), version)
	if !redis {
		return head
	}
	if v, err := exec.Command("redis-server", "--version").Output(); err == nil {
		head += "redis: " + string(v)
	}
	return head
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(model)
		}
	}
	return runtime.GOARCH
}

// Tee is where results are written: to stdout and, unless its name is "", to a file,
// which done closes.
func Tee(file string) (out io.Writer, done func() error, err error) {
	if file == "" {
		return os.Stdout, func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, nil, err
	}
	return io.MultiWriter(os.Stdout, f), f.Close, nil
}

// Median is the middle of some numbers, the upper one of two; 0 of none.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
