package frame

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// openPath opens, locks and repairs the file at Path.
func (w *Writer) openPath() error {
	f, err := lockPath(w.cfg.Path)
	if err != nil {
		return err
	}
	w.size, w.cut, err = cutTornEnd(f, w.cfg.Kind)
	w.f, w.since, w.hardLinks = f, time.Now(), hasHardLinks(w.cfg.Path)
	if err == nil && links(f) > 1 && w.hasFinalName() { // a crash came between the two steps of a rotation
		err = w.replaceFile()
	}
	if err != nil {
		return errors.Join(err, w.f.Close())
	}
	return nil
}

// lockPath opens path and locks the file that path names then.
func lockPath(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		st, err := f.Stat()
		if err == nil && !st.Mode().IsRegular() {
			err = fmt.Errorf("%s is no regular file any more", path)
		}
		if err == nil {
			err = mustLock(f)
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
			return nil, err
		}
		// It was rotated away between open and lock.
	}
}

// mustLock locks f, or fails with ErrLocked.
func mustLock(f *os.File) error {
	locked, err := Lock(f)
	if err == nil && !locked {
		err = fmt.Errorf("%s: %w", f.Name(), ErrLocked)
	}
	return err
}

// rotatePath gives the file its final name and begins a new one. Path names a
// locked file at every moment: the old one until the new one replaces it.
func (w *Writer) rotatePath() error {
	for n := w.Files() + 1; w.final == ""; n++ {
		name := w.cfg.Series.name(fmt.Sprintf("%06d", n))
		if err := w.nameFile(name); err == nil {
			w.final = name
		} else if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("rotating: %w", err)
		}
	}
	path := w.final
	if err := w.replaceFile(); err != nil {
		return err
	}
	w.report(path)
	return nil
}

// nameFile gives the file a name that nobody has. Without hard links no file is at Path
// until replaceFile.
func (w *Writer) nameFile(name string) error {
	if w.hardLinks {
		return os.Link(w.cfg.Path, name)
	}
	if _, err := os.Lstat(name); err == nil {
		return fs.ErrExist
	}
	return os.Rename(w.cfg.Path, name)
}

// hasHardLinks reports whether a file can have two names where it is.
func hasHardLinks(path string) bool {
	other := path + ".link"
	os.Remove(other) //nolint:errcheck // one of a process that was killed
	if os.Link(path, other) != nil {
		return false
	}
	return os.Remove(other) == nil
}

// replaceFile replaces the file at Path by an empty one, which it locks.
func (w *Writer) replaceFile() error {
	next := w.cfg.Path + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = mustLock(f); err == nil {
		err = os.Rename(next, w.cfg.Path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	err = w.closeFile()
	w.f, w.final = f, ""
	return err
}

// hasFinalName reports whether the file has a name of a rotated one too.
func (w *Writer) hasFinalName() bool {
	st, err := w.f.Stat()
	names, _ := w.cfg.Series.List("")
	for _, name := range names {
		if other, otherErr := os.Stat(name); err == nil && otherErr == nil && os.SameFile(st, other) {
			return true
		}
	}
	return false
}
