package jsonl

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
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

// A gzip file of another program that is cut short is refused as well: we never
// tore it, and cutting it off would leave nothing.
func TestTornGzipOfOtherProgramsIsRefused(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(bytes.Repeat([]byte("archive"), 1000))
	w.Close()
	text := z.Bytes()[:z.Len()-9]
	path := filepath.Join(t.TempDir(), "pages.jsonl.gz")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(Config{Path: path}); err == nil {
		s.Close()
		t.Error("it is opened")
	}
	if got, _ := os.ReadFile(path); !bytes.Equal(got, text) {
		t.Errorf("%d bytes became %d", len(text), len(got))
	}
}
