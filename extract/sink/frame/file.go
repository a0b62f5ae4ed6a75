package frame

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// OpenEnd is what the name of a file of a series ends in while it grows, or when
// its writer was killed: such a file may end in the middle of a frame.
const OpenEnd = ".open"

// Stamp is the form of the time, UTC, in names of files.
const Stamp = "20060102T150405"

// File is a file of whole frames that grows at its end.
type File struct {
	*os.File
	Size int64 // of its whole frames
	torn bool  // there may be bytes beyond Size
}

// Append appends whole frames, or takes back what it wrote of them.
func (f *File) Append(frames []byte) error {
	if err := f.Mend(); err != nil {
		return err
	}
	if _, err := f.Write(frames); err != nil {
		f.torn = true
		return errors.Join(err, f.Mend())
	}
	f.Size += int64(len(frames))
	return nil
}

// Drop takes back the last n bytes.
func (f *File) Drop(n int) error {
	f.Size -= int64(n)
	f.torn = true
	return f.Mend()
}

// Mend cuts off what could not be taken back so far.
func (f *File) Mend() error {
	if !f.torn {
		return nil
	}
	if err := f.Truncate(f.Size); err != nil {
		return err
	}
	f.torn = false
	return nil
}

// Series is files that come one after the other: DIR/STEM-20261128T010203-TAIL
// and EXT, of which the tail tells those of one second apart.
type Series struct{ Dir, Stem, Ext string }

// Create makes a file, 0600, under a name that nobody has, with OpenEnd behind
// it. It makes the directory too, 0700.
func (s Series) Create() (*os.File, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s-%s-%s%s%s", s.Stem, time.Now().UTC().Format(Stamp), rand.Text()[:10], s.Ext, OpenEnd)
	return os.OpenFile(filepath.Join(s.Dir, name), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
}

// Finished lists the files without OpenEnd, oldest first; none where there is no
// directory.
func (s Series) Finished() ([]string, error) {
	form := regexp.MustCompile(`^` + regexp.QuoteMeta(s.Stem) + `-\d{8}T\d{6}-[0-9A-Z]+` + regexp.QuoteMeta(s.Ext) + `$`)
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if form.MatchString(e.Name()) {
			paths = append(paths, filepath.Join(s.Dir, e.Name()))
		}
	}
	return paths, nil
}

// Lock takes the lock (flock) of f, or says that another has it.
func Lock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// Links is how many names lead to a file.
func Links(st fs.FileInfo) uint64 {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Nlink)
	}
	return 1
}
