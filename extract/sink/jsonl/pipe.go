package jsonl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"seine/extract/sink"
	"seine/extract/sink/frame"
)

// output takes whole frames.
type output interface {
	// Write writes frame whole, or removes what it wrote of it.
	Write(frame []byte) error
	// Idle is called when nothing waits, and returns when the next call is due.
	Idle() time.Duration
	Close() error
}

var _ output = (*frame.Writer)(nil)

// endless is the part of an output that never rotates.
type endless struct{}

func (endless) Idle() time.Duration { return time.Hour }

// stream is an output that keeps what it was given: a frame that failed in the
// middle goes on where it stopped.
type stream struct {
	endless
	w      io.Writer
	closer io.Closer // nil: w stays open
	sent   int       // bytes of the current frame
}

func (s *stream) Write(frame []byte) error {
	n, err := s.w.Write(frame[s.sent:])
	s.sent += n
	if err == nil && s.sent < len(frame) {
		err = io.ErrShortWrite
	}
	if errors.Is(err, syscall.EPIPE) { // a socket
		return errReaderLeft
	}
	if err != nil {
		return err
	}
	s.sent = 0
	return nil
}

func (s *stream) Close() error {
	if s.closer == nil {
		return nil
	}
	return s.closer.Close()
}

// pipe is a FIFO, or standard output that leads into one. What stands in a pipe
// is lost when its reader leaves, so a frame is written when the reader has
// taken all of it.
type pipe struct {
	endless
	f    *os.File
	name string
	sent int // bytes of the current frame that are in the pipe, or beyond
}

const (
	pipeStep   = 4096 // what POLLOUT promises room for, so that a write does not block
	pipeStalls = time.Second
	pipePoll   = 20 * time.Millisecond
	readerPoll = 50 * time.Millisecond
)

// errUnread: frames are in the pipe or wait for room there. The next try goes on
// where this one stopped.
var errUnread = errors.New("its reader reads nothing")

func (p *pipe) Write(frame []byte) error {
	c, err := p.f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := c.Control(func(fd uintptr) {
		if failed = p.fill(int(fd), frame); failed == nil {
			failed = drained(int(fd))
		}
	}); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("%s: %w", p.name, failed)
	}
	p.sent = 0
	return nil
}

// fill puts the rest of frame into the pipe.
func (p *pipe) fill(fd int, frame []byte) error {
	for p.sent < len(frame) {
		if err := pollPipe(fd, unix.POLLOUT, pipeStalls); err != nil {
			return err
		}
		n, err := unix.Write(fd, frame[p.sent:min(len(frame), p.sent+pipeStep)])
		switch {
		case err == nil:
			p.sent += n
		case err == unix.EPIPE:
			return errReaderLeft
		case err != unix.EAGAIN && err != unix.EINTR:
			return err
		}
	}
	return nil
}

// drained waits until nothing is left in the pipe.
func drained(fd int) error {
	before, moved := -1, time.Now()
	for wait := time.Duration(0); ; wait = min(2*wait+time.Millisecond, pipePoll) {
		unread, err := unix.IoctlGetInt(fd, unreadBytes)
		if err != nil || unread == 0 {
			return err
		}
		if now := time.Now(); unread != before {
			before, moved = unread, now
		} else if now.Sub(moved) > pipeStalls {
			return errUnread
		}
		if err := pollPipe(fd, 0, wait); err != nil && err != errUnread {
			return err
		}
	}
}

// pollPipe waits for events, or until the reader leaves.
func pollPipe(fd int, events int16, d time.Duration) error {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	n, err := unix.Poll(fds, int(d.Milliseconds()))
	switch {
	case err == unix.EINTR:
		return nil
	case err != nil:
		return err
	case n == 0:
		return errUnread
	case fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0:
		return errReaderLeft
	}
	return nil
}

// errReaderLeft is what a pipe ends with.
var errReaderLeft = fmt.Errorf("%w: its reader left; what it did not take was not delivered", sink.ErrGone)

func (p *pipe) Close() error {
	if p.f == os.Stdout {
		return nil
	}
	return p.f.Close()
}

// openPipe opens a FIFO for writing alone, when somebody reads it. stop ends the
// wait for that; onWait is called when it begins.
func openPipe(path string, stop <-chan struct{}, onWait func()) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if !errors.Is(err, syscall.ENXIO) {
			return f, err
		}
		if onWait != nil {
			onWait()
			onWait = nil
		}
		select {
		case <-stop:
			return nil, fmt.Errorf("%s: nobody came to read it", path)
		case <-time.After(readerPoll):
		}
	}
}

// streamTo is the output of a file that is open: standard output, mostly.
func streamTo(f *os.File) (output, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("jsonl: %s: %w", f.Name(), err)
	}
	if st.Mode()&os.ModeNamedPipe != 0 {
		return &pipe{f: f, name: f.Name()}, nil
	}
	if f == os.Stdout && isClosed(f, st) {
		return nil, errors.New("jsonl: standard output is closed, records would be lost: name a file")
	}
	return &stream{w: f}, nil
}

// isClosed reports whether a standard file was closed when the program began:
// the runtime opens the null device in its place, for reading and writing, as
// nobody does who means to write there.
func isClosed(f *os.File, st os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	if err != nil || !os.SameFile(null, st) {
		return false
	}
	c, err := f.SyscallConn()
	if err != nil {
		return false
	}
	mode := 0
	err = c.Control(func(fd uintptr) { mode, _ = unix.FcntlInt(fd, unix.F_GETFL, 0) })
	return err == nil && mode&unix.O_ACCMODE == unix.O_RDWR
}

// openSpecial opens what is no regular file: a pipe or a device. It returns nil
// when path is a regular file, or nothing yet.
func openSpecial(path string, stop <-chan struct{}, onWait func()) (output, error) {
	st, err := os.Stat(path)
	if err != nil || st.Mode().IsRegular() {
		return nil, nil // whatever is wrong shows when it is opened
	}
	if out, err := os.Stdout.Stat(); err == nil && os.SameFile(st, out) {
		return streamTo(os.Stdout)
	}
	var f *os.File
	if st.Mode()&os.ModeNamedPipe != 0 {
		f, err = openPipe(path, stop, onWait)
	} else {
		f, err = os.OpenFile(path, os.O_WRONLY, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("jsonl: %w", err)
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(st, now) {
		return nil, errors.Join(fmt.Errorf("jsonl: %s changed while it was opened", path), err, f.Close())
	}
	if st.Mode()&os.ModeNamedPipe != 0 {
		return &pipe{f: f, name: path}, nil
	}
	return &stream{w: f, closer: f}, nil
}
