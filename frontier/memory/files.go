package memory

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// formatVersion is the version of all that stands in the directory of a crawl.
const formatVersion = 1

// The files of a shard: journal g holds what happened since snapshot g. A
// snapshot takes the place of all files before it.
const (
	kindLog  = "log"
	kindSnap = "snap"
)

// The errors of a crawl on disk that callers branch on.
var (
	// ErrInUse: another process has the directory open.
	ErrInUse = errors.New("memory: the directory is in use by another process")
	// ErrClosed: the crawl was closed.
	ErrClosed = errors.New("memory: the crawl is closed")
)

// DamageError says that a file of the crawl is not what was written.
type DamageError struct {
	File   string
	Offset int64 // of the first frame that is damaged
	What   string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("memory: %s is damaged at byte %d: %s; run frontier check --state %s --repair to save what is left", e.File, e.Offset, e.What, filepath.Dir(e.File))
}

// fileName is the name of a file of shard k.
func fileName(k int, kind string, gen uint64) string { return fmt.Sprintf("%d.%d.%s", k, gen, kind) }

// parseName is the reverse of fileName; ok is false for other files.
func parseName(name string) (k int, kind string, gen uint64, ok bool) {
	f := strings.Split(name, ".")
	if len(f) != 3 || f[2] != kindLog && f[2] != kindSnap {
		return 0, "", 0, false
	}
	k, err := strconv.Atoi(f[0])
	gen, err2 := strconv.ParseUint(f[1], 10, 64)
	return k, f[2], gen, err == nil && err2 == nil
}

// header is the first payload of a file.
func header(k int, kind string, gen uint64) []byte {
	return fmt.Appendf(nil, "seine %s v%d shard %d generation %d", kind, formatVersion, k, gen)
}

// filesOf lists the generations of the files of a shard, in order.
func filesOf(dir string, k int) (snaps, logs []uint64, err error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range names {
		shard, kind, gen, ok := parseName(n.Name())
		switch {
		case !ok || shard != k:
		case kind == kindSnap:
			snaps = append(snaps, gen)
		default:
			logs = append(logs, gen)
		}
	}
	slices.Sort(snaps)
	slices.Sort(logs)
	return snaps, logs, nil
}

// createFile makes a file anew. What stands in its place goes first: to open a
// pipe could wait for ever.
func createFile(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// createLog makes the file of a journal. Cost: two syncs.
func createLog(dir string, k int, gen uint64) (f *os.File, salt uint32, size int64, err error) {
	path := filepath.Join(dir, fileName(k, kindLog, gen))
	if f, err = createFile(path); err != nil {
		return nil, 0, 0, err
	}
	w := &frameWriter{w: f}
	head := header(k, kindLog, gen)
	w.frame(head)
	if w.err == nil {
		w.err = f.Sync()
	}
	if w.err == nil {
		w.err = syncDir(dir)
	}
	if w.err != nil {
		f.Close()
		os.Remove(path)
		return nil, 0, 0, w.err
	}
	return f, saltOf(head), w.size, nil
}

// syncDir brings the names of a directory to the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// replaceFile writes one frame to a file as a whole or not at all.
func replaceFile(path string, payload []byte) error {
	f, err := createFile(path + ".new")
	if err != nil {
		return err
	}
	w := &frameWriter{w: f}
	w.frame(payload)
	if w.err == nil {
		w.err = f.Sync()
	}
	if err := f.Close(); w.err == nil {
		w.err = err
	}
	if w.err == nil {
		w.err = os.Rename(path+".new", path)
	}
	if w.err == nil {
		w.err = syncDir(filepath.Dir(path))
	}
	return w.err
}

// frameReader reads the frames of a file in order.
type frameReader struct {
	f    *os.File
	salt uint32
	size int64
	off  int64 // of the next frame
	buf  []byte
}

// openFrames opens a file that should start with that payload. flag is
// os.O_RDONLY or os.O_RDWR.
func openFrames(path string, head []byte, flag int) (*frameReader, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("memory: %s is no regular file; move it away, or put back what stood there", path)
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("memory: %w", err)
	}
	return &frameReader{f: f, salt: saltOf(head), size: st.Size()}, nil
}

// next returns the payload of the next frame, valid until the one after. ok is
// false at the end of the file, and where no frame stands; off is then where.
func (r *frameReader) next() (payload []byte, ok bool, err error) {
	payload, _, size, err := r.at(r.off)
	if err != nil || size == 0 {
		return nil, false, err
	}
	r.off += int64(size)
	return payload, true, nil
}

// at reads the frame at an offset; its size is 0 when there is none.
func (r *frameReader) at(off int64) (payload []byte, synced int64, size int, err error) {
	if r.size-off < frameHeader {
		return nil, 0, 0, nil
	}
	if r.buf, err = readAt(r.f, r.buf[:0], off, frameHeader); err != nil {
		return nil, 0, 0, err
	}
	n := frameLength(r.buf)
	if n < 0 || n > r.size-off-frameHeader {
		return nil, 0, 0, nil
	}
	if r.buf, err = readAt(r.f, r.buf, off+frameHeader, int(n)); err != nil {
		return nil, 0, 0, err
	}
	salt := r.salt
	if off == 0 {
		salt = 0
	}
	payload, synced, size, _ = frameAt(r.buf, salt, off)
	return payload, synced, size, nil
}

// readAt appends n bytes of a file to buf.
func readAt(f *os.File, buf []byte, off int64, n int) ([]byte, error) {
	at := len(buf)
	buf = slices.Grow(buf, n)[:at+n]
	_, err := f.ReadAt(buf[at:], off)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return buf, err
}

// seek looks for the next frame behind off, which is damaged. It returns the
// end of the file when there is none, and the mark of the frame.
func (r *frameReader) seek() (synced int64, err error) {
	const step = 1 << 20
	var window []byte
	for from := r.off + 1; from < r.size; from += step {
		// An overlap, so that no header is cut in two.
		if window, err = readAt(r.f, window[:0], from, int(min(step+frameHeader, r.size-from))); err != nil {
			return 0, err
		}
		for i := 0; i+frameHeader <= len(window) && i < step; i++ {
			if frameLength(window[i:]) < 0 {
				continue
			}
			_, synced, size, err := r.at(from + int64(i))
			if err != nil {
				return 0, err
			}
			if size > 0 {
				r.off = from + int64(i)
				return synced, nil
			}
		}
	}
	r.off = r.size
	return 0, nil
}
