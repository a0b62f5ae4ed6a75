// Package handover runs a command for every finished file of the outputs, until
// it succeeds: this is how files get to object storage.
//
// A file whose command ended with 0 gets a mark beside it, an empty file with
// End behind the name; one that the command took away needs none. What stands
// there without a mark was not handed over: a Queue is told of such files at the
// start and of finished ones as they come, and runs the command for each, a few
// side by side, again with backoff where it failed. While the command runs the
// file is locked (flock), so that of processes that share a directory one hands
// it over. After a success no file is handed over again, except when the process
// was killed between the command's end and the mark.
//
// Commands run without a shell, without a terminal's signals, and without the
// environment's secrets.
package handover

import (
	"bytes"
	"container/heap"
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

// End is what the mark of a file that was handed over has behind its name.
const End = ".handed"

// Config of a Queue. Command is required; the zero value of another field is the
// default it names.
type Config struct {
	// Command is a program and its arguments, of which {} stands for the absolute
	// path of the file. See Parse.
	Command []string
	// Environ is the environment to run it in, as of os.Environ. What Secret names
	// is left out. Default: none.
	Environ []string
	// Parallel is how many commands run side by side at most. Default 2.
	Parallel int
	// Log is told of failures. Required.
	Log *slog.Logger
	// FirstRetry is how long after its first failure a file is tried again; each
	// failure doubles it, up to 5 min. Default 1 s.
	FirstRetry time.Duration
}

const (
	defaultParallel = 2
	defaultRetry    = time.Second
	lastRetry       = 5 * time.Minute
	lastWords       = 1000 // bytes of a failed command's output that are logged
	lastTries       = 10   // failures after which Close tries no more files
	lockPatience    = time.Second
	pipePatience    = 5 * time.Second
)

// Parse splits a command into words at spaces. One word at least has to be {}.
// There is no shell: what only one would understand is refused.
func Parse(text string) ([]string, error) {
	words := strings.Fields(text)
	if i := strings.IndexAny(text, "'\"`\\$|;<>"); i >= 0 {
		return nil, fmt.Errorf("handover: %q has a %q, but there is no shell to read it: put the command into a script, and name that", text, text[i])
	}
	if !slices.Contains(words, "{}") {
		return nil, fmt.Errorf("handover: %q has no word {} where the file goes, as in 'upload {}'", text)
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, fmt.Errorf("handover: %w", err)
	}
	return words, nil
}

// Secret reports whether a variable of the environment is kept from commands: all
// of Seine's own, some of which are passwords or may hold one, and the password
// of its PostgreSQL output.
func Secret(name string) bool { return strings.HasPrefix(name, "SEINE_") || name == "PGPASSWORD" }

// Queue hands files over. It is safe for concurrent use.
type Queue struct {
	cfg    Config
	ctx    context.Context // of commands
	cancel context.CancelFunc
	ended  sync.WaitGroup
	wake   chan struct{} // holds something when a worker should look again

	mu      sync.Mutex
	waiting byDue
	known   map[string]*file // that wait, or are handed over now
	closing bool
	gaveUp  int              // files that failed since
	failing map[string]error // why files wait, by path
	stats   Stats
}

// Stats counts what a queue did. Totals only grow.
type Stats struct {
	Handed   int64 // files
	Failures int64 // of commands, or of marks
	Pending  int64 // gauge: files that are not handed over yet
	Running  int64 // gauge: commands
}

// file is one that is not handed over yet.
type file struct {
	path  string
	due   time.Time
	retry time.Duration // after the next failure
	ran   bool          // with success: only the mark is missing
	last  bool          // it is tried for the last time
}

// byDue is a heap of files, the first due on top.
type byDue []*file

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h byDue) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byDue) Push(x any)        { *h = append(*h, x.(*file)) }
func (h *byDue) Pop() any {
	n := len(*h) - 1
	f := (*h)[n]
	*h = (*h)[:n]
	return f
}

// New starts a queue; Close ends it.
func New(cfg Config) *Queue {
	if cfg.Parallel <= 0 {
		cfg.Parallel = defaultParallel
	}
	if cfg.FirstRetry <= 0 {
		cfg.FirstRetry = defaultRetry
	}
	cfg.Environ = slices.DeleteFunc(slices.Clone(cfg.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return Secret(name)
	})
	q := &Queue{cfg: cfg, wake: make(chan struct{}, cfg.Parallel), known: map[string]*file{}, failing: map[string]error{}}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	for range cfg.Parallel {
		q.ended.Go(q.run)
	}
	return q
}

// Find adds the files of a series that were not handed over, and removes marks
// whose file is gone.
func (q *Queue) Find(s frame.Series) error {
	marks, err := s.List(End)
	if err != nil {
		return fmt.Errorf("handover: %w", err)
	}
	files, err := s.List("")
	if err != nil {
		return fmt.Errorf("handover: %w", err)
	}
	has := map[string]bool{}
	for _, mark := range marks {
		path := strings.TrimSuffix(mark, End)
		has[path] = true
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			if err := os.Remove(mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("handover: %w", err)
			}
		}
	}
	for _, path := range files {
		if !has[path] {
			q.Add(path)
		}
	}
	return nil
}

