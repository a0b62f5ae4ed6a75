package jsonl

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// gate is a writer that delays each write until the test lets it go on.
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
