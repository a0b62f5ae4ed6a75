// Package hook runs the post-rotate hook: a command for every finished file of the
// outputs, until it succeeds. This is how files get to object storage.
//
// A file whose command ended with 0 gets a done file beside it, an empty file with
// DoneEnd behind the name; one that the command took away needs none. A Hook finds
// files without a done file at the start, gets finished ones as they come, and runs
// the command for each, a few side by side, with backoff where it failed. The file is
// locked (flock) meanwhile, so that one of the processes that share a directory runs
// the command. After a success it never runs for that file, except when the process
// was killed between the command's end and the done file.
//
// Commands run without a shell, without a terminal's signals, and without the
// environment's secrets.
package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"seine/extract/sink/frame"
)

// DoneEnd is what the name of a done file ends in.
const DoneEnd = ".done"

// Config of a Hook. Command and Log are required; the zero value of another field is
// the default it names.
type Config struct {
	// Command is a program and its arguments, of which {} stands for the absolute
	// path of the file. See Parse.
	Command []string
	// Environ is the environment to run it in, as of os.Environ. What IsSecret names
	// is left out. Default: none.
	Environ []string
	// Parallel is how many commands run side by side at most. Default 2.
	Parallel int
	// Log gets the failures.
	Log *slog.Logger
	// FirstRetry is how long after its first failure a file is retried; each
	// failure doubles it, up to 5 min. Default 1 s.
	FirstRetry time.Duration
}

const (
	defaultParallel = 2
	defaultRetry    = time.Second
	lastRetry       = 5 * time.Minute
	outputEnd       = 1000 // bytes of a failed command's output that are logged
	lastTries       = 10   // failures after which Close tries no more files
	lockPatience    = time.Second
	pipePatience    = 5 * time.Second
)

// Parse splits a command into words at spaces. One word at least has to be {}.
// There is no shell: what only one would understand is refused.
func Parse(text string) ([]string, error) {
	words := strings.Fields(text)
	if i := strings.IndexAny(text, "'\"`\\$|;<>"); i >= 0 {
		return nil, fmt.Errorf("hook: %q has a %q, but there is no shell to read it: put the command into a script, and name that", text, text[i])
	}
	if !slices.Contains(words, "{}") {
		return nil, fmt.Errorf("hook: %q has no word {} where the file goes, as in 'upload {}'", text)
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, fmt.Errorf("hook: %w", err)
	}
	return words, nil
}

// IsSecret reports whether a variable of the environment is kept from commands: all
// of Seine's own, some of which are passwords or may hold one, and the password
// of its PostgreSQL output.
func IsSecret(name string) bool { return strings.HasPrefix(name, "SEINE_") || name == "PGPASSWORD" }

// Hook runs the command. It is safe for concurrent use.
type Hook struct {
	cfg    Config
	ctx    context.Context // of commands
	cancel context.CancelFunc
	ended  sync.WaitGroup
	wake   chan struct{} // holds something when a runner should look at the files

	mu       sync.Mutex
	files    map[string]*file // whose command is not done, by path
	closing  bool
	failures int // while closing
	stats    Stats
}

// Stats counts what a hook did. Totals only grow.
type Stats struct {
	Done     int64 // files
	Failures int64 // of commands, or of done files
	Pending  int64 // gauge: files whose command is not done
	Running  int64 // gauge: commands
}

// file is one whose command is not done.
type file struct {
	path  string
	taken bool // by a runner, or for good
	due   time.Time
	retry time.Duration // after the next failure
	ran   bool          // with success: only the done file is missing
	last  bool          // it is tried for the last time
	err   error         // of the last try
}

