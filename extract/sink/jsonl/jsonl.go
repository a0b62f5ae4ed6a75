// Package jsonl writes records as JSON lines to a file or a stream.
//
// Workers Write records; each is encoded at once and joins a batch of a
// sink.Queue, whose committer writes each batch as one frame with one write(2):
// lines as they are, or a gzip member, or a zstd frame, complete in itself. Only
// then are the records in the sink. Alone, a record is committed at once; under
// load a batch is what came while the one before it was written (group commit),
// at most 1 MB. Compressed frames wait a moment for company (Config.Linger),
// since a frame of one line hardly shrinks.
//
// A frame that could not be written whole is removed, and the queue retries with
// backoff until there is room.
//
// A file has one writer: Open locks it (flock), so a second process is refused.
// What is there is appended to. A crash leaves at most one torn frame at its
// end, which the next Open cuts off; records in complete frames survive a
// killed process. Nothing is synced: a machine that loses power may lose what
// its kernel had not yet written out.
//
// Into a pipe a frame is written when its reader has taken it; when the reader
// leaves, what it did not take fails, and all that comes after. A FIFO is opened
// for writing alone, once somebody reads it.
//
// With rotation, records always go to Config.Path, and a full file moves to
// its name with the time (UTC) and a counter before the suffixes:
// pages.jsonl.zst becomes pages-20261128T010203-000001.jsonl.zst. It appears
// there by link(2), complete, and never changes.
//
// Lines is the same committer for lines that are no records: it syncs, and
// begins files of its own in a directory that processes share.
package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"seine/extract/sink"
	"seine/extract/sink/frame"
)

// Config of a Sink. The zero value of a field is the default it names.
type Config struct {
	// Path is the file; a name ending in .gz or .zst is compressed so. Default:
	// none, records go to Writer.
	Path string
	// Writer is where records go without a Path. Default os.Stdout.
	Writer io.Writer
	// Fields are the optional fields to write. Default none.
	Fields sink.Fields
	// RotateSize is the size in bytes that a file does not outgrow (unless one
	// frame does). Default: no rotation by size.
	RotateSize int64
	// RotateTime is how long after its first record a file is rotated. Default:
	// no rotation by time.
	RotateTime time.Duration
	// Linger is how long a compressed frame waits for more records after its
	// first, at most 1 s; negative: not at all. Default 200 ms. Plain lines never wait.
	Linger time.Duration
	// FrameBytes is the size of a frame before compression, which only a single
	// record exceeds. Default, and most, 1 MB.
	FrameBytes int
	// MaxPending is how many bytes of records may wait before Write blocks.
	// Default 64 MB.
	MaxPending int64
	// Drop makes the sink drop records that find no room.
	Drop bool
	// Stop, if not nil, ends the wait of Open for somebody who reads the FIFO that
	// Path is; OnWait, if not nil, is called once when it begins.
	Stop   <-chan struct{}
	OnWait func()
	// Finished, if not nil, is called with the path of each file that was rotated
	// away; Close rotates the last one then. It must not block.
	Finished func(path string)
}

const (
	defaultLinger = 200 * time.Millisecond
	maxLinger     = time.Second
	maxFrame      = 1 << 20
)

// Validate names all that is wrong with c.
func (c *Config) Validate() error {
	var errs []error
	if c.Path == "" && (c.RotateSize != 0 || c.RotateTime != 0) {
		errs = append(errs, errors.New("jsonl: rotation needs a file: set Path"))
	}
	if c.Path != "" && c.Writer != nil {
		errs = append(errs, errors.New("jsonl: both Path and Writer are set: choose one"))
	}
	if c.RotateSize < 0 || c.RotateTime < 0 || c.MaxPending < 0 {
		errs = append(errs, errors.New("jsonl: RotateSize, RotateTime and MaxPending cannot be negative"))
	}
	if c.Linger > maxLinger {
		errs = append(errs, fmt.Errorf("jsonl: Linger is %v: at most %v", c.Linger, maxLinger))
	}
	if c.FrameBytes < 0 || c.FrameBytes > maxFrame {
		errs = append(errs, fmt.Errorf("jsonl: FrameBytes is %d: 1 to %d", c.FrameBytes, maxFrame))
	}
	if c.Fields&^(sink.AllFields|sink.KeepSecrets) != 0 {
		errs = append(errs, fmt.Errorf("jsonl: Fields has unknown bits: %#x", c.Fields))
	}
	return errors.Join(errs...)
}

