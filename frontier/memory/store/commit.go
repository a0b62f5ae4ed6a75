package store

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Batch is changes that are made together. It keeps copies of what it is given.
type Batch struct{ b *pebble.Batch }

// NewBatch makes an empty batch. Add empties it again.
func (s *Store) NewBatch() *Batch { return &Batch{s.db.NewBatch()} }

// The errors of these calls are those of a batch that is too large for memory or
// was committed: neither can be here.

// Set gives a key a value.
func (b *Batch) Set(key, value []byte) { _ = b.b.Set(key, value, nil) }

// Delete takes a key out, if it is there.
func (b *Batch) Delete(key []byte) { _ = b.b.Delete(key, nil) }

// DeletePrefix takes out all keys that begin with prefix.
func (b *Batch) DeletePrefix(prefix []byte) { _ = b.b.DeleteRange(prefix, after(prefix), nil) }

// Empty says whether nothing is in it.
func (b *Batch) Empty() bool { return b.b.Empty() }

// Add takes over what is in b, to be written behind all that was added before,
// and returns its number for Wait. It does not block.
func (s *Store) Add(b *Batch) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil && !s.closed {
		_ = s.pending.Apply(b.b, nil)
	}
	b.b.Reset()
	s.added++
	s.work.Signal()
	return s.added
}

// Last is the number of the newest batch.
func (s *Store) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.added
}

// Wait returns when the batch of that number is written. On ErrFull it is still
// to be; all other errors are for good.
func (s *Store) Wait(number uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.written < number {
		switch {
		case s.lost != nil:
			return s.lost
		case s.closed:
			return ErrClosed
		case s.full:
			return ErrFull
		}
		s.done.Wait()
	}
	return s.lost
}

// Await is Wait that waits for a full disk too, until ctx ends: then it is ErrFull.
func (s *Store) Await(ctx context.Context, number uint64) error {
	err := s.Wait(number)
	if err != ErrFull {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.done.Broadcast()
	})()
	for err == ErrFull && ctx.Err() == nil {
		s.mu.Lock()
		for s.full && ctx.Err() == nil {
			s.done.Wait()
		}
		s.mu.Unlock()
		err = s.Wait(number)
	}
	return err
}

// Fault is why nothing is written now, nil = it is: ErrFull, or a LostError for good.
func (s *Store) Fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil && s.full {
		return ErrFull
	}
	return s.lost
}

// write writes groups until the end.
func (s *Store) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for s.written == s.added && !s.closed {
			s.work.Wait()
		}
		if s.written == s.added || s.lost != nil {
			return
		}
		group, upto := s.pending, s.added
		s.pending = s.spare
		s.mu.Unlock()
		err := group.Commit(pebble.Sync) // to the log, see fs.go
		if err == nil && s.cfg.Sync < 0 {
			err = s.files.sync()
		}
		group.Close() // makes room for the next batch
		next := s.db.NewBatch()
		s.mu.Lock()
		s.spare = next
		if err != nil {
			s.lose(err)
		}
		if s.lost == nil {
			s.written = upto
		}
		s.done.Broadcast()
	}
}

// lose ends all work for good. s.mu is held.
func (s *Store) lose(err error) {
	if s.lost != nil {
		return
	}
	s.lost = &LostError{err}
	s.cfg.Logger.Error("what was done lately may not be on the disk", "err", s.lost)
	s.done.Broadcast()
}

// fail is lose for who does not hold s.mu.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose(err)
}

// Sync brings what was written to the disk.
func (s *Store) Sync() error {
	s.mu.Lock()
	lost, written, done := s.lost, s.written, s.synced == s.written
	s.mu.Unlock()
	if lost != nil || done {
		return lost
	}
	if err := s.files.sync(); err != nil {
		s.fail(err)
	}
	s.files.note()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.synced = max(s.synced, written)
	}
	return s.lost
}

// syncs does so again and again.
func (s *Store) syncs() {
	t := time.NewTicker(s.cfg.Sync)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			s.Sync() // lose logged it
		}
	}
}
