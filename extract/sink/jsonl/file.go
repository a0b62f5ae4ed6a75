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
	// rotate moves what was written so far to a name of its own, which it
	// returns; "" when there is none.
	rotate() (string, error)
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
	if errors.Is(err, syscall.EPIPE) { // a socket
		return errReaderLeft
	}
	if err != nil {
		return err
	}
	s.sent = 0
	return nil
}

func (s *stream) rotate() (string, error)   { return "", nil }
func (s *stream) state() (int64, time.Time) { return 0, time.Time{} }

func (s *stream) close() error {
	if f, ok := s.w.(*special); ok {
		return f.Close()
	}
	return nil
}

// special is a path that is a device.
type special struct{ *os.File }

// file is a regular file that this process alone writes.
type file struct {
	path  string
	f     *frame.File
	since time.Time // when its first frame came
	moved string    // its rotated name, when only renew is missing
	count int       // files rotated
	links bool      // the file system has hard links
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
			err = fmt.Errorf("jsonl: %s is no regular file any more", path)
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
	locked, err := frame.Lock(f)
	if err != nil {
		return fmt.Errorf("jsonl: locking: %w", err)
	}
	if !locked {
		return ErrLocked
	}
	return nil
}

// mendFile cuts a torn end off and completes a rotation that was cut short.
func mendFile(path string, f *os.File, k frame.Kind) (output, int64, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("jsonl: %w", err)
	}
	size, err := frame.Intact(f, st.Size(), k)
	if errors.Is(err, frame.ErrForeign) {
		err = fmt.Errorf("it is no whole %v file; choose another name", k)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("jsonl: %s: %w", path, err)
	}
	out := &file{path: path, f: &frame.File{File: f, Size: size}, since: time.Now(), links: takesLinks(path)}
	cut := st.Size() - size
	if cut > 0 {
		if err := f.Truncate(size); err != nil {
			return nil, 0, fmt.Errorf("jsonl: cutting a torn end off: %w", err)
		}
	}
	if frame.Links(st) > 1 && out.hasRotatedName(st) {
		if err := out.renew(); err != nil {
			return nil, 0, fmt.Errorf("jsonl: completing a rotation: %w", err)
		}
	}
	return out, cut, nil
}

func (o *file) state() (int64, time.Time) { return o.f.Size, o.since }

func (o *file) write(data []byte) error {
	if o.f.Size == 0 {
		o.since = time.Now()
	}
	return o.f.Append(data)
}

// SeriesOf is the files that path is rotated to: pages.jsonl.zst becomes
// pages-TIME-COUNTER.jsonl.zst.
func SeriesOf(path string) frame.Series {
	dir, base := filepath.Split(path)
	s := frame.Series{Dir: filepath.Clean(dir), Stem: base}
	if i := strings.IndexByte(base, '.'); i > 0 {
		s.Stem, s.Ext = base[:i], base[i:]
	}
	return s
}

// rotate gives the file its final name and begins a new one. path names a
// locked file at every moment: the old one until the new one replaces it.
func (o *file) rotate() (string, error) {
	if err := o.f.Mend(); err != nil {
		return "", err
	}
	series := SeriesOf(o.path)
	for o.moved == "" {
		o.count++
		name := filepath.Join(series.Dir, fmt.Sprintf("%s-%s-%06d%s", series.Stem, time.Now().UTC().Format(frame.Stamp), o.count, series.Ext))
		err := o.rename(name)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("rotating: %w", err)
		}
		if err == nil {
			o.moved = name
		}
	}
	name := o.moved
	return name, o.renew()
}

// rename gives the file a name that nobody has. Without hard links nothing stands at
// path until renew.
func (o *file) rename(name string) error {
	if o.links {
		return os.Link(o.path, name)
	}
	if _, err := os.Lstat(name); err == nil {
		return fs.ErrExist
	}
	return os.Rename(o.path, name)
}

// takesLinks reports whether a file can have two names where it is.
func takesLinks(path string) bool {
	other := path + ".link"
	os.Remove(other) //nolint:errcheck // one of a process that was killed
	if os.Link(path, other) != nil {
		return false
	}
	return os.Remove(other) == nil
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
	o.f, o.since, o.moved = &frame.File{File: f}, time.Now(), ""
	return old.Close()
}

// hasRotatedName reports whether st also stands under a rotated name: a crash
// came between the two steps of a rotation.
func (o *file) hasRotatedName(st fs.FileInfo) bool {
	names, _ := SeriesOf(o.path).Finished()
	for _, name := range names {
		if other, err := os.Stat(name); err == nil && os.SameFile(st, other) {
			return true
		}
	}
	return false
}

// close leaves no empty file where readers would not take it for one of its kind, nor
// behind finished ones.
func (o *file) close() error {
	err := o.f.Mend()
	if err == nil && o.f.Size == 0 && (o.count > 0 || frame.KindOf(o.path) != frame.Plain) {
		err = os.Remove(o.path)
	}
	return errors.Join(err, o.f.Close())
}
