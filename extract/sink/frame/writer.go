package frame

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// WriterConfig of a Writer. Kind, and Path or Series, are required; the zero value
// of another field is the default it names.
type WriterConfig struct {
	Kind Kind
	// Path is the file that grows. A full one is rotated to a name of SeriesOf(Path).
	// Default: a new file of Series, with OpenEnd behind its name until it is finished.
	Path   string
	Series Series
	// Head, if not nil, makes the first frame of each file of Series from its final name.
	Head func(name string) []byte
	// Sync says that frames are on disk (fsync), in a file that has a name, when Write
	// returns. A file of Series that a killed process left keeps its name then. Default:
	// frames are with the kernel, and OpenWriter finishes such files.
	Sync bool
	// RotateSize is the size in bytes that a file does not outgrow, unless one Write
	// does. Default: no rotation by size.
	RotateSize int64
	// RotateTime is how long after its first Write a file is rotated. Default: no
	// rotation by time.
	RotateTime time.Duration
	// Finished, if not nil, is called with the path of each finished file. It must not block.
	Finished func(path string)
}

// Writer writes files of frames, one after the other. One goroutine uses it at a
// time; any may call Files and Cut.
type Writer struct {
	cfg   WriterConfig
	f     *os.File // nil: the next Write begins one
	size  int64    // bytes of its whole frames
	head  int64    // bytes of Head
	torn  bool     // there may be bytes beyond size
	since time.Time
	files atomic.Int64
	cut   int64

	// With Path:
	hardLinks bool   // the file system has them
	final     string // name the file has already, when only its successor is missing
}

// OpenWriter repairs what a killed process left, and makes sure that files can be made.
// A file that is not of its kind, or damaged by more than a torn end, is refused and
// left as it is.
func OpenWriter(cfg WriterConfig) (*Writer, error) {
	w := &Writer{cfg: cfg}
	if cfg.Path != "" {
		w.cfg.Series = SeriesOf(cfg.Path)
		return w, w.openPath()
	}
	if !cfg.Sync {
		if err := w.finishLeft(); err != nil {
			return nil, err
		}
	}
	f, err := w.create()
	if err == nil {
		err = errors.Join(os.Remove(f.Name()), f.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("no files can be made in %s: %w", cfg.Series.Dir, err)
	}
	return w, nil
}

// Files is how many files were finished.
func (w *Writer) Files() int64 { return w.files.Load() }

// Cut is how many bytes of torn frames OpenWriter cut off.
func (w *Writer) Cut() int64 { return w.cut }

// Write appends whole frames, or removes what it wrote of them. It rotates first
// where the file is old, or would outgrow its size.
func (w *Writer) Write(frames []byte) error {
	err := w.rotateFor(len(frames))
	if err == nil {
		err = w.restore()
	}
	if err == nil && w.f == nil {
		err = w.begin()
	}
	if err != nil {
		return err
	}
	if w.size == w.head {
		w.since = time.Now()
	}
	if err := w.append(frames); err != nil || !w.cfg.Sync {
		return err
	}
	return w.sync(len(frames))
}

// append appends frames, or removes what it wrote of them.
func (w *Writer) append(frames []byte) error {
	if _, err := w.f.Write(frames); err != nil {
		w.torn = true
		return errors.Join(err, w.cutTorn())
	}
	w.size += int64(len(frames))
	return nil
}

// cutTorn cuts off what a failed write left.
func (w *Writer) cutTorn() error {
	if !w.torn {
		return nil
	}
	if err := w.f.Truncate(w.size); err != nil {
		return err
	}
	w.torn = false
	return nil
}

// removeLast removes the last n bytes of the file.
func (w *Writer) removeLast(n int) error {
	w.size -= int64(n)
	w.torn = true
	return w.cutTorn()
}

// sync makes the last n bytes durable, or removes them. After a sync that failed
// nobody knows what of the file's last pages is on disk, and a second sync may
// return nil: the frames go to another file.
func (w *Writer) sync(n int) error {
	if err := w.f.Sync(); err != nil {
		err = errors.Join(err, w.removeLast(n))
		if w.size == 0 {
			err = errors.Join(err, os.Remove(w.f.Name()))
		}
		return errors.Join(err, w.closeFile()) // it keeps its open name
	}
	if links(w.f) == 0 {
		return errors.Join(fmt.Errorf("%s was removed while it was written", w.f.Name()), w.removeLast(n))
	}
	return nil
}

// restore makes the file what its writer believes it to be: without what a failed write
// left, and with a name. The next frames go to another file where somebody removed it.
// Synced frames go there too, for who cleared the directory cannot have read what came
// in that moment.
func (w *Writer) restore() error {
	if w.f == nil {
		return nil
	}
	if err := w.cutTorn(); err != nil || w.cfg.Path != "" || links(w.f) > 0 {
		return err
	}
	if !w.cfg.Sync {
		return w.closeFile()
	}
	f, err := w.create()
	if err != nil {
		return err
	}
	if _, err = io.Copy(f, io.NewSectionReader(w.f, 0, w.size)); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()), f.Close())
	}
	removed := w.f
	w.f = f
	return removed.Close()
}