// withDefaults is c with its zero fields filled.
func (c Config) withDefaults() Config {
	if c.Writer == nil {
		c.Writer = os.Stdout
	}
	if c.Linger == 0 {
		c.Linger = defaultLinger
	}
	return c
}

// Sink writes records as JSON lines. It is safe for concurrent use.
type Sink struct {
	cfg           Config
	queue         *sink.Queue
	out           output      // the committer's, until the queue is closed
	codec         frame.Codec // nil: frames are lines
	frame         []byte      // the batch in hand, compressed; the committer's
	frames, bytes atomic.Int64
}

// Stats counts what a sink wrote. Totals only grow.
type Stats struct {
	Records int64 // in the sink
	Frames  int64 // writes that succeeded
	Bytes   int64 // bytes of frames
	Files   int64 // files rotated away
	Pending int64 // gauge: bytes of records that wait
	Dropped int64 // records lost under Config.Drop
	Cut     int64 // bytes of a torn frame that Open cut off
}

var _ sink.Sink = (*Sink)(nil)

// Open opens, locks and repairs the file of cfg, or uses its Writer, and starts
// the sink. A file that is not of the kind its name says, or damaged by more
// than a torn end, is refused and left as it is.
func Open(cfg Config) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Sink{cfg: cfg.withDefaults()}
	s.codec = frame.NewCodec(frame.KindOf(cfg.Path))
	if s.codec == nil {
		s.cfg.Linger = 0
	}
	var err error
	if s.out, err = s.cfg.open(); err != nil {
		return nil, err
	}
	s.start("records")
	return s, nil
}

// open opens the output.
func (c *Config) open() (output, error) {
	if c.Path == "" {
		if f, ok := c.Writer.(*os.File); ok {
			return streamTo(f)
		}
		return &stream{w: c.Writer}, nil
	}
	if out, err := openSpecial(c.Path, c.Stop, c.OnWait); out != nil || err != nil {
		return out, err
	}
	files, err := frame.OpenWriter(frame.WriterConfig{
		Kind: frame.KindOf(c.Path), Path: c.Path, RotateSize: c.RotateSize, RotateTime: c.RotateTime, Finished: c.Finished,
	})
	if err != nil {
		return nil, fmt.Errorf("jsonl: %w", err)
	}
	return files, nil
}

// start begins to commit to the output.
func (s *Sink) start(noun string) {
	s.queue = sink.NewQueue(sink.QueueConfig{
		Name: "jsonl", Noun: noun, Commit: s.commit, End: s.out.Close, Idle: s.out.Idle, Drop: s.cfg.Drop,
		MaxPending: s.cfg.MaxPending, BatchBytes: s.cfg.FrameBytes, Linger: max(s.cfg.Linger, 0),
	})
}

// Write implements sink.Sink. In steady state it allocates nothing.
func (s *Sink) Write(r *sink.Record, done func(error)) {
	s.queue.AddRecord(r, s.cfg.Fields, "\n", done)
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
	if err := s.out.Write(frame); err != nil {
		return err
	}
	s.frames.Add(1)
	s.bytes.Add(int64(len(frame)))
	if s.frame = s.frame[:0]; cap(s.frame) > keepFrame {
		s.frame = nil
	}
	return nil
}

// Close writes what waits, trying once, ends the committer and closes the file. It
// stays where it is, unless Config.Finished wants it. Records that could not be
// written are failed by their done; the first such error is returned.
func (s *Sink) Close() error { return s.queue.Close() }

// Err is why nothing can be written just now, or nil. Records wait meanwhile.
func (s *Sink) Err() error { return s.queue.Err() }

// QueueStats returns the counts of the queue.
func (s *Sink) QueueStats() sink.QueueStats { return s.queue.Stats() }

// Stats returns the counts so far.
func (s *Sink) Stats() Stats {
	q := s.queue.Stats()
	st := Stats{Records: q.Kept, Frames: s.frames.Load(), Bytes: s.bytes.Load(), Pending: q.Pending, Dropped: q.Dropped}
	if files, ok := s.out.(*frame.Writer); ok {
		st.Files, st.Cut = files.Files(), files.Cut()
	}
	return st
}
