//go:build unix

package warc

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"seine/extract/sink/sinktest"
)

// A file that may not grow stands for a full disk: the write ends in its middle, is
// taken back, and goes through when there is room; nothing is missing or there twice.
func TestDiskFull(t *testing.T) {
	if !sinktest.Alone(t) {
		return
	}
	for _, k := range kinds {
		dir := t.TempDir()
		s := open(t, Config{Dir: dir, Prefix: "crawl", Kind: k})
		put(t, s, sinktest.Record(0))
		st, err := os.Stat(files(t, dir)[0])
		if err != nil {
			t.Fatal(err)
		}
		sinktest.LimitFileSize(t, uint64(st.Size())+50)
		got := make(chan error, 9)
		for i := 1; i < 10; i++ {
			s.Write(sinktest.Record(i), func(err error) { got <- err })
		}
		for deadline := time.Now().Add(time.Minute); s.Err() == nil; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("a full disk is not reported")
			}
		}
		if !errors.Is(s.Err(), syscall.EFBIG) {
			t.Errorf("Err: %v", s.Err())
		}
		if len(got) > 0 {
			t.Error("a record is in a file that cannot take it")
		}
		sinktest.LimitFileSize(t, ^uint64(0))
		for range 9 {
			if err := <-got; err != nil {
				t.Error(err)
			}
		}
		if s.Err() != nil {
			t.Error("stalled after it went on")
		}
		shut(t, s)
		seen := map[string]int{}
		for _, b := range blocks(t, files(t, dir)...) { // all whole
			if b.fields["WARC-Type"] == "metadata" {
				seen[b.fields["WARC-Target-URI"]]++
			}
		}
		for i := range 10 {
			if n := seen[sinktest.Record(i).URL]; n != 1 {
				t.Errorf("%s: record %d is there %d times", k, i, n)
			}
		}
	}
}
