//go:build linux

package chaos

import (
	"os"

	"seine/bench/load"
)

// results is the file that the counts of each scenario are written to, "" for
// none.
func results() string { return os.Getenv("SEINE_CHAOS_RESULTS") }

// beginResults begins the file with what was run where.
func beginResults() error {
	if results() == "" {
		return nil
	}
	head := load.Head(either("SEINE_CHAOS_RESULTS=... go test ./bench/chaos (the short form)", "make chaos"), true) + "\n"
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
