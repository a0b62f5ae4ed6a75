package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The demonstration crawls and finds nothing wrong, whatever the web.
func TestDemo(t *testing.T) {
	fetcher := filepath.Join(t.TempDir(), "fetcher")
	if out, err := exec.Command("go", "build", "-o", fetcher, "seine/cmd/fetcher").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, seed := range []uint64{1, 7} {
		if err := run(t.Context(), fetcher, seed, 0); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
