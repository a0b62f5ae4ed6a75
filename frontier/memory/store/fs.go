package store

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// files is the file system as Pebble sees it. Files are for their owner only, a
// full disk is waited out, and a log file says that it is synced as soon as it is
// written.
type files struct {
	vfs.FS
	s *Store

	mu         sync.Mutex
	logs       map[string]*logFile // by name, until they are removed
	checkpoint *os.File            // see checkpoint.go; nil when nothing is written
	turn       int64
}

// lookEvery is how often a full disk is tried again.
const lookEvery = time.Second

// noRoom says whether a write failed for want of room: of the disk's, or of what the
// user or the process may have of it.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// patiently calls do until the disk has room for it, or the store is closed.
func (f *files) patiently(do func() error) error {
	err := do()
	if !noRoom(err) {
		return err
	}
	f.setFull(true)
	f.s.cfg.Logger.Warn("the disk is full: the crawl waits for room", "dir", f.s.cfg.Dir)
	for noRoom(err) {
		select {
		case <-f.s.stop:
			return err
		case <-time.After(lookEvery):
		}
		err = do()
	}
	f.setFull(false)
	f.s.cfg.Logger.Info("the disk has room again", "dir", f.s.cfg.Dir)
	return err
}

func (f *files) setFull(full bool) {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.full = full
	f.s.done.Broadcast()
}

// Create makes a file.
func (f *files) Create(name string, category vfs.DiskWriteCategory) (file vfs.File, err error) {
	err = f.patiently(func() error {
		file, err = f.FS.Create(name, category)
		return err
	})
	if err != nil && isLog(name) { // Pebble would end the process
		f.s.fail(err)
		return f.FS.OpenReadWrite(os.DevNull, category)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(name, 0o600); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f.wrap(name, file), nil
}

// ReuseForWrite makes a file of an old one.
func (f *files) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f.forget(old)
	file, err := f.FS.ReuseForWrite(old, name, category)
	if err != nil {
		return nil, err
	}
	return f.wrap(name, file), nil
}

// Remove removes a file.
func (f *files) Remove(name string) error {
	f.forget(name)
	return f.FS.Remove(name)
}

// Lock does nothing: the caller of Open saw to it.
func (f *files) Lock(string) (io.Closer, error) { return nobody{}, nil }

type nobody struct{}

func (nobody) Close() error { return nil }

func (f *files) wrap(name string, file vfs.File) vfs.File {
	w := patientFile{file, f}
	base := filepath.Base(name)
	if !isLog(name) && !strings.HasPrefix(base, "MANIFEST-") {
		return w
	}
	l := &logFile{patientFile: w, lazy: isLog(name)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logs[base] = l
	return l
}

func isLog(name string) bool { return filepath.Ext(name) == ".log" }

// sync syncs the logs that are open.
func (f *files) sync() error {
	f.mu.Lock()
	all := slices.Collect(maps.Values(f.logs))
	f.mu.Unlock()
	for _, l := range all {
		if !l.lazy {
			continue
		}
		if err := l.bring(); err != nil {
			return err
		}
	}
	return nil
}

// patientFile waits for room.
type patientFile struct {
	vfs.File
	f *files
}

// Write writes all of b.
func (p patientFile) Write(b []byte) (n int, err error) {
	err = p.f.patiently(func() error {
		more, err := p.File.Write(b[n:])
		n += more
		return err
	})
	return n, err
}

// logFile is a file that only grows, and that Pebble reads up to its first fault:
// a log, or the list of tables. How much of it was synced goes into the checkpoint. One
// that is lazy is synced when the store says so, and before it is closed.
type logFile struct {
	patientFile
	lazy bool

	mu      sync.Mutex
	written prefix
	synced  prefix
	closed  bool
	failed  error // a sync that failed: none is asked for again
}

// Write writes all of b.
func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.patientFile.Write(b)
	l.written.append(b[:n])
	return n, err
}

// Sync syncs the file, or will.
func (l *logFile) Sync() error {
	if l.lazy {
		return nil
	}
	return l.bring()
}

// SyncData is Sync.
func (l *logFile) SyncData() error { return l.Sync() }

// SyncTo syncs nothing: it need not.
func (l *logFile) SyncTo(int64) (bool, error) { return false, nil }

// bring brings what was written to the disk.
func (l *logFile) bring() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil || l.synced == l.written || l.closed {
		return l.failed
	}
	if l.failed = l.File.SyncData(); l.failed == nil {
		l.synced = l.written
	}
	return l.failed
}

// Close closes the file once the disk has it. When it has not, that is the end of
// the store; Pebble would make it the end of the process.
func (l *logFile) Close() error {
	err := l.bring()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	if err = errors.Join(err, l.File.Close()); err != nil {
		l.f.s.fail(err)
	}
	return nil
}