// begin makes a file with its head.
func (w *Writer) begin() (err error) {
	if w.f, err = w.create(); err != nil || w.cfg.Head == nil {
		return err
	}
	if err := w.append(w.cfg.Head(filepath.Base(finalName(w.f)))); err != nil {
		return errors.Join(err, os.Remove(w.f.Name()), w.closeFile())
	}
	w.head = w.size
	return nil
}

// create makes and locks a file under a name that nobody has.
func (w *Writer) create() (*os.File, error) {
	for {
		f, err := w.cfg.Series.create()
		if err != nil {
			return nil, err
		}
		locked, err := Lock(f)
		if err == nil && w.cfg.Sync {
			err = syncDir(w.cfg.Series.Dir)
		}
		if err == nil && locked && links(f) > 0 {
			return f, nil
		}
		if err != nil {
			return nil, errors.Join(err, os.Remove(f.Name()), f.Close())
		}
		f.Close() // another process took the new file for one left behind
	}
}

func (w *Writer) closeFile() error {
	err := w.f.Close()
	w.f, w.size, w.head, w.torn = nil, 0, 0, false
	return err
}

// rotateFor rotates when the file is old, or when n bytes more would make it too large.
func (w *Writer) rotateFor(n int) error {
	full := w.cfg.RotateSize > 0 && w.size+int64(n) > w.cfg.RotateSize
	old := w.cfg.RotateTime > 0 && time.Since(w.since) >= w.cfg.RotateTime
	if w.size == w.head || !full && !old {
		return nil
	}
	return w.rotate()
}

// retryRotation is how soon a rotation that failed is retried.
const retryRotation = time.Second

// Idle rotates a file that grew old while nothing came, and returns when the next
// call is due. The next Write returns its error.
func (w *Writer) Idle() time.Duration {
	failed := w.rotateFor(0) != nil
	switch {
	case failed:
		return retryRotation
	case w.size == w.head || w.cfg.RotateTime <= 0:
		return time.Hour
	}
	return max(w.cfg.RotateTime-time.Since(w.since), time.Millisecond)
}

// rotate finishes the file: from then on it is whole and does not change.
func (w *Writer) rotate() error {
	if err := w.restore(); err != nil || w.f == nil {
		return err
	}
	if w.cfg.Path != "" {
		return w.rotatePath()
	}
	path, err := giveFinalName(w.f, w.size > w.head)
	if path != "" && err == nil && w.cfg.Sync {
		err = syncDir(w.cfg.Series.Dir)
	}
	if err != nil {
		return err
	}
	w.report(path)
	return w.closeFile()
}

// report counts and reports a finished file, "" for none.
func (w *Writer) report(path string) {
	if path == "" {
		return
	}
	w.files.Add(1)
	if w.cfg.Finished != nil {
		w.cfg.Finished(path)
	}
}

func finalName(f *os.File) string { return strings.TrimSuffix(f.Name(), OpenEnd) }

// giveFinalName renames an open file and returns its final name. It removes one that
// is of no use; one that somebody moved is theirs. Both have no final name.
func giveFinalName(f *os.File, useful bool) (string, error) {
	path := finalName(f)
	var err error
	if useful {
		err = os.Rename(f.Name(), path)
	} else {
		path, err = "", os.Remove(f.Name())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return path, err
}

// finishLeft finishes the files of Series that killed processes left.
func (w *Writer) finishLeft() error {
	left, err := w.cfg.Series.List(OpenEnd)
	for i := 0; err == nil && i < len(left); i++ {
		err = w.finishFile(left[i])
	}
	return err
}

func (w *Writer) finishFile(path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process was quicker
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if locked, err := Lock(f); err != nil || !locked || links(f) == 0 {
		return err
	}
	size, cut, err := cutTornEnd(f, w.cfg.Kind)
	if err != nil {
		return err
	}
	w.cut += cut
	final, err := giveFinalName(f, size > 0)
	w.report(final)
	return err
}

// Close finishes the file. One at Path stays there, unless Finished wants it. No file is
// left empty after finished ones, nor where readers would not take it for one of its kind.
func (w *Writer) Close() error {
	if w.cfg.Path == "" {
		return w.rotate()
	}
	var err error
	if w.size > 0 && w.cfg.Finished != nil {
		err = w.rotate()
	}
	if err = errors.Join(err, w.cutTorn()); err == nil && w.size == 0 && (w.Files() > 0 || w.cfg.Kind != Plain) {
		err = os.Remove(w.cfg.Path)
	}
	return errors.Join(err, w.f.Close())
}
