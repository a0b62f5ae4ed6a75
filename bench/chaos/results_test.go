//go:build linux

package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// results is the file that the counts of each scenario are written to, "" for
// none.
func results() string { return os.Getenv("SEINE_CHAOS_RESULTS") }

// beginResults begins the file with what was run where.
func beginResults() error {
	if results() == "" {
		return nil
	}
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	redis, _ := exec.Command("redis-server", "--version").Output()
	head := fmt.Sprintf("command: %s\ncpu: %s, %d cores used\ngo: %s\nseine: %s\nredis: %s\n",
		either("SEINE_CHAOS_RESULTS=... go test ./bench/chaos (the short form)", "make chaos"), cpuModel(), runtime.GOMAXPROCS(0), runtime.Version(), version, redis)
	return os.WriteFile(results(), []byte(head), 0o644)
}

// addResult adds the line of a scenario.
func addResult(line string) error {
	if results() == "" {
		return nil
	}
	f, err := os.OpenFile(results(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(line)
	return err
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
