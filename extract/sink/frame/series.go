package frame

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// OpenEnd is what the name of a file of a series ends in while it grows, or when
// its writer was killed: such a file may end in the middle of a frame.
const OpenEnd = ".open"

// Series is files that come one after the other: DIR/STEM-20261128T010203-TAIL
// and EXT. The tail differs for files of one second.
type Series struct{ Dir, Stem, Ext string }

// SeriesOf is the files that path is rotated to: pages.jsonl.zst becomes
// pages-TIME-NUMBER.jsonl.zst.
func SeriesOf(path string) Series {
	dir, base := filepath.Split(path)
	s := Series{Dir: filepath.Clean(dir), Stem: base}
	if i := strings.IndexByte(base, '.'); i > 0 {
		s.Stem, s.Ext = base[:i], base[i:]
	}
	return s
}

// name is a name of the series from now on.
func (s Series) name(tail string) string {
	return filepath.Join(s.Dir, s.Stem+"-"+time.Now().UTC().Format("20060102T150405")+"-"+tail+s.Ext)
}

// create makes a file, 0600, under a name that nobody has, with OpenEnd behind
// it. It makes the directory too, 0700.
func (s Series) create() (*os.File, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(s.name(rand.Text()[:10])+OpenEnd, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
}

// List returns the paths of the files of the series whose names have end behind
// them, oldest first; none where there is no directory. Without an end these are
// the finished files.
func (s Series) List(end string) ([]string, error) {
	form := regexp.MustCompile(`^` + regexp.QuoteMeta(s.Stem) + `-\d{8}T\d{6}-[0-9A-Z]+` + regexp.QuoteMeta(s.Ext+end) + `$`)
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// ErrLocked is what a writer gets whose file another process writes.
var ErrLocked = errors.New("another process writes this file: give each process a file of its own")

// Lock locks f (flock), or reports that another process has the lock.
func Lock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		err = fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return err == nil, err
}

// links is how many names lead to f.
func links(f *os.File) uint64 {
	st, err := f.Stat()
	if err != nil {
		return 0
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Nlink)
	}
	return 1
}

// cutTornEnd cuts an open file to its complete frames. It returns their bytes, and
// how many others it cut off.
func cutTornEnd(f *os.File, k Kind) (size, cut int64, err error) {
	st, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	size, err = Intact(f, st.Size(), k)
	if errors.Is(err, ErrForeign) {
		err = fmt.Errorf("it is no whole %v file; choose another name, or move the file away", k)
	}
	if err == nil && size < st.Size() {
		err = f.Truncate(size)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return size, st.Size() - size, nil
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
