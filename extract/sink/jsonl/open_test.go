package jsonl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that holds something else is refused and stays as it is, also one
// whose last line has no end, which looks like a torn frame.
func TestForeignFileIsRefused(t *testing.T) {
	for _, name := range kinds {
		for _, text := range []string{"notes without an end", "notes\nwithout an end", "notes\n", "[1,\n2]", "\x1f\x8b but no gzip, or else"} {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(Config{Path: path})
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %q is opened: %v", name, text, err)
			}
			if got, _ := os.ReadFile(path); string(got) != text {
				t.Errorf("%s: %q became %q", name, text, got)
			}
		}
	}
}
