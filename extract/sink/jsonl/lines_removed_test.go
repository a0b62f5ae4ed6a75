package jsonl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"seine/extract/sink/sinktest"
)

// A file that somebody takes away while it is written keeps nothing: what was
// safe in it goes with it, what comes later goes to another one, and no
// line is acknowledged that no name leads to.
func TestLinesTakenAway(t *testing.T) {
	// The committer may finish or mend a file in that very moment.
	remove := func(t *testing.T, dir string) {
		sinktest.Until(t, "the directory is removed", func() bool { return os.RemoveAll(dir) == nil })
	}
	for name, hurt := range map[string]func(t *testing.T, dir string){
		"file removed": func(t *testing.T, dir string) {
			for _, n := range namesOf(t, dir) {
				remove(t, filepath.Join(dir, n))
			}
		},
		"file renamed": func(t *testing.T, dir string) {
			for _, n := range namesOf(t, dir) {
				if err := os.Rename(filepath.Join(dir, n), filepath.Join(dir, n+".mine")); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
			}
		},
		"directory removed": remove,
		"directory moved": func(t *testing.T, dir string) {
			if err := os.Rename(dir, dir+".moved"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, size := range []int64{1, 1 << 20} { // rotated before the next line, and not
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "lines")
				l, err := OpenLines(LinesConfig{Dir: dir, Name: "crawl", RotateSize: size})
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				write := func(line string) {
					l.Write([]byte(line+"\n"), func(err error) { done <- err })
					if err := <-done; err != nil {
						t.Fatal(err)
					}
				}
				write("first")
				hurt(t, dir)
				for i := range 3 {
					line := fmt.Sprint("line-", i)
					write(line)
					found := false
					for _, d := range []string{dir, dir + ".moved"} {
						if _, err := os.Stat(d); err == nil {
							lines, _ := linesOf(t, d)
							found = found || slices.Contains(lines, line)
						}
					}
					if !found {
						t.Errorf("%s was safe, and is in no file", line)
					}
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func namesOf(t *testing.T, dir string) []string {
	t.Helper()
	_, names := linesOf(t, dir)
	return names
}
