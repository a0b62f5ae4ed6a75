package jsonl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/extract/sink"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("SEINE_TEST_VICTIM"); path != "" {
		victim(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// kinds are a name of each kind of file.
var kinds = []string{"pages.jsonl", "pages.jsonl.gz", "pages.jsonl.zst"}

func record(i int) *sink.Record {
	return &sink.Record{V: 1, URL: fmt.Sprintf("https://example.com/%d", i), Site: "example.com", Status: 200, Links: i,
		Title: strings.Repeat("title ", i%17)}
}

// urls reads a file of any kind to its end and returns its records' URLs.
func urls(t testing.TB, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if st, _ := f.Stat(); st.Size() == 0 {
		return nil
	}
	switch kindOf(path) {
	case gzipped:
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	case zstandard:
		dec, err := zstd.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		defer dec.Close()
		r = dec
	}
	var out []string
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return out
		}
		if err != nil {
			t.Fatalf("%s after %d lines and %q: %v", path, len(out), line, err)
		}
		var rec sink.Record
		if err := json.Unmarshal(line, &rec); err != nil {
			t.Fatalf("%s: %v in %q", path, err, line)
		}
		out = append(out, rec.URL)
	}
}

// put writes records lo..hi-1 and waits until they are in the sink.
func put(t testing.TB, s *Sink, lo, hi int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := lo; i < hi; i++ {
		wg.Add(1)
		s.Write(record(i), func(err error) {
			if err != nil {
				t.Error(err)
			}
			wg.Done()
		})
	}
	wg.Wait()
}

func open(t testing.TB, cfg Config) *Sink {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func shut(t testing.TB, s *Sink) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantCount(t testing.TB, got []string, n int) {
	t.Helper()
	seen := map[string]bool{}
	for _, u := range got {
		seen[u] = true
	}
	if len(got) != n || len(seen) != n {
		t.Fatalf("%d records, %d different, want %d", len(got), len(seen), n)
	}
}

func TestWriteAppendReopen(t *testing.T) {
	for _, name := range kinds {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			s := open(t, Config{Path: path, Linger: time.Millisecond})
			put(t, s, 0, 500)
			if st := s.Stats(); st.Records != 500 || st.Frames == 0 || st.Bytes == 0 {
				t.Errorf("%+v", st)
			}
			wantCount(t, urls(t, path), 500) // readable while it is being written
			shut(t, s)
			shut(t, s)
			if st := s.Stats(); st.Pending != 0 {
				t.Errorf("%d bytes pending after Close", st.Pending)
			}
			s = open(t, Config{Path: path})
			if st := s.Stats(); st.Cut != 0 {
				t.Errorf("cut %d bytes of a whole file", st.Cut)
			}
			put(t, s, 500, 501)
			for i := 501; i < 1000; i++ {
				s.Write(record(i), func(error) {})
			}
			shut(t, s) // writes what waits
			wantCount(t, urls(t, path), 1000)
			if st, _ := os.Stat(path); st.Mode().Perm() != 0o600 {
				t.Errorf("mode %v", st.Mode())
			}
		})
	}
}

