package jsonl

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"seine/extract/sink/frame"
	"seine/extract/sink/sinktest"
)

func TestRotation(t *testing.T) {
	for _, name := range kinds {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			const limit = 2000
			s := open(t, Config{Path: path, RotateSize: limit, FrameBytes: 500, Linger: -1})
			put(t, s, 0, 300)
			if _, err := Open(Config{Path: path}); !errors.Is(err, frame.ErrLocked) {
				t.Errorf("after rotation: %v", err)
			}
			shut(t, s)
			wantRotated(t, dir, name, int(s.Stats().Files), limit, 300)
			if s.Stats().Files < 5 {
				t.Errorf("%d rotations", s.Stats().Files)
			}
		})
	}
}

// sizeOf is the size of a file, -1 where there is none; it must not be empty.
func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1
	}
	if err != nil || st.Size() == 0 {
		t.Errorf("%s is left empty: %v", path, err)
	}
	return st.Size()
}

// TestNoEmptyFile: of a compressed output without a record no file is left, for no reader
// takes an empty one.
func TestNoEmptyFile(t *testing.T) {
	for _, name := range []string{"pages.jsonl.gz", "pages.jsonl.zst"} {
		path := filepath.Join(t.TempDir(), name)
		shut(t, open(t, Config{Path: path}))
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func wantRotated(t *testing.T, dir, name string, files int, limit int64, records int) {
	t.Helper()
	ext := frame.SeriesOf(name).Ext
	found, _ := filepath.Glob(filepath.Join(dir, "pages-????????T??????-??????"+ext))
	if len(found) != files {
		t.Errorf("%d files rotated, %d found", files, len(found))
	}
	var all []string
	if path := filepath.Join(dir, name); sizeOf(t, path) > 0 { // an empty one is not left
		found = append(found, path)
	}
	for _, f := range found {
		if st, _ := os.Stat(f); st.Size() > limit || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d bytes, %v", f, st.Size(), st.Mode())
		}
		all = append(all, urls(t, f)...)
	}
	wantCount(t, all, records)
	if rest, _ := filepath.Glob(filepath.Join(dir, "*.next")); rest != nil {
		t.Errorf("left: %v", rest)
	}
}

func TestRotationByTimeWhenIdle(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Path: filepath.Join(dir, "pages.jsonl"), RotateTime: 20 * time.Millisecond})
	put(t, s, 0, 1) // more could fall on both sides of a rotation
	sinktest.Until(t, "a file is rotated", func() bool { return s.Stats().Files == 1 })
	shut(t, s)
	wantRotated(t, dir, "pages.jsonl", 1, 1<<20, 1)
}

// A crash between the two steps of a rotation leaves two names of one file.
func TestRotationCutShort(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pages.jsonl")
	s := open(t, Config{Path: path})
	put(t, s, 0, 3)
	shut(t, s)
	if err := os.Link(path, filepath.Join(dir, "pages-20261128T010203-000001.jsonl")); err != nil {
		t.Fatal(err)
	}
	s = open(t, Config{Path: path})
	put(t, s, 3, 5)
	shut(t, s)
	wantCount(t, urls(t, path), 2)
	wantRotated(t, dir, "pages.jsonl", 1, 1<<20, 5)
}

// Finished gets each finished file, the last one too.
func TestFinished(t *testing.T) {
	dir := t.TempDir()
	var reported []string
	cfg := Config{Path: filepath.Join(dir, "pages.jsonl"), RotateSize: 2000, FrameBytes: 500, Finished: func(path string) { reported = append(reported, path) }}
	for range 2 { // the second finishes nothing, for it has no record
		s := open(t, cfg)
		if reported == nil {
			put(t, s, 0, 50)
		}
		shut(t, s)
	}
	found, err := frame.SeriesOf(cfg.Path).List("")
	if err != nil || len(reported) < 3 || !slices.Equal(reported, found) {
		t.Errorf("reported %q, found %q, %v", reported, found, err)
	}
	var all []string
	for _, path := range reported {
		all = append(all, urls(t, path)...)
	}
	wantCount(t, all, 50)
	if st, err := os.Stat(cfg.Path); err != nil || st.Size() != 0 {
		t.Error(st, err)
	}
}
