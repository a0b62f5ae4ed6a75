package jsonl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"seine/extract/sink/frame"
)

// output takes whole frames.
type output interface {
	// write writes frame whole, or takes back what it wrote of it.
	write(frame []byte) error
	// rotate moves what was written so far to a name of its own.
	rotate() error
	// state is the bytes written to the current file and when its first came.
	state() (int64, time.Time)
	close() error
}

// stream is an output that cannot be taken back: a frame that failed in the
// middle goes on where it stopped.
type stream struct {
	w    io.Writer
	sent int // bytes of the current frame
}

func (s *stream) write(frame []byte) error {
	n, err := s.w.Write(frame[s.sent:])
	s.sent += n
	if err == nil && s.sent < len(frame) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return err
	}
	s.sent = 0
	return nil
}

func (s *stream) rotate() error             { return nil }
func (s *stream) state() (int64, time.Time) { return 0, time.Time{} }

func (s *stream) close() error {
	if f, ok := s.w.(*special); ok {
		return f.Close()
	}
	return nil
}

// special is a path that is no regular file: a pipe or a device.
type special struct{ *os.File }

// file is a regular file that this process alone writes.
type file struct {
	path  string
	f     *os.File
	size  int64     // of its complete frames
	since time.Time // when the first of them came
	torn  bool      // there may be bytes beyond size
	moved bool      // it has its rotated name, only renew is missing
	count int       // files rotated
}

// openFile opens, locks and mends path and says how many bytes it cut.
func openFile(path string, k frame.Kind) (output, int64, error) {
	f, err := lockFile(path)
	if err != nil {
		return nil, 0, err
	}
	out, cut, err := mendFile(path, f, k)
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return out, cut, nil
}

// lockFile opens path and locks what path names then.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("jsonl: %w", err)
		}
		st, err := f.Stat()
		if err == nil && !st.Mode().IsRegular() {
			return f, nil
		}
		if err == nil {
			err = lock(f)
		}
		var now fs.FileInfo
		if err == nil {
			now, err = os.Stat(path)
		}
		if err == nil && os.SameFile(st, now) {
			return f, nil
		}
		_ = f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s", err, path)
		}
		// It was rotated away between open and lock.
	}
}

func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	if err != nil {
		return fmt.Errorf("jsonl: locking: %w", err)
	}
	return nil
}

// mendFile cuts a torn end off and completes a rotation that was cut short.
func mendFile(path string, f *os.File, k frame.Kind) (output, int64, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("jsonl: %w", err)
	}
	if !st.Mode().IsRegular() {
		return &stream{w: &special{f}}, 0, nil
	}
	size, err := frame.Intact(f, st.Size(), k)
	if errors.Is(err, frame.ErrForeign) {
		err = fmt.Errorf("it is no whole %v file; choose another name", k)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("jsonl: %s: %w", path, err)
	}
	out := &file{path: path, f: f, size: size, since: time.Now()}
	cut := st.Size() - size
	if cut > 0 {
		if err := f.Truncate(size); err != nil {
			return nil, 0, fmt.Errorf("jsonl: cutting a torn end off: %w", err)
		}
	}
	if links(st) > 1 && out.hasRotatedName(st) {
		if err := out.renew(); err != nil {
			return nil, 0, fmt.Errorf("jsonl: completing a rotation: %w", err)
		}
	}
	return out, cut, nil
}

func links(st fs.FileInfo) uint64 {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Nlink)
	}
	return 1
}

func (o *file) state() (int64, time.Time) { return o.size, o.since }

func (o *file) write(frame []byte) error {
	if err := o.takeBack(); err != nil {
		return err
	}
	if _, err := o.f.Write(frame); err != nil {
		o.torn = true
		return errors.Join(err, o.takeBack())
	}
	if o.size == 0 {
		o.since = time.Now()
	}
	o.size += int64(len(frame))
	return nil
}

// takeBack cuts what a failed write left.
func (o *file) takeBack() error {
	if !o.torn {
		return nil
	}
	if err := o.f.Truncate(o.size); err != nil {
		return err
	}
	o.torn = false
	return nil
}

// suffixes splits pages.jsonl.zst into pages and .jsonl.zst.
func suffixes(path string) (stem, ext string) {
	dir, base := filepath.Split(path)
	if i := strings.IndexByte(base, '.'); i > 0 {
		return dir + base[:i], base[i:]
	}
	return path, ""
}

// stamp is the form of the time, UTC, in names of files.
const stamp = "20060102T150405"

// rotate gives the file its final name and begins a new one. path names a
// locked file at every moment: the old one until the new one replaces it.
func (o *file) rotate() error {
	if err := o.takeBack(); err != nil {
		return err
	}
	stem, ext := suffixes(o.path)
	for !o.moved {
		o.count++
		name := fmt.Sprintf("%s-%s-%06d%s", stem, time.Now().UTC().Format(stamp), o.count, ext)
		err := os.Link(o.path, name)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("rotating: %w", err)
		}
		o.moved = err == nil
	}
	return o.renew()
}

// renew replaces the file at path by an empty one, locked by us.
func (o *file) renew() error {
	tmp := o.path + ".next"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = lock(f); err == nil {
		err = os.Rename(tmp, o.path)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	old := o.f
	o.f, o.size, o.since, o.torn, o.moved = f, 0, time.Now(), false, false
	return old.Close()
}

// hasRotatedName reports whether st also stands under a rotated name: a crash
// came between the two steps of a rotation.
func (o *file) hasRotatedName(st fs.FileInfo) bool {
	stem, ext := suffixes(o.path)
	entries, err := os.ReadDir(filepath.Dir(o.path))
	if err != nil {
		return false
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, filepath.Base(stem)+"-") || !strings.HasSuffix(name, ext) {
			continue
		}
		if other, err := e.Info(); err == nil && os.SameFile(st, other) {
			return true
		}
	}
	return false
}

func (o *file) close() error { return errors.Join(o.takeBack(), o.f.Close()) }
