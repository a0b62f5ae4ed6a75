//go:build unix

package memory

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// A pipe or a directory in the place of a file is an error that says so, and
// nothing waits for a writer.
func TestOtherThingInPlaceOfFile(t *testing.T) {
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	folder := func(path string) error { return os.Mkdir(path, 0o700) }
	for _, c := range []struct {
		name string
		make func(string) error
	}{{"synced", pipe}, {"synced", folder}, {"*.log", pipe}, {"*.log", folder}} {
		name := c.name
		dir, _ := crawled(t)
		path := only(t, dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := c.make(path); err != nil {
			t.Fatal(err)
		}
		if c, err := Check(dir); err == nil {
			t.Errorf("%s: %+v", name, c)
		}
		if f, err := New(Config{Dir: dir}); err == nil {
			f.Close()
			t.Errorf("%s is taken", name)
		} else if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