func TestWriterAndFields(t *testing.T) {
	var out bytes.Buffer
	s := open(t, Config{Writer: &out, Fields: sink.FieldText})
	s.Write(&sink.Record{URL: "u", Text: "words", Body: "no"}, func(error) {})
	shut(t, s)
	var r sink.Record
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Text != "words" || r.Body != "" || !bytes.HasSuffix(out.Bytes(), []byte("}\n")) {
		t.Errorf("%v: %s", err, out.Bytes())
	}
	got := make(chan error, 1)
	s.Write(&r, func(err error) { got <- err })
	if err := <-got; !errors.Is(err, ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

func TestBadConfig(t *testing.T) {
	for _, c := range []Config{
		{RotateSize: 1}, {RotateTime: 1}, {Path: "x", Writer: io.Discard}, {Path: "x", RotateSize: -1}, {MaxPending: -1},
		{Linger: time.Minute}, {FrameBytes: 2 << 20}, {FrameBytes: -1}, {Fields: 0x80},
	} {
		if s, err := Open(c); err == nil {
			t.Errorf("%+v was taken", c)
			_ = s.Close()
		}
	}
	if _, err := Open(Config{Path: filepath.Join(t.TempDir(), "no", "dir")}); err == nil {
		t.Error("opened in no directory")
	}
}

func TestOneWriterAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pages.jsonl")
	s := open(t, Config{Path: path})
	if _, err := Open(Config{Path: path}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("second open: %v", err)
	}
	shut(t, s)
	shut(t, open(t, Config{Path: path}))
}

// gate is a writer that holds each write until it is told to go on.
type gate struct {
	in, out chan struct{}
	mu      sync.Mutex
	writes  [][]byte
}

func (g *gate) Write(p []byte) (int, error) {
	g.in <- struct{}{}
	<-g.out
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = append(g.writes, bytes.Clone(p))
	return len(p), nil
}

// Alone a record is written at once; what comes during a write makes the next.
func TestGroupCommit(t *testing.T) {
	g := &gate{in: make(chan struct{}), out: make(chan struct{})}
	s := open(t, Config{Writer: g})
	s.Write(record(0), func(error) {})
	<-g.in
	for i := 1; i < 10; i++ {
		s.Write(record(i), func(error) {})
	}
	g.out <- struct{}{}
	<-g.in
	g.out <- struct{}{}
	shut(t, s)
	if len(g.writes) != 2 || bytes.Count(g.writes[0], []byte("\n")) != 1 || bytes.Count(g.writes[1], []byte("\n")) != 9 {
		t.Errorf("%d writes: %q", len(g.writes), g.writes)
	}
}

func TestFrameBytesBoundsFrames(t *testing.T) {
	g := &gate{in: make(chan struct{}), out: make(chan struct{})}
	const limit = 1000
	s := open(t, Config{Writer: g, FrameBytes: limit})
	var got []string
	s.Write(record(0), func(error) {})
	<-g.in
	for i := 1; i < 100; i++ {
		s.Write(record(i), func(error) { got = append(got, fmt.Sprint(i)) })
	}
	go func() {
		for range g.in {
			g.out <- struct{}{}
		}
	}()
	g.out <- struct{}{}
	shut(t, s)
	close(g.in)
	for _, w := range g.writes {
		if len(w) > limit || w[len(w)-1] != '\n' {
			t.Errorf("a frame of %d bytes", len(w))
		}
	}
	for i, x := range got {
		if x != fmt.Sprint(i+1) {
			t.Fatalf("order of done: %v", got)
		}
	}
}

func TestMaxPendingBlocks(t *testing.T) {
	g := &gate{in: make(chan struct{}), out: make(chan struct{})}
	s := open(t, Config{Writer: g, MaxPending: 1})
	s.Write(record(0), func(error) {}) // larger than all that may wait, but alone
	<-g.in
	second := make(chan struct{})
	go func() {
		s.Write(record(1), func(error) {})
		close(second)
	}()
	for range 100 {
		select {
		case <-second:
			t.Fatal("Write did not block")
		default:
			_ = s.Stats() // gives the other goroutine a chance to be wrong
		}
	}
	g.out <- struct{}{}
	<-g.in
	<-second
	g.out <- struct{}{}
	shut(t, s)
}

func TestWriteAllocates(t *testing.T) {
	if raced {
		t.Skip("the race detector allocates")
	}
	for _, name := range []string{"pages.jsonl", "pages.jsonl.zst", "pages.jsonl.gz"} {
		s := open(t, Config{Path: filepath.Join(t.TempDir(), name), Linger: -1})
		r := record(16)
		ended := make(chan struct{}, 1)
		done := func(error) { ended <- struct{}{} }
		one := func() {
			s.Write(r, done)
			<-ended
		}
		for range 100 {
			one()
		}
		if n := testing.AllocsPerRun(200, one); n >= 1 {
			t.Errorf("%s: %v allocations a record", name, n)
		}
		shut(t, s)
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, name := range kinds {
		b.Run(name[len("pages"):], func(b *testing.B) {
			path := filepath.Join(b.TempDir(), name)
			s := open(b, Config{Path: path})
			r := record(16)
			r.Digest = "sha256:" + strings.Repeat("0123456789abcdef", 4)
			done := func(error) {}
			b.ReportAllocs()
			for b.Loop() {
				s.Write(r, done)
			}
			shut(b, s)
			st := s.Stats()
			b.ReportMetric(float64(st.Bytes)/float64(st.Records), "file-B/record")
			b.ReportMetric(float64(st.Records)/float64(st.Frames), "records/frame")
		})
	}
}
