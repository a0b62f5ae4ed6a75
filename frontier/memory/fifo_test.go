//go:build unix

package memory

import (
	"path/filepath"
	"syscall"
	"testing"
)

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
