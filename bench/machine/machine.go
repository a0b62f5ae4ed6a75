// Package machine says what a file of results was measured with, and asks the Redis
// servers that it was measured on.
package machine

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
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

// Tee is where results are written: to stdout and, unless its name is "", to a file,
// which close closes.
func Tee(file string) (out io.Writer, close func() error, err error) {
	if file == "" {
		return os.Stdout, func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, nil, err
	}
	return io.MultiWriter(os.Stdout, f), f.Close, nil
}

// Redis runs a command of redis-cli at a server's address and returns what it prints.
// An error that the server answers is one too.
func Redis(addr string, command ...string) ([]byte, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("redis-cli", append([]string{"-e", "-h", host, "-p", port}, command...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("redis-cli %s at %s: %w", strings.Join(command, " "), addr, err)
	}
	return out, nil
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
