//go:build unix

package memory

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe in the place of a file is an error, and nothing waits for its writer.
func TestPipeInPlaceOfFile(t *testing.T) {
	for _, name := range []string{crawlName, "0.1.log"} {
		dir, _ := crawled(t, false)
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := Check(Config{Dir: dir}); err == nil && c.Sound() {
			t.Errorf("%s: %+v", name, c)
		}
		if _, err := Repair(Config{Dir: dir}); err == nil {
			t.Errorf("%s is repaired", name)
		}
		if f, err := New(Config{Dir: dir}); err == nil {
			f.Close()
			t.Errorf("%s is taken", name)
		}
	}
}