// Add queues a finished file, unless it waits already. It does not block.
func (q *Queue) Add(path string) {
	path, err := filepath.Abs(path) // so that no file is taken for an option
	if err != nil {
		q.cfg.Log.Error("--on-rotate cannot run for a file", "file", path, "error", err)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known[path] != nil {
		return
	}
	f := &file{path: path, due: time.Now(), retry: q.cfg.FirstRetry}
	q.known[path] = f
	heap.Push(&q.waiting, f)
	q.rouse()
}

func (q *Queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default: // all will look
	}
}

// run hands over file after file until the queue is closed and each was tried
// once more.
func (q *Queue) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		f, wait, end := q.take()
		if f != nil {
			q.settle(f, q.hand(f))
			continue
		}
		if end {
			return
		}
		timer.Reset(wait)
		select {
		case <-q.wake:
		case <-timer.C:
		}
	}
}

// take returns the file that is due, else how long until one is, or that there
// will be none.
func (q *Queue) take() (f *file, wait time.Duration, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || q.closing && (q.gaveUp >= lastTries || q.ctx.Err() != nil) {
		return nil, time.Hour, q.closing
	}
	if wait = time.Until(q.waiting[0].due); wait > 0 && !q.closing {
		return nil, wait, false
	}
	f = heap.Pop(&q.waiting).(*file)
	if f.last = q.closing; len(q.waiting) > 0 {
		q.rouse() // somebody has to wait for the next one
	}
	return f, 0, false
}

// settle lets go of a file that was handed over, and puts back another.
func (q *Queue) settle(f *file, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil || f.last && errors.Is(err, errLocked) {
		delete(q.known, f.path)
		delete(q.failing, f.path)
		return
	}
	if !errors.Is(err, errLocked) {
		q.stats.Failures++
		q.cfg.Log.Warn("--on-rotate failed for a file", "file", f.path, "error", err, "again_in", f.retry)
	}
	q.failing[f.path] = fmt.Errorf("handover: %s: %w", f.path, err)
	if f.last {
		q.gaveUp++
		return // the next start finds it
	}
	f.due = time.Now().Add(f.retry)
	f.retry = min(2*f.retry, lastRetry)
	heap.Push(&q.waiting, f)
}

var errLocked = errors.New("another process runs --on-rotate for it")

// lock locks an open file, or says that another process has. Where there is no
// next try it asks for a moment: a lock that was let go of lives on in a child of
// this process until that begins its program.
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

// hand hands a file over.
func (q *Queue) hand(f *file) error {
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
	if _, err := os.Lstat(f.path + End); err == nil {
		return nil // another process was quicker
	}
	if !f.ran {
		if err := q.command(f.path); err != nil {
			return err
		}
		f.ran = true
		q.cfg.Log.Debug("--on-rotate is done for a file", "file", f.path)
		q.mu.Lock()
		q.stats.Handed++
		q.mu.Unlock()
	}
	if _, err := os.Lstat(f.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	mark, err := os.OpenFile(f.path+End, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("it was, but cannot be marked so: %w", err)
	}
	return mark.Close()
}

// command runs the command for a file.
func (q *Queue) command(path string) error {
	q.mu.Lock()
	q.stats.Running++
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		q.stats.Running--
		q.mu.Unlock()
	}()
	words := slices.Clone(q.cfg.Command)
	for i := range words {
		if words[i] == "{}" {
			words[i] = path
		}
	}
	var said tail
	cmd := exec.CommandContext(q.ctx, words[0], words[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append([]string{}, q.cfg.Environ...), &said, &said // never nil: that would be all of ours
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipePatience
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it succeeded, and left something running behind that holds its output
	}
	if err != nil && len(said) > 0 {
		err = fmt.Errorf("%s: %w: %s", words[0], err, bytes.TrimSpace(said))
	} else if err != nil {
		err = fmt.Errorf("%s: %w", words[0], err)
	}
	return err
}

// tail keeps the end of what is written.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if n := len(*t) - lastWords; n > 0 {
		*t = append((*t)[:0], (*t)[n:]...)
	}
	return len(p), nil
}

// Err is why a file that waits was not handed over when it was tried last, or
// nil.
func (q *Queue) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, err := range q.failing {
		return err
	}
	return nil
}

// Stats returns the counts so far.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	st := q.stats
	st.Pending = int64(len(q.known))
	return st
}

// namedMost is how many of the files that are left Close logs; its error counts all.
const namedMost = 10

// Close tries once to hand over each file that waits, unless ten fail, waits for
// the commands, which it kills when ctx ends, and says what was not handed over.
// No file may come any more.
func (q *Queue) Close(ctx context.Context) error {
	defer context.AfterFunc(ctx, q.cancel)()
	q.mu.Lock()
	q.closing = true
	for range q.cfg.Parallel {
		q.rouse()
	}
	q.mu.Unlock()
	q.ended.Wait()
	q.cancel()
	if n := q.Stats().Pending; n > 0 {
		q.mu.Lock()
		left := slices.Sorted(maps.Keys(q.known))
		q.mu.Unlock()
		for _, path := range left[:min(len(left), namedMost)] {
			q.cfg.Log.Warn("--on-rotate is not done for a file; the next start with the same command runs it", "file", path)
		}
		return errors.Join(fmt.Errorf("handover: --on-rotate is not done for %d files; the next start with the same command runs it", n), q.Err())
	}
	return nil
}
