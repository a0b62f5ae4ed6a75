package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"seine/extract/sink"
	"seine/extract/sink/frame"
	"seine/extract/sink/sinktest"
)

// linesOf reads the lines of every file of a directory, and their names.
func linesOf(t *testing.T, dir string) (lines, names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if errors.Is(err, fs.ErrNotExist) { // it was finished meanwhile
			b, err = os.ReadFile(filepath.Join(dir, strings.TrimSuffix(f.Name(), frame.OpenEnd)))
		}
		if err != nil {
			t.Fatal(err)
		}
		z, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := z.DecodeAll(b, nil)
		z.Close()
		if err != nil {
			t.Errorf("%s: %v", f.Name(), err)
		}
		lines = append(lines, strings.Fields(string(plain))...)
	}
	return lines, names
}

// Lines of two writers of one directory are in files of their own, private, that
// are whole when they have their final names.
func TestLines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	var writers []*Lines
	for range 2 {
		l, err := OpenLines(LinesConfig{Dir: dir, Name: "crawl", RotateSize: 100})
		if err != nil {
			t.Fatal(err)
		}
		writers = append(writers, l)
	}
	if _, names := linesOf(t, dir); len(names) != 0 {
		t.Errorf("files without a line: %q", names)
	}
	done := make(chan error, 1)
	for i := range 20 {
		writers[i%2].Write(fmt.Appendf(nil, "line-%d-%064x\n", i, i*i*i), func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if lines, _ := linesOf(t, dir); len(lines) != i+1 {
			t.Fatalf("%d lines are on disk after %d", len(lines), i+1)
		}
	}
	for _, l := range writers {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l.Write([]byte("late\n"), func(err error) { done <- err })
		if <-done != sink.ErrClosed {
			t.Error("a line is taken after Close")
		}
	}
	lines, names := linesOf(t, dir)
	if len(lines) != 20 || len(names) < 4 {
		t.Errorf("%d lines in %q", len(lines), names)
	}
	for _, n := range names {
		st, err := os.Stat(filepath.Join(dir, n))
		if err != nil || st.Mode().Perm() != 0o600 || !strings.HasPrefix(n, "crawl-") || !strings.HasSuffix(n, ".jsonl.zst") {
			t.Errorf("%s: %v, %v", n, st.Mode(), err)
		}
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// What a full disk took of a frame is taken back; the lines wait and are written
// when there is room.
func TestLinesDiskFull(t *testing.T) {
	if !sinktest.Alone(t) {
		return
	}
	dir := t.TempDir()
	l, err := OpenLines(LinesConfig{Dir: dir, Name: "crawl"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	l.Write([]byte("first\n"), func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sinktest.LimitFileSize(t, 60)
	var big bytes.Buffer
	for i := range 100 {
		fmt.Fprintf(&big, "%x\n", uint64(i+1)*0x9e3779b97f4a7c15)
	}
	l.Write(big.Bytes(), func(err error) { done <- err })
	sinktest.Until(t, "Err is the reason", func() bool { return l.Err() != nil })
	if len(done) != 0 || !strings.Contains(l.Err().Error(), "lines wait") {
		t.Errorf("%d done, %v", len(done), l.Err())
	}
	if lines, names := linesOf(t, dir); len(lines) != 1 || !strings.HasSuffix(names[0], frame.OpenEnd) {
		t.Errorf("%q in %q", lines, names)
	}
	sinktest.LimitFileSize(t, math.MaxInt64)
	if err := <-done; err != nil || l.Err() != nil {
		t.Error(err, l.Err())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if lines, _ := linesOf(t, dir); len(lines) != 101 {
		t.Errorf("%d of 101 lines", len(lines))
	}
}

func TestLinesRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []LinesConfig{{}, {Dir: file, Name: "x"}, {Dir: t.TempDir(), Name: "a/b"}} {
		if _, err := OpenLines(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}
