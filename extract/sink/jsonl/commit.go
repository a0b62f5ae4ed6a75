package jsonl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seine/extract/sink"
)

// Write encodes r, which it does not keep, and queues it, as sink.Sink says. In
// steady state it allocates nothing.
func (s *Sink) Write(r *sink.Record, done func(error)) {
	scratch := s.pool.Get().(*[]byte)
	line := append(r.AppendJSON((*scratch)[:0], s.cfg.Fields), '\n')
	s.queue.Add(nil, line, done)
	if cap(line) <= keepFrame {
		*scratch = line
		s.pool.Put(scratch)
	}
}

// keepFrame is the capacity of what is kept for reuse.
const keepFrame = 2 * maxFrame

// commit writes a batch as one frame.
func (s *Sink) commit(_ context.Context, b *sink.Batch) error {
	frame := b.Bytes()
	if s.codec != nil {
		if len(s.frame) == 0 { // else it is there since the last try
			s.frame = s.codec.Append(s.frame, frame)
		}
		frame = s.frame
	}
	err := s.rotateFor(len(frame))
	if err == nil {
		err = s.out.write(frame)
	}
	if err != nil {
		return err
	}
	s.frames.Add(1)
	s.bytes.Add(int64(len(frame)))
	if s.frame = s.frame[:0]; cap(s.frame) > keepFrame {
		s.frame = nil
	}
	return nil
}

// rotateFor rotates when the file is too old, or a frame of n bytes would make
// it too large.
func (s *Sink) rotateFor(n int) error {
	size, since := s.out.state()
	if size == 0 {
		return nil
	}
	full := s.cfg.RotateSize > 0 && size+int64(n) > s.cfg.RotateSize
	aged := s.cfg.RotateTime > 0 && time.Since(since) >= s.cfg.RotateTime
	if !full && !aged {
		return nil
	}
	return s.rotate()
}

func (s *Sink) rotate() error {
	path, err := s.out.rotate()
	if err != nil {
		return err
	}
	s.files.Add(1)
	if s.cfg.Finished != nil && path != "" {
		s.cfg.Finished(path)
	}
	return nil
}

// idle rotates a file that grew old while nothing came, and says when the next
// one may be. An error shows when the next record comes.
func (s *Sink) idle() time.Duration {
	if s.cfg.RotateTime == 0 {
		return time.Hour
	}
	failed := s.rotateFor(0) != nil
	size, since := s.out.state()
	switch {
	case failed:
		return retryRotation
	case size == 0:
		return time.Hour
	}
	return max(s.cfg.RotateTime-time.Since(since), time.Millisecond)
}

// retryRotation is how soon a rotation that failed is tried again.
const retryRotation = time.Second

// Close writes what waits, trying once, ends the committer and closes the file,
// which stays where it is, unless Config.Finished wants to have it. Records that could not be written are failed by
// their done; the first such error is returned.
func (s *Sink) Close() error {
	err := s.queue.Close()
	s.once.Do(func() {
		if size, _ := s.out.state(); size > 0 && s.cfg.Finished != nil {
			s.closeErr = s.rotate()
		}
		if s.closeErr = errors.Join(s.closeErr, s.out.close()); s.closeErr != nil {
			s.closeErr = fmt.Errorf("jsonl: closing: %w", s.closeErr)
		}
	})
	if err != nil {
		return err
	}
	return s.closeErr
}

// Err is why nothing can be written just now, or nil. Records wait meanwhile.
func (s *Sink) Err() error { return s.queue.Err() }

// QueueStats returns the counts of the queue.
func (s *Sink) QueueStats() sink.QueueStats { return s.queue.Stats() }

// Stats returns the counts so far.
func (s *Sink) Stats() Stats {
	q := s.queue.Stats()
	return Stats{Records: q.Kept, Frames: s.frames.Load(), Bytes: s.bytes.Load(), Files: s.files.Load(),
		Pending: q.Pending, Dropped: q.Dropped, Cut: s.cut}
}

// ErrLocked is returned by Open when another process writes the file.
var ErrLocked = errors.New("jsonl: file is being written by another process: give each process a file of its own")
