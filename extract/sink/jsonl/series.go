package jsonl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"seine/extract/sink/frame"
)

// OpenEnd is what the name of a file of lines ends in while it is written, or
// when its writer was killed: such a file may end in the middle of a frame.
const OpenEnd = frame.OpenEnd

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
// never changes again. A frame that cannot be written is tried again until there
// is room; Err says why meanwhile.
type Lines struct{ s *Sink }

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
	out := &series{dir: cfg.Dir, name: cfg.Name}
	err := out.begin()
	if err == nil {
		err = errors.Join(out.f.Close(), os.Remove(out.f.Name()))
	}
	if err != nil {
		return nil, fmt.Errorf("jsonl: no files can be made in %s: %w", cfg.Dir, err)
	}
	out.f = nil
	s := &Sink{cfg: Config{RotateSize: cfg.RotateSize, RotateTime: cfg.RotateTime, MaxPending: math.MaxInt64, Linger: linesLinger}}
	s.out, s.codec = out, frame.NewCodec(frame.Zstd)
	s.start("lines")
	return &Lines{s}, nil
}

// linesLinger bounds how often a disk is made to sync.
const linesLinger = 50 * time.Millisecond

// Write queues whole lines, which it copies, for one frame. done is called once
// by the committer: with nil when they are on disk, with an error only when
// Lines was closed before that. It must not block. Write never blocks: the
// caller bounds what waits.
func (l *Lines) Write(lines []byte, done func(error)) {
	l.s.queue.Add(nil, lines, done)
}

// Err is why nothing can be written just now, or nil.
func (l *Lines) Err() error { return l.s.Err() }

// Close writes what waits, trying once, and finishes the file. What could not
// be written is failed by its done; the first such error is returned.
func (l *Lines) Close() error { return l.s.Close() }

// series is an output of synced files. state is asked by the committer alone.
type series struct {
	dir, name string
	f         *frame.File // nil: the next frame begins one
	since     time.Time
}

// begin makes a file under a name that nobody has.
func (o *series) begin() error {
	f, err := frame.Series{Dir: o.dir, Stem: o.name, Ext: ".jsonl.zst"}.Create()
	if err != nil {
		return err
	}
	if err := syncDir(o.dir); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	o.f, o.since = &frame.File{File: f}, time.Now()
	return nil
}

// write writes and syncs a frame. After a sync that failed nobody knows what of a
// file's last pages is on disk, and a second sync may say nothing: the frame
// goes to another file.
func (o *series) write(data []byte) error {
	err := o.mend()
	if err == nil && o.f == nil {
		err = o.begin()
	}
	if err != nil {
		return err
	}
	if err := o.f.Append(data); err != nil {
		return err
	}
	if err := o.f.Sync(); err != nil {
		err = errors.Join(err, o.f.Drop(len(data)), o.f.Close()) // keeps its open name
		if o.f.Size == 0 {
			err = errors.Join(err, os.Remove(o.f.Name()))
		}
		o.f = nil
		return err
	}
	if o.removed() {
		return errors.Join(fmt.Errorf("%s was removed while it was written", o.f.Name()), o.f.Drop(len(data)))
	}
	return nil
}

// mend makes the file what its writers believe it to be: without what a failed
// write left, and there. One that was removed is written anew, for who cleared
// the directory cannot have taken back what came in that moment.
func (o *series) mend() error {
	if o.f == nil {
		return nil
	}
	if err := o.f.Mend(); err != nil || !o.removed() {
		return err
	}
	was := *o
	err := o.begin()
	if err != nil {
		return err
	}
	if _, err = io.Copy(o.f, io.NewSectionReader(was.f, 0, was.f.Size)); err == nil {
		err = o.f.Sync()
	}
	if err != nil {
		err = errors.Join(err, os.Remove(o.f.Name()), o.f.Close())
		*o = was
		return err
	}
	o.f.Size, o.since = was.f.Size, was.since
	return was.f.Close()
}

// removed reports whether no name leads to the file any more.
func (o *series) removed() bool {
	st, err := o.f.Stat()
	return err == nil && frame.Links(st) == 0
}

func (o *series) state() (int64, time.Time) {
	if o.f == nil {
		return 0, o.since
	}
	return o.f.Size, o.since
}

// rotate finishes the file: from here on it is whole and does not change.
func (o *series) rotate() (string, error) {
	if o.f == nil {
		return "", nil
	}
	if err := o.mend(); err != nil {
		return "", err
	}
	path := strings.TrimSuffix(o.f.Name(), OpenEnd)
	var err error
	if o.f.Size == 0 { // nothing was ever written
		path, err = "", os.Remove(o.f.Name())
	} else if err = os.Rename(o.f.Name(), path); err == nil {
		err = syncDir(o.dir)
	}
	if errors.Is(err, fs.ErrNotExist) { // somebody moved it, and has it
		path, err = "", nil
	}
	if err != nil {
		return "", err
	}
	err = o.f.Close()
	o.f = nil
	return path, err
}

func (o *series) close() error {
	_, err := o.rotate()
	return err
}

// syncDir makes names of a directory last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
