package jsonl

import (
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
	"seine/extract/sink/frame"
	"seine/extract/sink/sinktest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(sinktest.VictimEnv); path != "" {
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
	var out []string
	for r, err := range Records(path) {
		if err != nil {
			t.Fatalf("after %d records: %v", len(out), err)
		}
		out = append(out, r.URL)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if frame.KindOf(path) == frame.Plain && bytes.Count(data, []byte("\n")) != len(out) {
		t.Fatalf("%s: not one record a line", path)
	}
	return out
}

func TestRecords(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i, name := range kinds {
		s := open(t, Config{Path: filepath.Join(dir, name), Linger: -1})
		put(t, s, i*10, i*10+10)
		shut(t, s)
		paths = append(paths, filepath.Join(dir, name))
	}
	n := 0
	for r, err := range Records(paths...) {
		if err != nil || r.URL != record(n).URL {
			t.Fatalf("record %d: %v, %v", n, r, err)
		}
		n++
	}
	for range Records(paths...) {
		break
	}
	if n != 30 {
		t.Errorf("%d records", n)
	}
	for _, p := range paths {
		st, _ := os.Stat(p)
		if err := os.Truncate(p, st.Size()-3); err != nil {
			t.Fatal(err)
		}
		var last error
		for _, last = range Records(p) {
			continue
		}
		if last == nil || !strings.Contains(last.Error(), p) {
			t.Errorf("torn %s: %v", p, last)
		}
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
	if err := <-got; !errors.Is(err, sink.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

func TestBadConfig(t *testing.T) {
	for _, c := range []Config{
		{RotateSize: 1}, {RotateTime: 1}, {Path: "x", Writer: io.Discard}, {Path: "x", RotateSize: -1}, {MaxPending: -1},
		{Linger: time.Minute}, {FrameBytes: 2 << 20}, {FrameBytes: -1}, {Fields: 0x4000},
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
	if _, err := Open(Config{Path: path}); !errors.Is(err, frame.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("second open: %v", err)
	}
	shut(t, s)
	shut(t, open(t, Config{Path: path}))
}
