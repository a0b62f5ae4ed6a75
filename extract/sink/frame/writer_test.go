package frame

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where the file system refuses a second name, a file gets its final one by rename,
// and nothing is lost.
func TestRotationWithoutHardLinks(t *testing.T) {
	const limit, lines = 200, 300
	path := filepath.Join(t.TempDir(), "pages.jsonl")
	var finished []string
	w, err := OpenWriter(WriterConfig{Path: path, RotateSize: limit, Finished: func(path string) { finished = append(finished, path) }})
	if err != nil {
		t.Fatal(err)
	}
	if !w.hardLinks {
		t.Fatal("this directory has no hard links: the other way is not tested here")
	}
	w.hardLinks = false
	var want []byte
	for i := range lines {
		line := fmt.Appendf(nil, "{\"n\":%d}\n", i)
		want = append(want, line...)
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for _, path := range finished {
		b, err := os.ReadFile(path)
		if err != nil || len(b) > limit {
			t.Errorf("%s: %d bytes, %v", path, len(b), err)
		}
		got = append(got, b...)
	}
	listed, err := SeriesOf(path).List("")
	if err != nil || len(listed) != len(finished) || int(w.Files()) != len(finished) || len(finished) < 5 {
		t.Errorf("%d files are listed, %d counted, %d reported, %v", len(listed), w.Files(), len(finished), err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes became %d", len(want), len(got))
	}
}

// A disk that cannot sync gets no heap of empty files.
func TestSyncFails(t *testing.T) {
	dir := t.TempDir()
	w, err := OpenWriter(WriterConfig{Kind: Zstd, Series: Series{Dir: dir, Stem: "x", Ext: ".zst"}, Sync: true})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x"+OpenEnd)
	if err := os.Symlink(os.DevNull, path); err != nil {
		t.Fatal(err)
	}
	if w.f, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.Write([]byte("frame")); err == nil {
		t.Fatal("synced a device")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := w.Write([]byte("frame")); err != nil || w.size != 5 {
		t.Error(w.size, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// A file with a head alone holds nothing: it gets no final name.
func TestHeadAlone(t *testing.T) {
	dir := t.TempDir()
	w, err := OpenWriter(WriterConfig{Kind: Gzip, Series: Series{Dir: dir, Stem: "x", Ext: ".gz"}, Head: func(name string) []byte {
		if !strings.HasPrefix(name, "x-") || !strings.HasSuffix(name, ".gz") {
			t.Errorf("the head of %s", name)
		}
		return []byte("head")
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.begin(); err != nil || w.size != 4 {
		t.Fatal(w.size, err)
	}
	if err := w.Close(); err != nil || w.Files() != 0 {
		t.Error(w.Files(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