// New starts a hook; Close ends it.
func New(cfg Config) *Hook {
	if cfg.Parallel <= 0 {
		cfg.Parallel = defaultParallel
	}
	if cfg.FirstRetry <= 0 {
		cfg.FirstRetry = defaultRetry
	}
	cfg.Environ = slices.DeleteFunc(append([]string{}, cfg.Environ...), func(kv string) bool { // never nil: that would be all of ours
		name, _, _ := strings.Cut(kv, "=")
		return IsSecret(name)
	})
	h := &Hook{cfg: cfg, wake: make(chan struct{}, cfg.Parallel), files: map[string]*file{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	for range cfg.Parallel {
		h.ended.Go(h.run)
	}
	return h
}

// RunForLeft runs the command for the finished files of a series that have no done
// file, and removes done files whose file is gone.
func (h *Hook) RunForLeft(s frame.Series) error {
	done, err := s.List(DoneEnd)
	if err != nil {
		return fmt.Errorf("hook: %w", err)
	}
	files, err := s.List("")
	if err != nil {
		return fmt.Errorf("hook: %w", err)
	}
	for _, path := range files {
		if _, isDone := slices.BinarySearch(done, path+DoneEnd); !isDone {
			h.RunFor(path)
		}
	}
	for _, path := range done {
		if _, err := os.Lstat(strings.TrimSuffix(path, DoneEnd)); errors.Is(err, fs.ErrNotExist) {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("hook: %w", err)
			}
		}
	}
	return nil
}

// RunFor runs the command for a finished file, unless it is pending already. It does
// not block.
func (h *Hook) RunFor(path string) {
	path, err := filepath.Abs(path) // so that no command takes it for an option
	if err != nil {
		h.cfg.Log.Error("--on-rotate cannot run for a file", "file", path, "error", err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.files[path] == nil {
		h.files[path] = &file{path: path, due: time.Now(), retry: h.cfg.FirstRetry}
		h.wakeRunner()
	}
}

func (h *Hook) wakeRunner() {
	select {
	case h.wake <- struct{}{}:
	default: // all will look
	}
}

// run runs the command for file after file until the hook is closed and each was tried
// once more.
func (h *Hook) run() {
	for {
		f, wait := h.nextFile()
		if f != nil {
			h.finishTry(f, h.tryFile(f))
			continue
		}
		if wait == 0 {
			return
		}
		select {
		case <-h.wake:
		case <-time.After(wait):
		}
	}
}

// nextFile returns the file that is due, else how long until one is, 0 when there will be
// none.
func (h *Hook) nextFile() (f *file, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting := 0
	for _, g := range h.files {
		if !g.taken {
			if waiting++; f == nil || g.due.Before(f.due) {
				f = g
			}
		}
	}
	switch {
	case h.closing && (f == nil || h.failures >= lastTries || h.ctx.Err() != nil):
		return nil, 0
	case f == nil:
		return nil, time.Hour
	}
	if wait = time.Until(f.due); wait > 0 && !h.closing {
		return nil, wait
	}
	f.taken, f.last = true, h.closing
	if waiting > 1 {
		h.wakeRunner() // somebody has to wait for the next one
	}
	return f, 0
}

// finishTry forgets a file whose command is done, and lets another wait for its next try.
func (h *Hook) finishTry(f *file, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	locked := errors.Is(err, errLocked)
	if err == nil || f.last && locked {
		delete(h.files, f.path)
		return
	}
	if !locked {
		h.stats.Failures++
		h.cfg.Log.Warn("--on-rotate failed for a file", "file", f.path, "error", err, "retry_in", f.retry)
	}
	f.err = fmt.Errorf("hook: %s: %w", f.path, err)
	if f.last {
		h.failures++
		return // the next start finds it
	}
	f.taken, f.due = false, time.Now().Add(f.retry)
	f.retry = min(2*f.retry, lastRetry)
}

var errLocked = errors.New("another process runs --on-rotate for it")

// lock locks an open file, or fails with errLocked. The last try waits a moment for the
// lock: one that was released lives on in a child of this process until that begins its
// program.
func lock(f *os.File, last bool) error {
	for until := time.Now().Add(lockPatience); ; time.Sleep(lockPatience / 100) {
		locked, err := frame.Lock(f)
		if err != nil || locked {
			return err
		}
		if !last || time.Now().After(until) {
			return errLocked
		}
	}
}

// tryFile runs the command for a file, unless another process did, and writes its done
// file.
func (h *Hook) tryFile(f *file) error {
	open, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody took it away
	}
	if err != nil {
		return err
	}
	defer open.Close() // and unlocks
	if err := lock(open, f.last); err != nil {
		return err
	}
	if _, err := os.Lstat(f.path + DoneEnd); err == nil {
		return nil // another process was quicker
	}
	if !f.ran {
		h.count(func(s *Stats) { s.Running++ })
		err := h.command(f.path)
		h.count(func(s *Stats) { s.Running-- })
		if err != nil {
			return err
		}
		f.ran = true
		h.cfg.Log.Debug("--on-rotate is done for a file", "file", f.path)
		h.count(func(s *Stats) { s.Done++ })
	}
	if _, err := os.Lstat(f.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	done, err := os.OpenFile(f.path+DoneEnd, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("the command succeeded, but its done file cannot be written: %w", err)
	}
	return done.Close()
}

func (h *Hook) count(change func(*Stats)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.stats)
}

// command runs the command for a file.
func (h *Hook) command(path string) error {
	words := slices.Clone(h.cfg.Command)
	for i := range words {
		if words[i] == "{}" {
			words[i] = path
		}
	}
	var output tail
	cmd := exec.CommandContext(h.ctx, words[0], words[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = h.cfg.Environ, &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipePatience
	err := cmd.Run()
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // it succeeded; what it left running has its output open
		return nil
	case len(output) > 0:
		return fmt.Errorf("%s: %w: %s", words[0], err, bytes.TrimSpace(output))
	}
	return fmt.Errorf("%s: %w", words[0], err)
}

// tail keeps the end of what is written.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	*t = append((*t)[:0], (*t)[max(len(*t)-outputEnd, 0):]...)
	return len(p), nil
}

// Err is why the last try failed for one of the files that are pending, or nil.
func (h *Hook) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.files {
		if f.err != nil {
			return f.err
		}
	}
	return nil
}

// Stats returns the counts so far.
func (h *Hook) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.stats
	st.Pending = int64(len(h.files))
	return st
}

// namedMost is how many of the files that are left Close logs; its error counts all.
const namedMost = 10

// Close runs the command once more for each file that is pending, unless ten fail, and
// waits for the commands, which it kills when ctx ends. Its error says for how many files
// the command is not done. No file may come any more.
func (h *Hook) Close(ctx context.Context) error {
	defer context.AfterFunc(ctx, h.cancel)()
	h.mu.Lock()
	h.closing = true
	for range h.cfg.Parallel {
		h.wakeRunner()
	}
	h.mu.Unlock()
	h.ended.Wait()
	h.cancel()
	if len(h.files) == 0 { // no runner is left to change them
		return nil
	}
	left := slices.Sorted(maps.Keys(h.files))
	for _, path := range left[:min(len(left), namedMost)] {
		h.cfg.Log.Warn("--on-rotate is not done for a file; the next start with the same command runs it", "file", path)
	}
	return errors.Join(fmt.Errorf("hook: --on-rotate is not done for %d files; the next start with the same command runs it", len(left)), h.Err())
}
