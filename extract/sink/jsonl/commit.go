package jsonl

import (
	"fmt"
	"time"

	"seine/extract/sink"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
	keepBatch  = 2 * maxFrame // capacity of what is kept for reuse
	keepFree   = 8
)

// Write encodes r, which it does not keep, and queues it. done is called once,
// by the committer's goroutine: with nil when the record is in the sink, with
// an error only when the sink was closed before that. done must not block and
// must not call Write. Write blocks while Config.MaxPending bytes wait. In
// steady state it allocates nothing.
func (s *Sink) Write(r *sink.Record, done func(error)) {
	scratch := s.pool.Get().(*[]byte)
	line := append(r.AppendJSON((*scratch)[:0], s.cfg.Fields), '\n')
	queued := s.enqueue(line, done)
	if cap(line) <= keepBatch {
		*scratch = line
		s.pool.Put(scratch)
	}
	if !queued {
		done(ErrClosed)
	}
}

// enqueue adds line to the last batch, or begins another.
func (s *Sink) enqueue(line []byte, done func(error)) bool {
	n := int64(len(line))
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.pending > 0 && s.pending+n > s.cfg.MaxPending && !s.closed {
		s.room.Wait()
	}
	if s.closed {
		return false
	}
	s.pending += n
	var b *batch
	if k := len(s.queue); k > 0 && len(s.queue[k-1].buf)+len(line) <= s.cfg.FrameBytes {
		b = s.queue[k-1]
	} else {
		b = s.begin()
	}
	b.buf = append(b.buf, line...)
	b.done = append(b.done, done)
	return true
}

// begin queues an empty batch. Called with mu.
func (s *Sink) begin() *batch {
	var b *batch
	if k := len(s.free); k > 0 {
		b, s.free = s.free[k-1], s.free[:k-1]
	} else {
		b = new(batch)
	}
	b.first = time.Now()
	s.queue = append(s.queue, b)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return b
}

// commit writes batch after batch until the sink is closed and empty.
func (s *Sink) commit() {
	defer close(s.ended)
	timer := time.NewTimer(time.Hour)
	for {
		b, wait, end := s.take()
		if b != nil {
			s.write(b)
			continue
		}
		if end {
			return
		}
		timer.Reset(wait)
		select {
		case <-s.wake:
		case <-s.closing:
		case <-timer.C:
			s.rotateAged()
		}
	}
}

// take returns the oldest batch if it is ripe, else how long until one may be,
// or that there will be none.
func (s *Sink) take() (b *batch, wait time.Duration, end bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil, s.untilAged(), s.closed
	}
	b = s.queue[0]
	if s.linger > 0 && len(s.queue) == 1 && !s.closed {
		if wait = s.linger - time.Since(b.first); wait > 0 {
			return nil, wait, false
		}
	}
	n := copy(s.queue, s.queue[1:])
	s.queue[n] = nil
	s.queue = s.queue[:n]
	return b, 0, false
}

// write puts b into the sink, or fails it when the sink is closed before that.
func (s *Sink) write(b *batch) {
	frame := b.buf
	if s.codec != nil {
		s.frame = s.codec.append(s.frame[:0], b.buf)
		frame = s.frame
	}
	err := s.failure()
	if err == nil {
		err = s.persist(frame)
	}
	s.mu.Lock()
	s.err = nil
	if err == nil {
		s.stats.Records += int64(len(b.done))
		s.stats.Frames++
		s.stats.Bytes += int64(len(frame))
	} else if s.failed == nil {
		s.failed = err
	}
	s.mu.Unlock()
	for i, done := range b.done {
		b.done[i] = nil
		done(err)
	}
	s.mu.Lock()
	s.pending -= int64(len(b.buf))
	b.buf, b.done = b.buf[:0], b.done[:0]
	if len(s.free) < keepFree && cap(b.buf) <= keepBatch {
		s.free = append(s.free, b)
	}
	s.room.Broadcast()
	s.mu.Unlock()
	if cap(s.frame) > keepBatch {
		s.frame = nil
	}
}

// failure is the error that already cost records: what comes after it fails too.
func (s *Sink) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// persist writes frame, again and again, until it is written. Once the sink is
// being closed it tries only once more.
func (s *Sink) persist(frame []byte) error {
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		last := false
		select {
		case <-s.closing:
			last = true
		default:
		}
		err := s.rotateFor(len(frame))
		if err == nil {
			err = s.out.write(frame)
		}
		if err == nil {
			return nil
		}
		err = fmt.Errorf("jsonl: %s wait, make room or mend the output: %w", s.what, err)
		if last {
			return err
		}
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
		timer := time.NewTimer(retry)
		select {
		case <-timer.C:
		case <-s.closing:
			timer.Stop()
		}
	}
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
	if err := s.out.rotate(); err != nil {
		return err
	}
	s.mu.Lock()
	s.stats.Files++
	s.mu.Unlock()
	return nil
}

// rotateAged rotates a file that grew old while nothing came. An error shows
// when the next record comes.
func (s *Sink) rotateAged() {
	if s.cfg.RotateTime > 0 {
		_ = s.rotateFor(0)
	}
}

// untilAged is how long the committer may sleep when nothing comes.
func (s *Sink) untilAged() time.Duration {
	size, since := s.out.state()
	if s.cfg.RotateTime == 0 || size == 0 {
		return time.Hour
	}
	return max(s.cfg.RotateTime-time.Since(since), firstRetry)
}

// Close writes what waits, trying once if writing fails, and closes the file;
// what could not be written is failed by its done. It returns the first error
// that cost records. Writes that come later get ErrClosed.
func (s *Sink) Close() error {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		close(s.closing)
		s.room.Broadcast()
		s.mu.Unlock()
		<-s.ended
		if err := s.out.close(); err != nil && s.failed == nil {
			s.failed = fmt.Errorf("jsonl: closing: %w", err)
		}
	})
	<-s.ended
	return s.failed
}
