package jsonl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"seine/extract/sink/sinktest"
)

// Cut at every length, a file reopens with what was whole, and goes on.
func TestTornEndIsCut(t *testing.T) {
	for _, name := range kinds {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			s := open(t, Config{Path: path, Linger: -1})
			var ends []int // sizes at which the file is whole
			for i := range 4 {
				put(t, s, i, i+1)
				st, _ := os.Stat(path)
				ends = append(ends, int(st.Size()))
			}
			shut(t, s)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for n := range len(whole) + 1 {
				path := filepath.Join(dir, fmt.Sprint(n)+name)
				if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
					t.Fatal(err)
				}
				good := 0
				for good < len(ends) && ends[good] <= n {
					good++
				}
				s := open(t, Config{Path: path, Linger: -1})
				put(t, s, 100, 101)
				if cut := s.Stats().Cut; good > 0 && int(cut) != n-ends[good-1] {
					t.Errorf("%d bytes: cut %d", n, cut)
				}
				shut(t, s)
				if got := urls(t, path); len(got) != good+1 {
					t.Fatalf("cut at %d: %d records, want %d and one more", n, len(got), good)
				}
			}
		})
	}
}

// Garbage after whole frames is a torn end; so is a gzip member of another program cut short.
func TestGarbageAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	for _, name := range kinds[1:] {
		path := filepath.Join(dir, "tail"+name)
		s := open(t, Config{Path: path})
		put(t, s, 0, 10)
		shut(t, s)
		f, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		_, _ = f.WriteString("\x00\x00garbage")
		_ = f.Close()
		shut(t, open(t, Config{Path: path}))
		wantCount(t, urls(t, path), 10)
	}
}

func TestGzipOfOtherPrograms(t *testing.T) {
	gz, err := exec.LookPath("gzip")
	if err != nil {
		t.Skip("no gzip here")
	}
	path := filepath.Join(t.TempDir(), "pages.jsonl")
	s := open(t, Config{Path: path})
	put(t, s, 0, 1000)
	shut(t, s)
	if out, err := exec.Command(gz, "-N", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path += ".gz"
	s = open(t, Config{Path: path})
	put(t, s, 1000, 1100)
	shut(t, s)
	wantCount(t, urls(t, path), 1100)
	if out, err := exec.Command(gz, "-t", path).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A file that may not grow stands for a full disk: the write ends in its
// middle, is taken back, and goes through when there is room.
func TestDiskFull(t *testing.T) {
	if !sinktest.Alone(t) {
		return
	}
	for _, name := range kinds {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			s := open(t, Config{Path: path, Linger: -1})
			put(t, s, 0, 20)
			st, _ := os.Stat(path)
			sinktest.LimitFileSize(t, uint64(st.Size())+50)
			got := make(chan error, 20)
			for i := 20; i < 40; i++ {
				s.Write(record(i), func(err error) { got <- err })
			}
			sinktest.Until(t, "Err is the reason", func() bool { return s.Err() != nil })
			if !errors.Is(s.Err(), syscall.EFBIG) {
				t.Errorf("Err: %v", s.Err())
			}
			wantCount(t, urls(t, path), 20) // nothing half
			sinktest.LimitFileSize(t, ^uint64(0))
			for range 20 {
				if err := <-got; err != nil {
					t.Error(err)
				}
			}
			if s.Err() != nil {
				t.Error("stalled after it went on")
			}
			// And closed while full, what waits fails and nothing half is left.
			st, _ = os.Stat(path)
			sinktest.LimitFileSize(t, uint64(st.Size())+50)
			s.Write(record(40), func(err error) { got <- err })
			sinktest.Until(t, "Err is the reason", func() bool { return s.Err() != nil })
			if err := s.Close(); !errors.Is(err, syscall.EFBIG) {
				t.Errorf("Close: %v", err)
			}
			if err := <-got; !errors.Is(err, syscall.EFBIG) {
				t.Errorf("done: %v", err)
			}
			wantCount(t, urls(t, path), 40)
		})
	}
}

func TestDeviceFull(t *testing.T) {
	s, err := Open(Config{Path: "/dev/full"})
	if err != nil {
		t.Skip("no /dev/full here")
	}
	got := make(chan error, 1)
	s.Write(record(0), func(err error) { got <- err })
	sinktest.Until(t, "Err is the reason", func() bool { return s.Err() != nil })
	if err := s.Close(); !errors.Is(err, syscall.ENOSPC) || !errors.Is(<-got, syscall.ENOSPC) {
		t.Error(err)
	}
}

// victim writes until it is killed, reporting which records are in the sink.
func victim(path string) {
	s, err := Open(Config{Path: path, Linger: time.Millisecond, RotateSize: 200_000})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		r := record(i)
		r.URL += "?" + fmt.Sprint(os.Getpid())
		url := r.URL
		s.Write(r, func(error) { fmt.Println(url) })
	}
}

func TestKilledWriter(t *testing.T) {
	for _, name := range kinds {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			reported := sinktest.KillWriters(t, path, 200, 977, 1754, 2531, 3308)
			shut(t, open(t, Config{Path: path})) // mends the last one
			kept := map[string]bool{}
			files, _ := filepath.Glob(filepath.Join(dir, "pages*"))
			for _, f := range files {
				for _, u := range urls(t, f) {
					if kept[u] {
						t.Fatalf("%s twice", u)
					}
					kept[u] = true
				}
			}
			for u := range reported {
				if !kept[u] {
					t.Fatalf("%s was reported and is not there", u)
				}
			}
			if len(reported) < 1000 {
				t.Fatalf("only %d records", len(reported))
			}
		})
	}
}
