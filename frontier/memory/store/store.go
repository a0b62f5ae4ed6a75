// Package store keeps ordered keys and values in a directory, on Pebble. It is
// all that Seine asks of a disk.
//
// Callers fill a Batch, Add it, and Wait for it. One goroutine writes what was
// added since its last look as one batch of Pebble, in order: a group commit. A
// batch is there whole or not at all, and no later one without it.
//
// Wait returns when write(2) has the batch: a process that is killed loses
// nothing that was waited for. fsync(2) follows every Config.Sync, so a power cut
// takes back at most what was done since, and always the last batches. Pebble has
// no such mode: it syncs a commit, or keeps it in memory. So the log files here
// report a sync before it was made (see fs.go). Tables and manifests are synced when
// Pebble says so, and a log before the next begins.
//
// Pebble's own means were measured on an SSD whose fsync takes 0.2 ms. A sync of each
// group takes 15% more processor time of a crawl, and an idle machine makes 0.7 to 0.9
// of the pages per second; a disk of 20 ms halves them. WALMinSyncInterval of 5 ms was
// slower still. NoSync with a timed sync loses to kill -9 what Wait acknowledged. And
// Pebble reads a damaged manifest up to the damage, without an error.
//
// A sync that failed is never repeated: the kernel reports a failure once and
// forgets what it could not write. The store refuses all that follows, and the
// next Open goes on from what the disk has. A full disk is waited out: Wait fails
// with ErrFull meanwhile, and what was added is written once there is room.
//
// Open and Each name the file that is not what was written. The end of a log that
// a power cut tore is no damage, unless it had been synced: Pebble reads its logs
// up to the first thing that is wrong, so how much of them was synced stands in a
// file beside them (see checkpoint.go).
package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Config of a store; zero fields are the documented defaults. Up to three times
// MemTable is in memory; once that is what Open may have to read again.
type Config struct {
	Dir      string        // made when missing
	ReadOnly bool          // nothing is written, not even what a crash left to do
	Sync     time.Duration // how often the log is synced, default 500 ms; negative: with each batch
	MemTable int           // bytes of changes gathered before they become a table, default 32 MB
	Logger   *slog.Logger  // for a full disk and failures in the background, never keys; default none

	files vfs.FS // of tests, default the system's
}

// The errors that callers branch on.
var (
	// ErrFull: the disk has no room; what was added is written when it has.
	ErrFull = errors.New("store: the disk is full; make room, and it goes on by itself")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store: closed")
)

// blockCache is how many bytes of tables are kept in memory. Tables are read in
// order when a crawl is opened and in single keys never, so little will do.
const blockCache = 8 << 20

// openFiles bounds the tables that are open at once; each holds 2 MB or more.
const openFiles = 200

// Store is an open directory. It is safe for concurrent use.
type Store struct {
	cfg   Config
	db    *pebble.DB
	files *files

	mu      sync.Mutex
	work    sync.Cond     // for the writer: something was added, or the end
	done    sync.Cond     // for those that wait
	pending *pebble.Batch // added and not yet written
	spare   *pebble.Batch
	added   uint64 // batches
	written uint64 // of them
	synced  uint64 // of them
	full    bool
	lost    error // set for good
	closed  bool

	stop    chan struct{}
	running sync.WaitGroup
}

// Open opens the store in cfg.Dir, which nobody else may have open: that is the
// caller's to see to. The error is a DamageError when files are not what was
// written, and os.ErrNotExist when there is none to read.
func Open(cfg Config) (*Store, error) {
	cfg.Sync = cmp.Or(cfg.Sync, 500*time.Millisecond)
	cfg.MemTable = cmp.Or(cfg.MemTable, 32<<20)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.files == nil {
		cfg.files = vfs.Default
	}
	s := &Store{cfg: cfg, stop: make(chan struct{})}
	s.work.L, s.done.L = &s.mu, &s.mu
	s.files = &files{FS: cfg.files, s: s, logs: map[string]*logFile{}}
	if cfg.ReadOnly {
		if _, err := os.Stat(cfg.Dir); err != nil {
			return nil, err
		}
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	if !cfg.ReadOnly {
		s.running.Go(s.write)
		if cfg.Sync > 0 {
			s.running.Go(s.syncs)
		}
	}
	return s, nil
}

// open holds the logs against the checkpoint and opens the database.
func (s *Store) open() error {
	if err := plain(s.cfg.Dir); err != nil {
		return err
	}
	if err := checkLogs(s.cfg.Dir); err != nil {
		return err
	}
	cache := pebble.NewCache(blockCache)
	defer cache.Unref()
	o := &pebble.Options{
		FS: s.files, Logger: (*logger)(s), ReadOnly: s.cfg.ReadOnly,
		Cache: cache, MaxOpenFiles: openFiles,
		MemTableSize: uint64(s.cfg.MemTable), MemTableStopWritesThreshold: 3,
		// The newest format whose log does not say itself what was synced: it would
		// take a torn end for damage, since it believes that all was.
		FormatMajorVersion: pebble.FormatColumnarBlocks,
	}
	if !s.cfg.ReadOnly {
		if err := s.files.MkdirAll(s.cfg.Dir, 0o700); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		if err := s.files.openCheckpoint(s.cfg.Dir); err != nil {
			return err
		}
	}
	db, err := pebble.Open(s.cfg.Dir, o)
	if err == nil && s.lost != nil {
		err = errors.Join(s.lost, db.Close())
	}
	if err != nil {
		if bad := s.badOptions(o); bad != nil {
			return errors.Join(bad, s.files.close())
		}
		return errors.Join(s.damage(err), s.files.close())
	}
	s.db, s.pending, s.spare = db, db.NewBatch(), db.NewBatch()
	return nil
}

// Get is the value of a key, nil when there is none.
func (s *Store) Get(key []byte) ([]byte, error) {
	v, end, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, s.damage(err)
	}
	return append([]byte{}, v...), end.Close()
}

// Each calls f with all keys that begin with prefix, in order; both slices are
// the store's. What was added and not waited for may be missing.
func (s *Store) Each(prefix []byte, f func(key, value []byte) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return s.damage(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return s.damage(err)
		}
		if err := f(it.Key(), v); err != nil {
			return err
		}
	}
	return s.damage(it.Error())
}

// after is the first key behind all that begin with prefix.
func after(prefix []byte) []byte {
	end := bytes.TrimRight(prefix, "\xff")
	if len(end) == 0 {
		return nil // none is behind
	}
	end = bytes.Clone(end)
	end[len(end)-1]++
	return end
}

// Close writes and syncs what was added. It is an error to use s afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.work.Broadcast()
	s.mu.Unlock()
	close(s.stop)
	s.running.Wait()
	err := s.Sync()
	return errors.Join(err, s.db.Close(), s.files.close())
}
