package main_test

import (
	"strings"
	"testing"
)

// --give-up needs an end of the crawl: without one the log has that it has no effect.
func TestGiveUpWithoutAnEnd(t *testing.T) {
	t.Parallel()
	const warning = "--give-up has no effect without --exit-when-done"
	args := []string{"--embedded", "--max-time", "100ms", "--give-up", "1m"}
	if _, log := end(t, append(args, "--no-exit-when-done")...); !strings.Contains(log, warning) {
		t.Error(log)
	}
	if _, log := end(t, append(args, "--seed", "http://a.invalid/")...); strings.Contains(log, warning) {
		t.Error(log)
	}
}
