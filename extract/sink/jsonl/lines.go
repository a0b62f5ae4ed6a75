package jsonl

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"seine/extract/sink/frame"
)

// LinesConfig of Lines. Dir and Name are required.
type LinesConfig struct {
	Dir        string        // made, 0700, if it is not there
	Name       string        // what names of files begin with
	RotateSize int64         // bytes that a file does not outgrow, default 64 MB
	RotateTime time.Duration // how long after its first line a file is finished, default 5 min
}

// Lines writes lines of its callers to a series of zstd files in a directory
// that many processes may share. A group commit is one frame, written and
// synced (fsync) before its done functions are called; while one is synced the
// next gathers.
//
// A file, 0600, is made when there is a line for it, as
// NAME-20261128T010203-RANDOM.jsonl.zst.open, and loses the .open when it is
// finished: it is large or old enough, or Lines is closed. A finished file
// never changes. A frame that cannot be written is retried until there is room; Err is
// why meanwhile.
type Lines struct{ s *Sink }

// linesLinger bounds how often a disk is made to sync.
const linesLinger = 50 * time.Millisecond

// OpenLines checks that files can be made in the directory.
func OpenLines(cfg LinesConfig) (*Lines, error) {
	if cfg.Dir == "" || cfg.Name == "" || strings.ContainsRune(cfg.Name, filepath.Separator) {
		return nil, fmt.Errorf("jsonl: lines need a directory and a plain name, not %q and %q", cfg.Dir, cfg.Name)
	}
	if cfg.RotateSize <= 0 {
		cfg.RotateSize = 64 << 20
	}
	if cfg.RotateTime <= 0 {
		cfg.RotateTime = 5 * time.Minute
	}
	files, err := frame.OpenWriter(frame.WriterConfig{
		Kind: frame.Zstd, Series: frame.Series{Dir: cfg.Dir, Stem: cfg.Name, Ext: ".jsonl.zst"}, Sync: true,
		RotateSize: cfg.RotateSize, RotateTime: cfg.RotateTime,
	})
	if err != nil {
		return nil, fmt.Errorf("jsonl: %w", err)
	}
	s := &Sink{cfg: Config{MaxPending: math.MaxInt64, Linger: linesLinger}, out: files, codec: frame.NewCodec(frame.Zstd)}
	s.start("lines")
	return &Lines{s}, nil
}

// Write queues whole lines, which it copies, for one frame. done is called once
// by the committer: with nil when they are on disk, with an error only when
// Lines was closed before that. It must not block. Write never blocks: the
// caller bounds what waits.
func (l *Lines) Write(lines []byte, done func(error)) {
	l.s.queue.AddEntry(nil, lines, done)
}

// Err is why nothing can be written just now, or nil.
func (l *Lines) Err() error { return l.s.Err() }

// Close writes what waits, trying once, and finishes the file. What could not
// be written is failed by its done; the first such error is returned.
func (l *Lines) Close() error { return l.s.Close() }
