package store

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// badDisk is a file system that fails when the test wants it.
type badDisk struct {
	vfs.FS
	full, unsynced atomic.Bool
	syncs          atomic.Int64
}

func newBadDisk() *badDisk { return &badDisk{FS: vfs.Default} }

func (d *badDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if d.full.Load() {
		return nil, syscall.ENOSPC
	}
	f, err := d.FS.Create(name, c)
	return badFile{f, d}, err
}

type badFile struct {
	vfs.File
	d *badDisk
}

// Write takes half of what is written when the disk is full.
func (f badFile) Write(b []byte) (int, error) {
	if !f.d.full.Load() {
		return f.File.Write(b)
	}
	n, err := f.File.Write(b[:len(b)/2])
	return n, errors.Join(err, syscall.ENOSPC)
}

func (f badFile) SyncData() error {
	f.d.syncs.Add(1)
	if f.d.unsynced.Load() {
		return syscall.EIO
	}
	return f.File.SyncData()
}

func open(t *testing.T, cfg Config) *Store {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// put sets a key to its own text.
func put(s *Store, key string) error {
	b := s.NewBatch()
	b.Set([]byte(key), []byte(key))
	return s.Wait(s.Add(b))
}

// all is all keys that callers set.
func all(t *testing.T, s *Store) string {
	t.Helper()
	var keys []string
	for _, prefix := range "abcdef" {
		if err := s.Each([]byte(string(prefix)), func(key, value []byte) error {
			if string(key) != string(value) {
				t.Errorf("%q has %q", key, value)
			}
			keys = append(keys, string(key))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(keys, " ")
}

func TestStore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	for _, key := range []string{"b", "a1", "a\xff", "a\xff\xff1", "c"} {
		if err := put(s, key); err != nil {
			t.Fatal(err)
		}
	}
	b := s.NewBatch()
	if !b.Empty() {
		t.Error("a new batch is not empty")
	}
	b.Delete([]byte("b"))
	b.DeletePrefix([]byte("a\xff"))
	b.Set([]byte("a\xff2"), []byte("a\xff2"))
	if err := s.Wait(s.Add(b)); err != nil || !b.Empty() {
		t.Fatal(err)
	}
	for range 2 {
		if got := all(t, s); got != "a1 a\xff2 c" {
			t.Errorf("there are %q", got)
		}
		if v, err := s.Get([]byte("b")); v != nil || err != nil {
			t.Error(v, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal("closed twice: ", err)
		}
		if err := put(s, "d"); err != ErrClosed {
			t.Error("set after its end: ", err)
		}
		s = open(t, Config{Dir: dir})
	}
	s.Close()
}

// TestFullDisk: what the disk refuses is an error, and written once there is room.
func TestFullDisk(t *testing.T) {
	disk, dir := newBadDisk(), t.TempDir()
	s := open(t, Config{Dir: dir, files: disk})
	if err := put(s, "a"); err != nil {
		t.Fatal(err)
	}
	disk.full.Store(true)
	for _, key := range []string{"b", "c"} {
		if err := put(s, key); err != ErrFull {
			t.Fatalf("a write that failed was acknowledged: %v", err)
		}
	}
	disk.full.Store(false)
	err := ErrFull
	for end := time.Now().Add(time.Minute); err == ErrFull && time.Now().Before(end); {
		err = put(s, "d")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, Config{Dir: dir})
	defer s.Close()
	if got := all(t, s); got != "a b c d" {
		t.Errorf("there are %q", got)
	}
}

// A store whose disk is full to its end says so, and the next one goes on from
// what was written.
func TestFullDiskToTheEnd(t *testing.T) {
	disk, dir := newBadDisk(), t.TempDir()
	s := open(t, Config{Dir: dir, files: disk})
	if err := put(s, "a"); err != nil {
		t.Fatal(err)
	}
	disk.full.Store(true)
	if err := put(s, "b"); err != ErrFull {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("closed: %v", err)
	}
	s = open(t, Config{Dir: dir})
	defer s.Close()
	if got := all(t, s); got != "a" {
		t.Errorf("there are %q", got)
	}
}

// TestSyncFails: after a sync that failed no later one is believed, whoever asked
// for it, and nothing is acknowledged.
func TestSyncFails(t *testing.T) {
	for name, c := range map[string]struct {
		sync time.Duration
		meet func(*Store) error
	}{
		"in the background": {time.Millisecond, func(s *Store) (err error) {
			for err == nil {
				err = put(s, "b")
			}
			return err
		}},
		"of a call": {-1, func(s *Store) error { return put(s, "b") }},
		"asked for": {time.Hour, func(s *Store) error { return errors.Join(put(s, "b"), s.Sync()) }},
		"of a log that ends": {time.Hour, func(s *Store) (err error) {
			for i := 0; err == nil; i++ {
				err = put(s, fmt.Sprint("b", i))
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			disk, dir := newBadDisk(), t.TempDir()
			s := open(t, Config{Dir: dir, files: disk, Sync: c.sync, MemTable: 64 << 10})
			if err := errors.Join(put(s, "a"), s.Sync()); err != nil {
				t.Fatal(err)
			}
			disk.unsynced.Store(true)
			var lost *LostError
			if err := c.meet(s); !errors.As(err, &lost) || !errors.Is(err, syscall.EIO) {
				t.Fatalf("the sync that fails: %v", err)
			}
			disk.unsynced.Store(false)
			asked := disk.syncs.Load()
			if err := put(s, "c"); !errors.As(err, &lost) {
				t.Errorf("acknowledged: %v", err)
			}
			if err := s.Sync(); !errors.As(err, &lost) || disk.syncs.Load() != asked {
				t.Errorf("synced again: %v", err)
			}
			if err := s.Close(); !errors.As(err, &lost) {
				t.Errorf("closed: %v", err)
			}
			s = open(t, Config{Dir: dir})
			defer s.Close()
			if got := all(t, s); !strings.HasPrefix(got, "a") || strings.Contains(got, "c") {
				t.Errorf("there are %q", got)
			}
			if err := put(s, "d"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSyncAlways: with a negative Sync nothing is acknowledged before it is on the
// disk.
func TestSyncAlways(t *testing.T) {
	disk := newBadDisk()
	s := open(t, Config{Dir: t.TempDir(), files: disk, Sync: -1})
	defer s.Close()
	for i := range 3 {
		before := disk.syncs.Load()
		if err := put(s, fmt.Sprint("a", i)); err != nil || disk.syncs.Load() == before {
			t.Fatal("not synced: ", err)
		}
	}
}
