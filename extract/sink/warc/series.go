package warc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"seine/extract/sink/frame"
)

// OpenEnd is what the name of a file ends in while it grows, or when its writer
// was killed: such a file may end in the middle of a record.
const OpenEnd = frame.OpenEnd

// series is the files that one process writes, one after the other.
type series struct {
	cfg   *Config
	head  func(name string) []byte // the first record of a file
	f     *frame.File              // nil: the next write begins one
	start int64                    // its size without a page
	since time.Time
}

// written reports whether the file holds a page.
func (s *series) written() bool { return s.f != nil && s.f.Size > s.start }

// create makes and locks a file under a name that nobody has.
func (s *series) create() (*os.File, error) {
	for {
		f, err := s.cfg.Series().Create()
		if err != nil {
			return nil, err
		}
		locked, err := frame.Lock(f)
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

// linked reports whether a name leads to f.
func linked(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && frame.Links(st) > 0
}

// write appends whole records, or takes back what it wrote of them. A file that
// was removed is let go: records go to another one.
func (s *series) write(records []byte) error {
	if s.f != nil && !linked(s.f.File) {
		s.f.Close()
		s.f = nil
	}
	if err := s.begin(); err != nil {
		return err
	}
	return s.f.Append(records)
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
	s.f, s.since = &frame.File{File: f}, time.Now()
	if err := s.f.Append(s.head(strings.TrimSuffix(filepath.Base(f.Name()), OpenEnd))); err != nil {
		s.f = nil
		return errors.Join(err, os.Remove(f.Name()), f.Close())
	}
	s.start = s.f.Size
	return nil
}

// finish gives the file its final name, which it returns; "" when there is none.
func (s *series) finish() (string, error) {
	if s.f == nil {
		return "", nil
	}
	if err := s.f.Mend(); err != nil {
		return "", err
	}
	path, err := finished(s.f.File, s.f.Size)
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
		if !strings.HasPrefix(e.Name(), s.cfg.Prefix+"-") || !strings.HasSuffix(e.Name(), s.cfg.Series().Ext+OpenEnd) {
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
	if locked, err := frame.Lock(f); err != nil || !locked || !linked(f) {
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
