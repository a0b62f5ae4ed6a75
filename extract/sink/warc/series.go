package warc

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"seine/extract/sink/frame"
)

// OpenEnd is what the name of a file ends in while it grows, or when its writer
// was killed: such a file may end in the middle of a record.
const OpenEnd = ".open"

// stamp is the form of the time, UTC, in names of files.
const stamp = "20060102T150405"

// series is the files that one process writes, one after the other.
type series struct {
	cfg   *Config
	head  func(name string) []byte // the first record of a file
	f     *os.File                 // nil: the next write begins one
	size  int64
	start int64 // size without a page
	since time.Time
	torn  bool // there may be bytes beyond size
}

func (s *series) ext() string {
	if s.cfg.Kind == frame.Zstd {
		return ".warc.zst"
	}
	return ".warc.gz"
}

// written reports whether the file holds a page.
func (s *series) written() bool { return s.f != nil && s.size > s.start }

// create makes and locks a file under a name that nobody has.
func (s *series) create() (*os.File, error) {
	if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	for {
		name := fmt.Sprintf("%s-%s-%s%s%s", s.cfg.Prefix, time.Now().UTC().Format(stamp), rand.Text()[:10], s.ext(), OpenEnd)
		f, err := os.OpenFile(filepath.Join(s.cfg.Dir, name), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		locked, err := lock(f)
		if err == nil && locked && linked(f) {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, errors.Join(err, os.Remove(f.Name()))
		}
		// Another process took the new file for one left behind.
	}
}

// try makes sure that files can be made.
func (s *series) try() error {
	f, err := s.create()
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// lock takes the lock of f, or says that another has it.
func lock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// linked reports whether a name leads to f.
func linked(f *os.File) bool {
	st, err := f.Stat()
	if err != nil {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return !ok || sys.Nlink > 0
}

// write appends whole records, or takes back what it wrote of them. A file that
// was removed is let go: records go to another one.
func (s *series) write(records []byte) error {
	if s.f != nil && !linked(s.f) {
		s.f.Close()
		s.f = nil
	}
	if err := s.begin(); err != nil {
		return err
	}
	if err := s.append(records); err != nil {
		return err
	}
	return nil
}

// begin makes a file with its first record, unless there is one.
func (s *series) begin() error {
	if s.f != nil {
		return nil
	}
	f, err := s.create()
	if err != nil {
		return err
	}
	s.f, s.size, s.start, s.torn, s.since = f, 0, 0, false, time.Now()
	if err := s.append(s.head(strings.TrimSuffix(filepath.Base(f.Name()), OpenEnd))); err != nil {
		s.f = nil
		return errors.Join(err, os.Remove(f.Name()), f.Close())
	}
	s.start = s.size
	return nil
}

func (s *series) append(records []byte) error {
	if err := s.takeBack(); err != nil {
		return err
	}
	if _, err := s.f.Write(records); err != nil {
		s.torn = true
		return errors.Join(err, s.takeBack())
	}
	s.size += int64(len(records))
	return nil
}

// takeBack cuts what a failed write left.
func (s *series) takeBack() error {
	if !s.torn {
		return nil
	}
	if err := s.f.Truncate(s.size); err != nil {
		return err
	}
	s.torn = false
	return nil
}

// finish gives the file its final name, which it returns; "" when there is none.
func (s *series) finish() (string, error) {
	if s.f == nil {
		return "", nil
	}
	if err := s.takeBack(); err != nil {
		return "", err
	}
	path, err := finished(s.f, s.size)
	if err != nil {
		return "", err
	}
	err = s.f.Close()
	s.f = nil
	return path, err
}

// finished gives an open file of a size its final name. One that holds nothing
// is removed; one that somebody moved away is theirs.
func finished(f *os.File, size int64) (string, error) {
	path := strings.TrimSuffix(f.Name(), OpenEnd)
	var err error
	if size == 0 {
		path, err = "", os.Remove(f.Name())
	} else {
		err = os.Rename(f.Name(), path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return path, err
}

// mend finishes what killed processes left, and returns how many bytes of torn
// records it cut off.
func (s *series) mend() (cut int64, err error) {
	entries, err := os.ReadDir(s.cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), s.cfg.Prefix+"-") || !strings.HasSuffix(e.Name(), s.ext()+OpenEnd) {
			continue
		}
		n, err := s.mendFile(filepath.Join(s.cfg.Dir, e.Name()))
		if err != nil {
			return cut, err
		}
		cut += n
	}
	return cut, nil
}

func (s *series) mendFile(path string) (cut int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // another process was quicker
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if locked, err := lock(f); err != nil || !locked || !linked(f) {
		return 0, err
	}
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size, err := frame.Intact(f, st.Size(), s.cfg.Kind)
	if err != nil {
		return 0, fmt.Errorf("%s: %w; move the file away", path, err)
	}
	if size < st.Size() {
		if err := f.Truncate(size); err != nil {
			return 0, err
		}
	}
	if _, err = os.Stat(path); errors.Is(err, fs.ErrNotExist) { // it has its final name already
		return 0, nil
	}
	final, err := finished(f, size)
	if err == nil && final != "" && s.cfg.Finished != nil {
		s.cfg.Finished(final)
	}
	return st.Size() - size, err
}
