package hook

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seine/extract/sink/frame"
	"seine/extract/sink/sinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a directory with finished files and a script that is the hook.
type bench struct {
	dir, script string
	log         buffer
}

// buffer is a log that a test reads while it is written.
type buffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}
func (b *buffer) text() string { b.mu.Lock(); defer b.mu.Unlock(); return b.String() }

// newBench makes a directory whose name has a space, and a script with body, in
// which $dir is another directory; it notes each call in $dir/calls.
func newBench(t *testing.T, body string) *bench {
	t.Helper()
	b := &bench{dir: filepath.Join(t.TempDir(), "a b")}
	b.script = filepath.Join(t.TempDir(), "script")
	text := fmt.Sprintf("#!/bin/sh\ndir=%s\necho \"$#:$1\" >>$dir/calls\n%s\n", filepath.Dir(b.script), body)
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) open(t *testing.T, change func(*Config)) *Hook {
	t.Helper()
	command, err := Parse(b.script + " {}")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Command: command, FirstRetry: time.Millisecond, Log: slog.New(slog.NewTextHandler(&b.log, nil))}
	if change != nil {
		change(&cfg)
	}
	return New(cfg)
}

func (b *bench) series() frame.Series {
	return frame.Series{Dir: b.dir, Stem: "pages", Ext: ".jsonl"}
}

