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

// A pipe where a file is to be written goes, and nothing waits for its reader.
func TestPipeInPlaceOfNewFile(t *testing.T) {
	dir, _ := crawled(t, false)
	for _, name := range []string{crawlName + ".new", "0.2.snap.new", "0.2.log"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := New(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"0.2.snap.new", "0.2.log"} { // one that comes later
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.dir.compact(f.shards[0]); err != nil {
		t.Fatal(err)
	}
	sameState(t, f)
}
