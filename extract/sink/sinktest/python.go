package sinktest

import (
	"os"
	"path/filepath"
	"testing"
)

// Python is the interpreter that scripts/setup gave warcio, fastwarc and pywb, which
// read archives; the test is skipped without it.
func Python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("SEINE_PYTHON")
	if path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(cache, "seine", "python", "bin", "python")
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("SKIPPED, needs Python packages, see scripts/setup: ", err)
	}
	return path
}