func (b *bench) file(t *testing.T, i int) string {
	t.Helper()
	path := filepath.Join(b.dir, fmt.Sprintf("pages-20261128T010203-%06d.jsonl", i))
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// beside reads a file that the script wrote.
func (b *bench) beside(name string) string {
	data, _ := os.ReadFile(filepath.Join(filepath.Dir(b.script), name))
	return string(data)
}

func (b *bench) calls() int { return strings.Count(b.beside("calls"), "\n") }

func shut(t *testing.T, h *Hook) {
	t.Helper()
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The command runs once for each file, which is one argument: not at the next start, nor
// when the file is named twice.
func TestOnce(t *testing.T) {
	b := newBench(t, "")
	for i := range 5 {
		b.file(t, i)
	}
	for _, name := range []string{"pages.jsonl", "pages-20261128T010203-AAAAAAAAAA.jsonl.open", "pages-b-20261128T010203-000001.jsonl", "other"} {
		if err := os.WriteFile(filepath.Join(b.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		h := b.open(t, nil)
		if err := h.RunForLeft(b.series()); err != nil {
			t.Fatal(err)
		}
		h.RunFor(b.file(t, 3))
		shut(t, h)
	}
	h := b.open(t, nil)
	h.RunFor(b.file(t, 5))
	sinktest.Until(t, "no file is pending", func() bool { return h.Stats().Pending == 0 })
	shut(t, h)
	calls := strings.Split(strings.TrimSpace(b.beside("calls")), "\n")
	slices.Sort(calls)
	var want []string
	for i := range 6 {
		want = append(want, fmt.Sprintf("1:%s/pages-20261128T010203-%06d.jsonl", b.dir, i))
	}
	if !slices.Equal(calls, want) {
		t.Errorf("%q", calls)
	}
	if st := h.Stats(); st != (Stats{Done: 1}) {
		t.Errorf("%+v", st)
	}
}

// A command that fails is retried and logged; other files go on.
func TestFailuresAreRepeated(t *testing.T) {
	b := newBench(t, `case $1 in *1.jsonl) test -e $dir/go || { echo no "'room'" there >&2; exit 7; };; esac`)
	h := b.open(t, nil)
	for i := range 3 {
		h.RunFor(b.file(t, i))
	}
	sinktest.Until(t, "two files are done and one failed three times", func() bool { st := h.Stats(); return st.Done == 2 && st.Failures >= 3 && st.Pending == 1 })
	if err := h.Err(); err == nil || !strings.Contains(err.Error(), "000001.jsonl") || !strings.Contains(err.Error(), "exit status 7: no 'room' there") {
		t.Error(err)
	}
	if log := b.log.text(); !strings.Contains(log, "exit status 7") || strings.Contains(log, "000002.jsonl") {
		t.Error(log)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(b.script), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sinktest.Until(t, "no file is pending", func() bool { return h.Stats().Pending == 0 })
	if err := h.Err(); err != nil {
		t.Error(err)
	}
	shut(t, h)
}

// Close names what still fails. The next start finds it, as it does files that were
// finished without a command.
func TestNextStart(t *testing.T) {
	b := newBench(t, "test -e $dir/go")
	h := b.open(t, func(c *Config) { c.FirstRetry = time.Hour })
	for i := range 3 {
		h.RunFor(b.file(t, i))
	}
	if err := h.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "not done for 3 files") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(b.script), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h = b.open(t, nil)
	if err := h.RunForLeft(b.series()); err != nil {
		t.Fatal(err)
	}
	shut(t, h)
	if st := h.Stats(); st.Done != 3 {
		t.Errorf("%+v", st)
	}
}

// Where all commands fail, Close does not wait for each file.
func TestCloseGivesUp(t *testing.T) {
	b := newBench(t, "exit 1")
	h := b.open(t, func(c *Config) { c.FirstRetry = time.Hour })
	for i := range 200 {
		h.RunFor(b.file(t, i))
	}
	sinktest.Until(t, "two tries failed", func() bool { return h.Stats().Failures >= 2 })
	before := h.Stats().Failures
	if err := h.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "not done for 200 files") {
		t.Error(err)
	}
	if n := h.Stats().Failures - before; n > 190 {
		t.Errorf("%d tries", n)
	}
	if n := strings.Count(b.log.text(), "--on-rotate is not done for a file;"); n != namedMost {
		t.Errorf("%d files are named, want %d", n, namedMost)
	}
}

// A command may take the file away; it gets no done file then. Done files go whose file
// a person took away.
func TestFilesTakenAway(t *testing.T) {
	b := newBench(t, `mv "$1" $dir/`)
	h := b.open(t, nil)
	path := b.file(t, 1)
	h.RunFor(path)
	gone := filepath.Join(b.dir, "pages-20261128T010203-000009.jsonl")
	h.RunFor(gone)
	if err := os.WriteFile(gone+DoneEnd, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.RunForLeft(b.series()); err != nil {
		t.Fatal(err)
	}
	shut(t, h)
	if left, err := os.ReadDir(b.dir); err != nil || len(left) != 0 || b.calls() != 1 {
		t.Errorf("left %v, %v; %d calls", left, err, b.calls())
	}
}

// Commands see no secret of Seine's, and have no terminal.
func TestEnvironment(t *testing.T) {
	b := newBench(t, `env >$dir/env; cat >$dir/stdin`)
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=/h", "SEINE_REDIS_PASSWORD=geheim", "SEINE_KAFKA_PASSWORD=geheim", "SEINE_REDIS=redis://u:geheim@h", "PGPASSWORD=geheim", "AWS_PROFILE=p"}
	h := b.open(t, func(c *Config) { c.Environ = environ })
	h.RunFor(b.file(t, 1))
	shut(t, h)
	env := b.beside("env")
	if strings.Contains(env, "geheim") || !strings.Contains(env, "AWS_PROFILE=p\n") || !strings.Contains(env, "HOME=/h\n") || b.beside("stdin") != "" {
		t.Error(env)
	}
}

// At most Parallel commands run side by side. Of processes that share a directory one
// runs the command for a file.
func TestSideBySide(t *testing.T) {
	b := newBench(t, `touch "$1.in"; ls "${1%/*}" | grep -c 'in$' >>$dir/width; sleep 0.02; rm "$1.in"`)
	for i := range 20 {
		b.file(t, i)
	}
	first, second := b.open(t, func(c *Config) { c.Parallel = 3 }), b.open(t, func(c *Config) { c.Parallel = 1 })
	for _, h := range []*Hook{first, second} {
		if err := h.RunForLeft(b.series()); err != nil {
			t.Fatal(err)
		}
	}
	sinktest.Until(t, "no file is pending", func() bool { return first.Stats().Pending+second.Stats().Pending == 0 })
	shut(t, first)
	shut(t, second)
	if b.calls() != 20 {
		t.Errorf("%d calls", b.calls())
	}
	if first.Stats().Failures+second.Stats().Failures > 0 {
		t.Error(b.log.text())
	}
	for n := range strings.Lines(b.beside("width")) {
		if n = strings.TrimSpace(n); n > "4" {
			t.Errorf("%s at once", n)
		}
	}
}

// Close waits for a command that runs, and kills it, with what it started, when
// it may wait no longer.
func TestCloseKills(t *testing.T) {
	b := newBench(t, `touch $dir/on; sleep 1000 & wait`)
	h := b.open(t, nil)
	h.RunFor(b.file(t, 1))
	sinktest.Until(t, "the command runs", func() bool { _, err := os.Stat(filepath.Join(filepath.Dir(b.script), "on")); return err == nil })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := h.Close(ctx); err == nil || !strings.Contains(err.Error(), "not done for 1 files") {
		t.Error(err)
	}
	if took := time.Since(began); took > pipePatience {
		t.Errorf("the command's child held its output for %v", took)
	}
}

// A done file that cannot be written, here for the length of its name, is reported. This
// process does not run the command for that file twice.
func TestDoneFileFails(t *testing.T) {
	b := newBench(t, "")
	path := filepath.Join(b.dir, strings.Repeat("x", 252))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := b.open(t, nil)
	h.RunFor(path)
	sinktest.Until(t, "four tries failed", func() bool { return h.Stats().Failures > 3 })
	if err := h.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "done file cannot be written") || b.calls() != 1 {
		t.Errorf("%v; %d calls", err, b.calls())
	}
}

// A lock that somebody has for a moment only, as a child that was just forked has,
// leaves no file behind at the end; one of another process leaves it to that.
func TestLockedAtTheEnd(t *testing.T) {
	for _, short := range []bool{true, false} {
		b := newBench(t, "")
		path := b.file(t, 1)
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if locked, err := frame.Lock(f); !locked || err != nil {
			t.Fatal(locked, err)
		}
		h := b.open(t, func(c *Config) { c.FirstRetry = time.Hour })
		h.RunFor(path)
		sinktest.Until(t, "Err is the reason", func() bool { return h.Err() != nil })
		ended := make(chan error, 1)
		go func() { ended <- h.Close(context.Background()) }()
		if short {
			time.AfterFunc(lockPatience/10, func() { f.Close() })
		}
		if err := <-ended; err != nil || b.calls() != map[bool]int{true: 1}[short] || h.Stats().Failures > 0 {
			t.Errorf("%v; %d calls, %+v", err, b.calls(), h.Stats())
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "no word {}",
		"true":                "no word {}",
		"true x{}":            "no word {}",
		"sh -c 'x {}'":        "no shell",
		"true {} | tee":       "no shell",
		"true {} > /dev/x":    "no shell",
		"/nowhere/program {}": "nowhere",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if words, err := Parse(" true  -a {} b=c&d "); err != nil || !slices.Equal(words, []string{"true", "-a", "{}", "b=c&d"}) {
		t.Error(words, err)
	}
}
